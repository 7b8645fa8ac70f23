"""Kafka Connect on barnabas and on Apache Kafka: lines of a file through a topic into another file.

Standalone: one process, its offsets in a file. Distributed: workers form a group of the type "connect", keep connectors,
offsets and statuses in compacted topics that they create and verify, and with exactly-once sources write in transactions.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conform.brokers import BarnabasProcess, KafkaProcess, broker
from tests.conform.connect_worker import SECONDS, Worker, distributed, running, sink, source, worker_settings

pytestmark = [pytest.mark.conform, pytest.mark.timeout(3600)]

# Apache Kafka shows that the tests demand only what Kafka promises; that does not change from run to run.
BROKERS = ("barnabas", pytest.param("apache-kafka", marks=pytest.mark.long))
SETTINGS = {
    "group.initial.rebalance.delay.ms": "0",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "offsets.topic.replication.factor": "1",
}


@pytest.fixture(params=BROKERS)
def under_test(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[BarnabasProcess | KafkaProcess]:
    with broker(request.param, tmp_path / "broker", SETTINGS) as started:
        yield started


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
