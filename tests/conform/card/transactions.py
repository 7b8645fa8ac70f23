"""Scenarios of transactions: commit and abort, fencing, the timeout, offsets as part of a transaction."""

from __future__ import annotations

import time
from typing import Any

from tests.conform.card.stage import STEP_SECONDS, Stage, numbered, read, record
from tests.conform.driver import Driver

TIMEOUT_MS = 6000
"""Long enough for a client that is slow to send, short enough to wait for."""


def open_producer(stage: Stage, what: str, timeout_ms: int = 60_000) -> Driver:
    producer = stage.driver()
    producer("open_producer", transactional_id=stage.name(what), client_id=stage.prefix, timeout_ms=timeout_ms)
    return producer


def transact(producer: Driver, topic: str, partitions: list[int], word: str, outcome: str | None) -> None:
    producer("begin")
    for partition in partitions:
        producer("send", topic=topic, partition=partition, records=numbered(word, partition, 5))
    if outcome is not None:
        producer(f"{outcome}_transaction")


def values(rows: list[list[Any]]) -> list[list[Any]]:
    """Partition, offset and value of each row, partition by partition."""
    return sorted([row[1], row[2], row[4]] for row in rows)


def commit_and_abort(stage: Stage) -> None:
    """What is committed is read, what is aborted is not, and read_committed waits before a transaction that is open."""
    topic = stage.topic("orders", 2)
    producer = open_producer(stage, "writer")
    transact(producer, topic, [0, 1], "first", "commit")
    transact(producer, topic, [0, 1], "aborted", "abort")
    transact(producer, topic, [0], "second", "commit")
    committed = stage.reader(topic, partitions=2)
    found = read(committed, 15)
    expected = [f"first {p} {i}" for p in (0, 1) for i in range(5)] + [f"second 0 {i}" for i in range(5)]
    assert sorted(row[4] for row in found) == sorted(expected)
    stage.transcript.append(values(found))
    everything = stage.reader(topic, partitions=2, isolation="read_uncommitted")
    stage.transcript.append(values(read(everything, 25)))
    transact(producer, topic, [1], "open", None)
    assert len(read(everything, 5)) == 5
    assert committed("poll", max=100, timeout_ms=1000) == []
    producer("commit_transaction")
    assert sorted(row[4] for row in read(committed, 5)) == [f"open 1 {i}" for i in range(5)]
    stage.transcript.append([committed("bounds", topic=topic, partition=p) for p in (0, 1)])
    producer.close()


def fencing(stage: Stage) -> None:
    """A second producer with the same transactional id ends the first one's transaction and shuts it out."""
    topic = stage.topic("fenced")
    zombie = open_producer(stage, "one")
    transact(zombie, topic, [0], "zombie", None)
    alive = open_producer(stage, "one")
    transact(alive, topic, [0], "alive", "commit")
    stage.refused(zombie, "commit_transaction")
    reader = stage.reader(topic)
    found = read(reader, 5)
    assert [row[4] for row in found] == [f"alive 0 {i}" for i in range(5)]
    stage.transcript.append(values(found))
    transact(alive, topic, [0], "again", "commit")
    assert [row[4] for row in read(reader, 5)] == [f"again 0 {i}" for i in range(5)]
    alive.close()


def timeout(stage: Stage) -> None:
    """A transaction that nobody ends is aborted after its timeout, and readers get past it."""
    topic = stage.topic("abandoned")
    lazy = open_producer(stage, "lazy", timeout_ms=TIMEOUT_MS)
    transact(lazy, topic, [0], "abandoned", None)
    writer = stage.driver()
    writer("open_producer", transactional_id=None, client_id=stage.prefix, timeout_ms=60_000)
    writer("send", topic=topic, partition=0, records=[record(None, "after")])
    reader = stage.reader(topic)
    found = read(reader, 1)
    assert [row[4] for row in found] == ["after"]
    stage.transcript.append(values(found))
    writer.close()


def offsets_in_transaction(stage: Stage) -> None:
    """Read, transform, write: an aborted attempt leaves output and offsets as they were, a committed one moves both."""
    source, target = stage.topic("source", 2), stage.topic("target", 2)
    group = stage.name("copiers")
    writer = stage.driver()
    writer("open_producer", transactional_id=None, client_id=stage.prefix, timeout_ms=60_000)
    for partition in range(2):
        writer("send", topic=source, partition=partition, records=numbered("in", partition, 10))
    writer.close()
    partitions = [[source, 0], [source, 1]]
    observer = stage.driver()
    observer("assign", group=group, isolation="read_committed", partitions=partitions)
    for outcome in ("abort", "commit"):
        copier = open_producer(stage, "copier")
        stage.subscribe(copier, group, [source])
        rows = read(copier, 20)
        assert values(rows) == [[p, i, f"in {p} {i}"] for p in range(2) for i in range(10)]
        copier("begin")
        for partition in range(2):
            copies = [record(None, f"out {row[4]}") for row in rows if row[1] == partition]
            copier("send", topic=target, partition=partition, records=copies)
        copier("send_offsets", group=group, offsets=[[source, p, 10] for p in range(2)])
        copier(f"{outcome}_transaction")
        copier.close()
        expected = None if outcome == "abort" else 10
        wait_for_offsets(observer, partitions, expected)
        stage.transcript.append([outcome, observer("committed", partitions=partitions)])
    found = read(stage.reader(target, partitions=2), 20)
    assert sorted(row[4] for row in found) == sorted(f"out in {p} {i}" for p in range(2) for i in range(10))
    stage.transcript.append(values(found))


def wait_for_offsets(observer: Driver, partitions: list[list[Any]], expected: int | None) -> None:
    """The markers of the end of a transaction are written after EndTxn has answered; until then older clients see the old offsets."""
    deadline = time.monotonic() + STEP_SECONDS
    while any(row[2] != expected for row in observer("committed", partitions=partitions)):
        assert time.monotonic() < deadline, observer("committed", partitions=partitions)
