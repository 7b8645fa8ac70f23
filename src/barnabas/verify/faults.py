"""A broker that is killed and started again.

A command runs the broker in the foreground: `barnabas start …`, `kafka-server-start.sh server.properties`. The command gets a process
group of its own, and a kill is SIGKILL to the whole group, so it reaches the broker itself and not only a script around it.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from barnabas.client.cluster import Cluster
from barnabas.protocol.errors import KafkaError
from barnabas.security.client_security import ClientSecurity
from barnabas.verify.history import NEMESIS, Outcome
from barnabas.verify.recorder import Recorder

READY_SECONDS = 180.0
_KILLED_STARTS = 0.25
_GROUP_SECONDS = 2.0


class BrokerFailed(Exception):
    """The broker ended by itself, or does not answer."""


class LocalBroker:
    """A broker that a command runs.

    Args:
        command: runs it in the foreground.
        bootstrap: its address.
        log: its output is appended to this file.
        security: TLS and the login at the address.
    """

    def __init__(
        self, command: Sequence[str], bootstrap: str, log: Path, security: ClientSecurity | None = None
    ) -> None:
        self.command = list(command)
        self.bootstrap = bootstrap
        self.log = log
        self.security = security
        self.process: subprocess.Popen[bytes] | None = None
        self.start_seconds = 0.0
        """How long the last start took."""

    def start(self) -> None:
        """Start the broker and wait until it answers.

        Raises:
            BrokerFailed: it does not answer; the message names the log.
        """
        began = time.monotonic()
        self.launch()
        self._wait_until_ready()
        self.start_seconds = time.monotonic() - began

    def check_address(self) -> None:
        """Check that no other broker answers at the address: we would verify that one and kill this one.

        Raises:
            BrokerFailed: another broker answers.
        """
        try:
            with Cluster(self.bootstrap, timeout_ms=2000, security=self.security) as cluster:
                cluster.metadata(topics=[])
        except KafkaError:
            return
        raise BrokerFailed(
            f"another broker already answers at {self.bootstrap}: stop it, or name another address with -b"
        )

    def launch(self) -> None:
        """Start the broker and do not wait."""
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                self.command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )

    def _wait_until_ready(self) -> None:
        deadline = time.monotonic() + READY_SECONDS
        while True:
            self.check()
            try:
                with Cluster(self.bootstrap, timeout_ms=2000, security=self.security) as cluster:
                    if cluster.metadata(topics=[]).brokers:
                        return
            except KafkaError as error:
                if time.monotonic() > deadline:
                    raise BrokerFailed(f"the broker does not answer: {error.message}; see {self.log}") from None
            time.sleep(0.02)

    def check(self) -> None:
        """Check that the broker is alive.

        Raises:
            BrokerFailed: it ended by itself.
        """
        if self.process is not None and self.process.poll() is not None:
            raise BrokerFailed(f"the broker ended with code {self.process.returncode}; {self.log} says why")

    def kill(self) -> None:
        """Send SIGKILL to the broker and everything it started."""
        self._signal(signal.SIGKILL)

    def stop(self) -> None:
        """Ask the broker to end, and kill it if it does not."""
        if self.process is not None:
            self.process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(30)
            self._signal(signal.SIGKILL)

    def _signal(self, number: signal.Signals) -> None:
        if self.process is not None:
            group = self.process.pid
            with contextlib.suppress(ProcessLookupError):
                os.killpg(group, number)
                self.process.wait()
                # The command's processes hold port and data until they end. Without a process that reaps orphans the group never
                # becomes empty, hence the bound.
                deadline = time.monotonic() + _GROUP_SECONDS
                while time.monotonic() < deadline:
                    os.killpg(group, 0)
                    time.sleep(0.005)
            self.process.wait()
            self.process = None


class Killer:
    """Kills the broker every few seconds and starts it again; runs in a thread.

    Every fourth start is killed too, before it is complete: the broker must recover from a recovery that was cut off.

    Args:
        broker: the broker to kill.
        recorder: records the kills.
        every_s: mean seconds between a start and the next kill; each is between half of it and one and a half.
        rng: chooses the times.
        stopping: ends the thread, with the broker running.
    """

    def __init__(
        self, broker: LocalBroker, recorder: Recorder, every_s: float, rng: random.Random, stopping: threading.Event
    ) -> None:
        self.broker = broker
        self.recorder = recorder
        self.every_s = every_s
        self.rng = rng
        self.stopping = stopping
        self.failure: BaseException | None = None

    def run(self) -> None:
        """Kill and start until stopped."""
        try:
            while not self.stopping.wait(self.every_s * self.rng.uniform(0.5, 1.5)):
                self.broker.check()
                self._kill()
                while self.rng.random() < _KILLED_STARTS:
                    self.broker.launch()
                    time.sleep(self.broker.start_seconds * self.rng.random())
                    self.broker.check()
                    self._kill()
                self.recorder.record(NEMESIS, Outcome.INVOKE, "start")
                self.broker.start()
                self.recorder.record(NEMESIS, Outcome.OK, "start")
        except BaseException as error:
            self.failure = error
            self.stopping.set()

    def _kill(self) -> None:
        self.recorder.record(NEMESIS, Outcome.INVOKE, "kill")
        self.broker.kill()
        self.recorder.record(NEMESIS, Outcome.OK, "kill")
