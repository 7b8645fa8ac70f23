"""Kafka Streams on barnabas and on Apache Kafka: a word count over the classic and the streams protocol, exactly once and not."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.client.admin import Admin
from tests.conform.brokers import BarnabasProcess, KafkaProcess, broker
from tests.conform.streams_application import (
    PATIENCE_SECONDS,
    Application,
    Lines,
    compile_word_count,
    counted,
    create_topics,
)

pytestmark = [pytest.mark.conform, pytest.mark.timeout(3600)]

# A rebalance waits for heartbeats; these make it wait for half seconds.
SETTINGS = {
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "1000",
    "group.streams.initial.rebalance.delay.ms": "0",
    "group.streams.min.heartbeat.interval.ms": "500",
    "group.streams.heartbeat.interval.ms": "500",
    "group.streams.min.session.timeout.ms": "1000",
    "group.streams.session.timeout.ms": "6000",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "offsets.topic.replication.factor": "1",
}
PROTOCOLS = ("classic", "streams")
GUARANTEES = ("at_least_once", "exactly_once_v2")
BROKERS = ("barnabas", "apache-kafka")


@pytest.fixture(scope="session")
def word_count(tmp_path_factory: pytest.TempPathFactory) -> str:
    return compile_word_count(tmp_path_factory.mktemp("word_count"))


@pytest.fixture(params=BROKERS)
def under_test(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[BarnabasProcess | KafkaProcess]:
    with broker(request.param, tmp_path / "broker", SETTINGS) as started:
        create_topics(started.bootstrap_servers)
        yield started


def settings(protocol: str, guarantee: str) -> dict[str, str]:
    common = {"application_id": "words", "group_protocol": protocol, "processing_guarantee": guarantee}
    # A killed member of the classic protocol is missed after its own timeout.
    return {**common, "session_timeout_ms": "6000", "heartbeat_interval_ms": "500"} if protocol == "classic" else common


def in_order(counts: dict[str, list[int]]) -> bool:
    """Whether each count came once, and after the one before."""
    return all(values == list(range(1, len(values) + 1)) for values in counts.values())


def at_rest(bootstrap: str, lines: Lines) -> None:
    """Wait until all lines are counted and every transaction is over, its markers too.

    Apache Kafka 4.3.1 that is killed while markers are written may take their partitions for deleted when it comes back, and leave them
    out; then counts are missing (docs/verify.md).
    """
    lines.flush()
    counted(bootstrap, lines.words)
    deadline = time.monotonic() + PATIENCE_SECONDS
    with Admin(bootstrap) as admin:
        while under_way := [
            each for each in admin.list_transactions() if each.state not in ("Empty", "CompleteCommit", "CompleteAbort")
        ]:
            assert time.monotonic() < deadline, under_way
            time.sleep(0.05)


@pytest.mark.parametrize("guarantee", GUARANTEES)
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_words_are_counted_and_the_state_comes_back(
    protocol: str, guarantee: str, under_test: BarnabasProcess | KafkaProcess, word_count: str, tmp_path: Path
) -> None:
    lines = Lines(under_test.bootstrap_servers)
    lines.feed(300)
    lines.flush()
    with Application(
        word_count, under_test.bootstrap_servers, tmp_path / "one", **settings(protocol, guarantee)
    ) as app:
        app.running()
        assert in_order(counted(under_test.bootstrap_servers, lines.words))
        app.close()
    lines.feed(100)
    lines.flush()
    # Another disk: all state must come from the changelog.
    with Application(
        word_count, under_test.bootstrap_servers, tmp_path / "two", **settings(protocol, guarantee)
    ) as app:
        app.running()
        assert in_order(counted(under_test.bootstrap_servers, lines.words))
        assert app.restored() > 0
        app.close()


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_two_instances_share_the_tasks(
    protocol: str, under_test: BarnabasProcess | KafkaProcess, word_count: str, tmp_path: Path
) -> None:
    given = settings(protocol, "exactly_once_v2")
    bootstrap = under_test.bootstrap_servers
    lines = Lines(bootstrap)
    everything = {f"{subtopology}_{index}" for subtopology in (0, 1) for index in range(3)}
    with Application(word_count, bootstrap, tmp_path / "one", **given) as one:
        one.running()
        lines.feed(100)
        lines.flush()
        counted(bootstrap, lines.words)
        with Application(word_count, bootstrap, tmp_path / "two", **given) as two:
            two.running()
            lines.feed(100)
            lines.flush()
            deadline = time.monotonic() + PATIENCE_SECONDS
            while True:
                shares = one.tasks(), two.tasks()
                if shares[0] | shares[1] == everything and len(shares[0]) == len(shares[1]) == 3:
                    break
                assert time.monotonic() < deadline, shares
                lines.feed(10)
                lines.flush()
                counted(bootstrap, lines.words)
            lines.feed(100)
            lines.flush()
            two.kill()  # Its open transaction and its tasks are taken over.
            lines.feed(100)
            lines.flush()
            assert in_order(counted(bootstrap, lines.words))
        one.owns(lambda tasks: tasks == everything)
        one.close()


@pytest.mark.parametrize("name", ["barnabas", pytest.param("apache-kafka", marks=pytest.mark.long)])
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_counts_are_exact_though_the_broker_is_killed(
    protocol: str, name: str, word_count: str, tmp_path: Path
) -> None:
    with broker(name, tmp_path / "broker", SETTINGS) as killed:
        bootstrap = killed.bootstrap_servers
        create_topics(bootstrap)
        lines = Lines(bootstrap)
        with Application(word_count, bootstrap, tmp_path / "one", **settings(protocol, "exactly_once_v2")) as app:
            app.running()
            for _ in range(4):
                lines.feed(400)
                if name == "apache-kafka":
                    at_rest(bootstrap, lines)
                killed.kill()
                killed.start()
                lines.feed(100)
            lines.flush()
            assert in_order(counted(bootstrap, lines.words))
            app.close()
