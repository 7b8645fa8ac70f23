"""The two brokers a conformance test runs on, behind one shape: barnabas as a process of its own, and Apache Kafka.

Each is a context manager with `bootstrap_servers`, `start()`, `stop()`, `kill()` and `data_dir`; both use a free port
and a folder of the test's.
"""

from __future__ import annotations

import select
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Protocol

from apache_kafka import ApacheKafka, free_port

from barnabas.client.admin import Admin, TopicPartition
from barnabas.client.offsets import LATEST
from barnabas.protocol.errors import KafkaError

READY_SECONDS = 240
STOP_SECONDS = 120


class BrokerUnderTest(Protocol):
    name: str
    data_dir: Path

    @property
    def bootstrap_servers(self) -> str: ...
    def start(self) -> None: ...
    def stop(self) -> None: ...
    def kill(self) -> None: ...


class BarnabasProcess:
    """`barnabas start` in a process of its own."""

    name = "barnabas"

    def __init__(self, folder: Path, port: int = 0, settings: dict[str, str] | None = None) -> None:
        self.folder = folder
        self.data_dir = folder / "data"
        self.port = port or free_port()
        self.settings = settings or {}
        self.process: subprocess.Popen[str] | None = None

    @property
    def bootstrap_servers(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        assert self.process is not None
        return self.process.pid

    def arguments(self) -> list[str]:
        """What follows `barnabas start`."""
        found = ["--data-dir", str(self.data_dir), "--listen", self.bootstrap_servers]
        for key, value in self.settings.items():
            found += ["--set", f"{key}={value}"]
        return found

    def start(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-m", "barnabas.main", "start", *self.arguments()]
        with open(self.folder / "server.log", "a") as log:
            self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
        assert self.process.stdout is not None
        deadline = time.monotonic() + READY_SECONDS
        ready, _, _ = select.select([self.process.stdout], [], [], deadline - time.monotonic())
        line = self.process.stdout.readline() if ready else ""
        if "barnabas ready on" not in line:
            self.kill()
            raise RuntimeError(f"barnabas did not start: {line!r} {(self.folder / 'server.log').read_text()[-2000:]}")

    def stop(self) -> None:
        if self.process is not None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                self.kill()
                raise
            self._close()

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self._close()

    def _close(self) -> None:
        assert self.process is not None
        # The bench launches the process itself, without a pipe.
        if self.process.stdout is not None:
            self.process.stdout.close()
        self.process = None

    def __enter__(self) -> BarnabasProcess:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


class KafkaProcess(ApacheKafka):
    """Apache Kafka with the name a report prints."""

    name = "apache-kafka"


def broker(name: str, folder: Path, settings: dict[str, str] | None = None) -> BarnabasProcess | KafkaProcess:
    return BarnabasProcess(folder, settings=settings) if name == "barnabas" else KafkaProcess(folder, settings=settings)


def await_leaders(bootstrap: str, topics: dict[str, int], seconds: float = READY_SECONDS) -> None:
    """Wait until the broker leads every partition of these topics, given with their numbers of partitions.

    The controller answers for itself when a topic is created; a broker learns of it after that, and leads a moment later still.
    """
    ends = {TopicPartition(name, index): LATEST for name, count in topics.items() for index in range(count)}
    deadline = time.monotonic() + seconds
    with Admin(bootstrap) as admin:
        while late := [each for each, found in admin.list_offsets(ends).items() if isinstance(found, KafkaError)]:
            assert time.monotonic() < deadline, f"these were created and cannot be read: {late}"
            time.sleep(0.02)


def alive(one: BarnabasProcess | KafkaProcess) -> bool:
    """Whether the broker's process runs."""
    return one.process is not None and one.process.poll() is None
