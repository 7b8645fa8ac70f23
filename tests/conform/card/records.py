"""Scenarios of plain records: every compression, big batches, idempotence, positions, times, compaction, a restart of the broker."""

from __future__ import annotations

import time
from typing import Any

from tests.conform.card.stage import CODECS, STEP_SECONDS, Stage, digest, numbered, read, record, send

MANY_YEARS_AGO_MS = 1_400_000_000_000


def codecs(stage: Stage) -> None:
    """Keys, headers, null and empty values, Unicode: through each codec, idempotent and not, read back whole."""
    records = [
        record("a", "first", headers=[["trace", "1"], ["trace", "2"]]),
        record(None, "no key"),
        record("gone", None, headers=[] if "null headers" in stage.traits else [["why", None]]),
        record("", ""),
        record("ключ", "значение ✓", headers=[["h", "é"]]),
        *(record(f"k{i}", f"value {i} " * 20) for i in range(50)),
    ]
    topic = stage.topic("codecs")
    producer = stage.driver()
    rounds = 0
    for codec in CODECS:
        if codec not in stage.codecs:
            continue
        for acks, idempotent in (("all", True), ("1", False)):
            offsets = send(producer, topic, 0, records, compression=codec, acks=acks, idempotent=idempotent)
            assert offsets == list(range(rounds * len(records), (rounds + 1) * len(records))), offsets
            rounds += 1
    reader = stage.reader(topic, isolation="read_uncommitted")
    found = read(reader, len(records) * rounds)
    assert [row[3:] for row in found] == [[r["key"], r["value"], r["headers"]] for r in records] * rounds
    assert [row[2] for row in found] == list(range(len(found)))
    stage.transcript.append([found[0], found[-1], reader("bounds", topic=topic, partition=0)])


def batches(stage: Stage) -> None:
    """Batches near the limit, and records of 900 KB, in two partitions of three; a record over the topic's limit is refused."""
    topic = stage.topic("big", 3)
    narrow = stage.topic("narrow", max_message_bytes="2000")
    producer = stage.driver()
    small = [record(None, f"{i:04d}" * 256) for i in range(1000)]
    large = [record(None, "x" * 900_000 + str(i)) for i in range(3)]
    for partition, records in ((0, small), (1, large)):
        offsets = send(producer, topic, partition, records, batch_bytes=900_000)
        assert offsets == list(range(len(records)))
    reader = stage.reader(topic, partitions=3)
    found = read(reader, len(small) + len(large))
    by_partition = {p: [row[4] for row in found if row[1] == p] for p in (0, 1)}
    assert by_partition == {0: [r["value"] for r in small], 1: [r["value"] for r in large]}
    stage.transcript.append([digest(by_partition[0]), digest(by_partition[1])])
    too_big = {
        "compression": "none",
        "acks": "all",
        "idempotent": False,
        "batch_bytes": 16384,
        "max_request_bytes": 1_000_000,
    }
    stage.refused(producer, "produce", topic=narrow, partition=0, records=[record(None, "y" * 5000)], **too_big)


def positions(stage: Stage) -> None:
    """Positions move as told: to the end, into the middle of a batch, back to the start."""
    topic = stage.topic("positions")
    writer = stage.driver()
    for part in range(4):
        send(writer, topic, 0, numbered("seek", part, 25))
    reader = stage.reader(topic)
    read(reader, 1)  # librdkafka only seeks in a partition that it already fetches
    for offset in (99, 17, 50, 0):
        reader("seek", topic=topic, partition=0, offset=offset)
        row = read(reader, 1)[0]
        assert row[2] == offset, row
        stage.transcript.append(row)


def times(stage: Stage) -> None:
    """Offsets are found by time: exactly, between two records, before the first, after the last."""
    topic = stage.topic("times", retention_ms="-1")
    writer = stage.driver()
    stamps = [MANY_YEARS_AGO_MS + i * 1000 for i in (0, 1, 2, 7, 7, 5)]
    for i, stamp in enumerate(stamps):
        send(writer, topic, 0, [record(str(i), str(i), timestamp=stamp)])
    reader = stage.reader(topic)
    asked = {0: 0, 1000: 1, 1500: 2, 2001: 3, 5000: 3, 7000: 3, 7001: None, -5000: 0}
    found = {
        delta: reader("offset_for_time", topic=topic, partition=0, timestamp=MANY_YEARS_AGO_MS + delta)
        for delta in asked
    }
    assert found == asked
    stage.transcript.append(found)


def compaction(stage: Stage) -> None:
    """What a reader finds of a compacted topic, once the cleaner was there: each key's last value, at its old offset."""
    topic = stage.topic("compacted", cleanup_policy="compact", min_cleanable_dirty_ratio="0.01", segment_ms="100",
                        delete_retention_ms="86400000")  # fmt: skip
    writer = stage.driver()
    for generation in range(3):
        send(writer, topic, 0, [record(f"k{i}", f"generation {generation}") for i in range(10)], idempotent=True)
    send(writer, topic, 0, [record("k3", None)], idempotent=True)
    expected = {(20 + i, f"k{i}", "generation 2") for i in range(10) if i != 3} | {(30, "k3", None)}
    deadline = time.monotonic() + STEP_SECONDS
    nudges = 0
    while True:  # a segment is rolled by the next append after segment.ms, and only rolled segments are cleaned
        send(writer, topic, 0, [record("nudge", str(nudges))])
        nudges += 1
        reader = stage.reader(topic)
        end = reader("bounds", topic=topic, partition=0)[1]
        found: list[Any] = []
        while not found or found[-1][2] < end - 1:
            found += reader("poll", max=500, timeout_ms=500)
            assert time.monotonic() < deadline, f"{len(found)} records, the end is {end}"
        reader.close()
        kept = {(row[2], row[3], row[4]) for row in found if row[3] != "nudge"}
        assert kept >= expected, kept
        if kept == expected:
            break
        assert time.monotonic() < deadline, f"not compacted: {sorted(kept - expected)}"
    stage.transcript.append(sorted(kept, key=str))
    keyless = {
        "compression": "none",
        "acks": "all",
        "idempotent": False,
        "batch_bytes": 16384,
        "max_request_bytes": 1_000_000,
    }
    stage.refused(writer, "produce", topic=topic, partition=0, records=[record(None, "no key")], **keyless)


def restart(stage: Stage) -> None:
    """The broker stops and starts again under an open consumer: records and offsets are what they were, and the clients carry on."""
    topic = stage.topic("restart", 2)
    writer = stage.driver()
    for partition in range(2):
        send(writer, topic, partition, numbered("before", partition, 10), idempotent=True)
    reader = stage.reader(topic, partitions=2)
    before = read(reader, 20)
    stage.broker.stop()
    stage.broker.start()
    for partition in range(2):
        send(writer, topic, partition, numbered("after", partition, 5), idempotent=True)
    after = read(reader, 10)
    assert sorted(row[4] for row in after) == sorted(f"after {p} {i}" for p in range(2) for i in range(5))
    fresh = stage.reader(topic, partitions=2)
    again = read(fresh, 30)
    assert sorted(map(str, again)) == sorted(map(str, before + after))
    stage.transcript.append([sorted(before), sorted(after), fresh("bounds", topic=topic, partition=1)])
