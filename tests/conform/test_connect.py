"""Kafka Connect on barnabas and on Apache Kafka: lines of a file through a topic into another file.

Standalone: one process, its offsets in a file. Distributed: workers form a group of the type "connect", keep connectors,
offsets and statuses in compacted topics that they create and verify, and with exactly-once sources write in transactions.
"""

from __future__ import annotations

import json
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import apache_kafka
import pytest

from tests.conform.brokers import BarnabasProcess, KafkaProcess, broker

pytestmark = [pytest.mark.conform, pytest.mark.timeout(3600)]

# Apache Kafka shows that the tests demand only what Kafka promises; that does not change from run to run.
BROKERS = ("barnabas", pytest.param("apache-kafka", marks=pytest.mark.long))
SETTINGS = {
    "group.initial.rebalance.delay.ms": "0",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "offsets.topic.replication.factor": "1",
}
TEXT = "org.apache.kafka.connect.storage.StringConverter"
SECONDS = 240


@pytest.fixture(params=BROKERS)
def under_test(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[BarnabasProcess | KafkaProcess]:
    with broker(request.param, tmp_path / "broker", SETTINGS) as started:
        yield started


class Worker:
    """One Connect worker in a JVM of its own."""

    def __init__(self, folder: Path, name: str, main_class: str, *files: tuple[str, dict[str, str]]) -> None:
        self.folder = folder
        self.port = apache_kafka.free_port()
        paths = []
        for file, properties in files:
            path = folder / f"{name}-{file}.properties"
            given = {**properties, "listeners": f"http://127.0.0.1:{self.port}"} if file == "worker" else properties
            path.write_text("".join(f"{key}={value}\n" for key, value in given.items()))
            paths.append(str(path))
        self.log = folder / f"{name}.log"
        jars = apache_kafka.library("connect", "connect-runtime", "connect-file")
        command = ["java", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", jars]
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                [*command, f"org.apache.kafka.connect.cli.{main_class}", *paths], stdout=log, stderr=log
            )

    def ask(self, method: str, path: str, body: object = None) -> Any:
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}{path}",
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=120) as answer:
            text = answer.read()
        return json.loads(text) if text else None

    def tell(self, method: str, path: str, body: object = None) -> Any:
        """A request that changes something, sent until the worker takes it: it answers 409 (400 of an old
        version of the configuration) during a rebalance, and 500 when one lasts. All are such that twice is as good as once."""
        deadline = time.monotonic() + SECONDS
        while True:
            try:
                return self.ask(method, path, body)
            except urllib.error.HTTPError as error:
                if method == "DELETE" and error.code == 404:
                    return None  # It was taken the first time, whatever the answer said.
                if error.code not in (400, 409, 500) or time.monotonic() > deadline:
                    raise AssertionError(f"{error} {error.read()!r}\n{self.log.read_text()[-3000:]}") from None
            time.sleep(0.3)

    def when(self, path: str, wanted: Callable[[Any], bool]) -> Any:
        """What a GET answers, once it is what is wanted."""
        found: object = None
        deadline = time.monotonic() + SECONDS
        while time.monotonic() < deadline:
            try:
                found = self.ask("GET", path)
                if wanted(found):
                    return found
            except (urllib.error.URLError, ConnectionError, TimeoutError) as error:
                found = error
            assert self.process.poll() is None, self.log.read_text()[-3000:]
            time.sleep(0.3)
        raise AssertionError(f"{found}\n{self.log.read_text()[-3000:]}")

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(SECONDS)
            except subprocess.TimeoutExpired:
                self.kill()

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(30)

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def worker_settings(bootstrap: str, **more: str) -> dict[str, str]:
    common = {
        "bootstrap.servers": bootstrap,
        "key.converter": TEXT,
        "value.converter": TEXT,
        "offset.flush.interval.ms": "500",
        "plugin.discovery": "only_scan",
        # A sink's first offsets may be looked for before its topic is there.
        "consumer.metadata.max.age.ms": "1000",
    }
    return {**common, **{name.replace("_", "."): value for name, value in more.items()}}


def source(path: Path) -> dict[str, str]:
    created = {"topic.creation.default.partitions": "1", "topic.creation.default.replication.factor": "1"}
    return {"connector.class": "FileStreamSource", "tasks.max": "1", "file": str(path), "topic": "lines", **created}


def sink(path: Path) -> dict[str, str]:
    return {"connector.class": "FileStreamSink", "tasks.max": "1", "file": str(path), "topics": "lines"}


def append(path: Path, first: int, last: int) -> None:
    with path.open("a") as file:
        file.writelines(f"line {index}\n" for index in range(first, last))


def await_lines(path: Path, count: int, worker: Worker) -> list[str]:
    """All lines of a file, once so many different ones are there."""
    deadline = time.monotonic() + SECONDS
    lines: list[str] = []
    while time.monotonic() < deadline:
        lines = path.read_text().splitlines() if path.exists() else []
        if len(set(lines)) >= count:
            return lines
        time.sleep(0.2)
    raise AssertionError(f"{len(lines)} of {count} lines\n{worker.log.read_text()[-3000:]}")


def expected(count: int) -> list[str]:
    return [f"line {index}" for index in range(count)]


def test_standalone(under_test: BarnabasProcess | KafkaProcess, tmp_path: Path) -> None:
    given, got = tmp_path / "given.txt", tmp_path / "got.txt"
    append(given, 0, 200)
    files = (
        (
            "worker",
            worker_settings(under_test.bootstrap_servers, offset_storage_file_filename=str(tmp_path / "offsets")),
        ),
        ("source", {"name": "in", **source(given)}),
        ("sink", {"name": "out", **sink(got)}),
    )
    with Worker(tmp_path, "first", "ConnectStandalone", *files) as worker:
        assert await_lines(got, 200, worker) == expected(200)
    append(given, 200, 300)
    with Worker(tmp_path, "second", "ConnectStandalone", *files) as worker:
        assert await_lines(got, 300, worker) == expected(300), "nothing twice, nothing left out"


def distributed(bootstrap: str, **more: str) -> dict[str, str]:
    return worker_settings(
        bootstrap,
        group_id="connect-cluster",
        config_storage_topic="connect-configs",
        offset_storage_topic="connect-offsets",
        status_storage_topic="connect-status",
        config_storage_replication_factor="1",
        offset_storage_replication_factor="1",
        status_storage_replication_factor="1",
        offset_storage_partitions="3",
        status_storage_partitions="2",
        scheduled_rebalance_max_delay_ms="0",
        session_timeout_ms="6000",
        heartbeat_interval_ms="1000",
        exactly_once_source_support="enabled",
        **more,
    )


def running(status: Any) -> bool:
    return status["connector"]["state"] == "RUNNING" and [task["state"] for task in status["tasks"]] == ["RUNNING"]


def test_distributed_workers_take_over_from_each_other(
    under_test: BarnabasProcess | KafkaProcess, tmp_path: Path
) -> None:
    given, got = tmp_path / "given.txt", tmp_path / "got.txt"
    append(given, 0, 200)
    settings = distributed(under_test.bootstrap_servers)
    with Worker(tmp_path, "first", "ConnectDistributed", ("worker", settings)) as first:
        first.when("/connectors", lambda connectors: connectors == [])
        first.tell("PUT", "/connectors/in/config", source(given))
        first.tell("PUT", "/connectors/out/config", sink(got))
        first.when("/connectors/in/status", running)
        first.when("/connectors/out/status", running)
        assert await_lines(got, 200, first) == expected(200)
        with Worker(tmp_path, "second", "ConnectDistributed", ("worker", settings)) as second:
            second.when("/connectors", lambda connectors: sorted(connectors) == ["in", "out"])

            def moved(status: Any) -> bool:
                if any(task["state"] == "FAILED" for task in status["tasks"]):
                    # A task that begins while the leader dies fails for want of the leader's help, and Connect leaves it to its operator.
                    second.tell("POST", f"/connectors/{status['name']}/restart?includeTasks=true&onlyFailed=true")
                addresses = {task["worker_id"] for task in status["tasks"]}
                return running(status) and addresses == {f"127.0.0.1:{second.port}"}

            first.kill()
            second.when("/connectors/in/status", moved)
            second.when("/connectors/out/status", moved)
            append(given, 200, 300)
            lines = await_lines(got, 300, second)
            # The source is exactly once; the sink may write again what it had not committed when it was killed.
            assert list(dict.fromkeys(lines)) == expected(300)
            offsets = [{"partition": {"filename": str(given)}, "offset": {"position": given.stat().st_size}}]
            second.when("/connectors/in/offsets", lambda answer: answer["offsets"] == offsets)
            second.tell("PUT", "/connectors/in/stop")
            second.when("/connectors/in/status", lambda status: status["connector"]["state"] == "STOPPED")
            second.tell("DELETE", "/connectors/in/offsets")
            second.tell("DELETE", "/connectors/in")
            second.when("/connectors", lambda connectors: connectors == ["out"])
