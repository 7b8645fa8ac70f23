"""A broker that is killed and started again.

The broker is whatever a command runs in the foreground: `barnabas start …`, `kafka-server-start.sh server.properties`. The command gets a
process group of its own, and a kill is SIGKILL to the whole group, so that nothing between us and the broker softens it.
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
from barnabas.verify.history import NEMESIS, Outcome
from barnabas.verify.recorder import Recorder

READY_SECONDS = 180.0
_KILLED_STARTS = 0.25
_GROUP_SECONDS = 2.0


class BrokerFailed(Exception):
    """The broker's command ended by itself, or never answered."""


class LocalBroker:
    """A broker as a command.

    Args:
        command: runs it in the foreground.
        bootstrap: where it answers then.
        log: where its output goes, appended.
    """

    def __init__(self, command: Sequence[str], bootstrap: str, log: Path) -> None:
        self.command = list(command)
        self.bootstrap = bootstrap
        self.log = log
        self.process: subprocess.Popen[bytes] | None = None
        self.start_seconds = 0.0
        """How long the last start took."""

    def start(self) -> None:
        """Starts it; returns when it answers.

        Raises:
            BrokerFailed: names the log.
        """
        began = time.monotonic()
        self.launch()
        self._wait_until_ready()
        self.start_seconds = time.monotonic() - began

    def check_address(self) -> None:
        """Sees that nobody else answers there: that broker would be verified, and this one killed.

        Raises:
            BrokerFailed: somebody does.
        """
        try:
            with Cluster(self.bootstrap, timeout_ms=2000) as cluster:
                cluster.metadata(topics=[])
        except KafkaError:
            return
        raise BrokerFailed(f"a broker answers at {self.bootstrap} already; stop it, or name another address with -b")

    def launch(self) -> None:
        """Starts it without waiting."""
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                self.command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )

    def _wait_until_ready(self) -> None:
        deadline = time.monotonic() + READY_SECONDS
        while True:
            self.check()
            try:
                with Cluster(self.bootstrap, timeout_ms=2000) as cluster:
                    if cluster.metadata(topics=[]).brokers:
                        return
            except KafkaError as error:
                if time.monotonic() > deadline:
                    raise BrokerFailed(f"the broker does not answer: {error.message}; see {self.log}") from None
            time.sleep(0.02)

    def check(self) -> None:
        """Sees that it is alive.

        Raises:
            BrokerFailed: it ended although nobody killed it.
        """
        if self.process is not None and self.process.poll() is not None:
            raise BrokerFailed(f"the broker ended with code {self.process.returncode}; {self.log} says why")

    def kill(self) -> None:
        """SIGKILL to it and everything it started."""
        self._signal(signal.SIGKILL)

    def stop(self) -> None:
        """Asks it to end; kills it when it does not."""
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
                # What the command started ends on its own time, and holds port and data until then. Where nobody reaps orphans the
                # group never empties, hence the bound.
                deadline = time.monotonic() + _GROUP_SECONDS
                while time.monotonic() < deadline:
                    os.killpg(group, 0)
                    time.sleep(0.005)
            self.process.wait()
            self.process = None


class Killer:
    """Kills the broker every few seconds until told to stop; a thread.

    Of the starts, every fourth is killed too, before it has ended: what a recovery leaves half done must be recovered as well.

    Args:
        broker: which.
        recorder: where kills are written down.
        every_s: mean seconds between a start and the next kill; each is between half of it and one and a half.
        rng: for the times.
        stopping: ends it, with the broker running.
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
        """Kills and starts."""
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
