"""The line of a command that waits for a cluster without an answer: one line after two seconds, on a terminal only.

    no answer from 10.0.0.7:9092 yet, waiting up to 30 s …

An address that refuses or closes the connection is different: no broker serves there, and the command ends immediately, unless
`--timeout-ms` is given. Then it waits that long for a broker that is about to start. Where TLS or HTTP answers, no broker will.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import click

from barnabas.cli.long_blocks import if_longer_than
from barnabas.cli.progress import on_terminal
from barnabas.client.cluster import Cluster
from barnabas.client.errors import ClientError
from barnabas.client.wire import BlockingConnection

AFTER_S = 2.0


class Patience:
    """Speaks for the clients of one command, once for each address.

    Args:
        timeout_ms: how long a client waits.
        speak: prints a line; None says nothing.
        sleep: pauses between two attempts.
    """

    def __init__(
        self,
        timeout_ms: int,
        *,
        speak: Callable[[str], None] | None = None,
        after_s: float = AFTER_S,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._timeout_ms = timeout_ms
        self._speak = speak
        self._after_s = after_s
        self._pause = sleep
        self._paused_s = 0.0
        self._why = "the cluster is not ready to answer yet"
        self._said: set[str] = set()

    def __repr__(self) -> str:
        return f"<Patience timeout_ms={self._timeout_ms} said={sorted(self._said)}>"

    def seams(self) -> dict[str, Callable[..., Any]]:
        """Return the arguments through which a `Cluster` says that it waits."""
        return {} if self._speak is None else {"connect": self._connect, "sleep": self._sleep}

    def _connect(self, host: str, port: int, **options: Any) -> BlockingConnection:
        return _Announced(self, host, port, **options)

    def _sleep(self, seconds: float) -> None:
        """Pause between two attempts: no broker listens yet, or one answers that it needs more time."""
        self._paused_s += seconds
        if self._paused_s > self._after_s:
            self._say(self._why)
        self._pause(seconds)

    def _say(self, what: str) -> None:
        if self._speak is not None and what not in self._said:
            self._said.add(what)
            self._speak(f"{what}, waiting up to {self._timeout_ms / 1000:g} s …")

    def announced(self, address: str) -> AbstractContextManager[None]:
        """Write that the address does not answer, if the block takes longer than `after_s`."""
        return if_longer_than(self._after_s, lambda: self._say(f"no answer from {address} yet"))

    def await_broker(self, cluster: Cluster, addresses: str) -> None:
        """Wait until a broker of the cluster accepts connections.

        Args:
            addresses: for people.

        Raises:
            ClientError: none did within the cluster's timeout.
            OtherProtocol: the address is not a broker's.
        """
        deadline = cluster.deadline()
        attempt = 0
        ready, self._why = self._why, f"no broker at {addresses} yet"
        while True:
            try:
                cluster.any_connection()
                break
            except ClientError:
                if not cluster.pause(attempt, deadline):
                    raise
            attempt += 1
        self._why = ready


class _Announced(BlockingConnection):
    """A connection that says when it waits long."""

    def __init__(self, patience: Patience, host: str, port: int, **options: Any) -> None:
        self._patience = patience
        super().__init__(host, port, **options)

    def _connect(self) -> Any:
        with self._patience.announced(self.address):
            return super()._connect()

    def receive(self, *, timeout_ms: int | None = None) -> Any:
        """Wait for the next response, and say so after a while."""
        with self._patience.announced(self.address):
            return super().receive(timeout_ms=timeout_ms)


def patience(timeout_ms: int) -> Patience:
    """Return a `Patience` that writes on standard error, if that is a terminal."""
    return Patience(timeout_ms, speak=_on_standard_error if on_terminal() else None)


def _on_standard_error(line: str) -> None:
    click.echo(line, err=True)
