"""The scenario every client library goes through, on barnabas and on Apache Kafka, and what each step must show.

The scenario is written against the driver commands (drivers/protocol.md), so that one text serves librdkafka,
kafka-python, aiokafka and the Java clients. It returns a transcript of what the clients saw, without addresses and
times: the transcripts of the two brokers must be equal. Steps: every compression with keys, headers, empty and null
values; big batches; seek and replay; look-up by time; a group of three that loses a member; commits that survive a
restart of the broker in the middle; a replay by a second group.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import time
from collections.abc import Callable
from typing import Any

from confluent_kafka.admin import AdminClient, NewTopic

from tests.conform.brokers import BrokerUnderTest

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
STEP_SECONDS = 60
SESSION_MS = 6000


class Driver:
    """One driver process, spoken to in JSON lines."""

    def __init__(self, command: list[str]) -> None:
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )

    def ask(self, do: str, **fields: Any) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"do": do, **fields}) + "\n")
        self.process.stdin.flush()

    def answer(self) -> Any:
        assert self.process.stdout is not None
        answer = json.loads(self.process.stdout.readline() or '{"error": "the driver ended"}')
        if "error" in answer:
            raise AssertionError(f"{answer['error']}\n{answer.get('trace', '')}")
        return answer["ok"]

    def __call__(self, do: str, **fields: Any) -> Any:
        self.ask(do, **fields)
        return self.answer()

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def close(self) -> None:
        if self.process.poll() is None:
            self("close")
            self.process.wait(30)


class Scenario:
    """One run: a broker, a way to make drivers, and the transcript."""

    def __init__(self, broker: BrokerUnderTest, make: Callable[[str], list[str]]) -> None:
        self.broker = broker
        self.make = make
        self.transcript: list[Any] = []
        self.open: list[Driver] = []
        self.backlog: list[list[Any]] = []

    def driver(self) -> Driver:
        driver = Driver(self.make(self.broker.bootstrap_servers))
        self.open.append(driver)
        return driver

    def create_topic(self, name: str, partitions: int, **config: str) -> None:
        admin = AdminClient({"bootstrap.servers": self.broker.bootstrap_servers})
        admin.create_topics([NewTopic(name, partitions, 1, config=config)])[name].result(30)

    def run(self) -> list[Any]:
        try:
            for step in (self.every_compression, self.big_batches, self.seek_and_replay, self.group_of_three,
                         self.restart_in_the_middle, self.second_group):  # fmt: skip
                self.transcript.append(step.__name__)
                step()
        finally:
            for driver in self.open:
                driver.kill()
        return self.transcript

    # --- steps ---------------------------------------------------------------------------------------------------

    def every_compression(self) -> None:
        """Keys, headers, null and empty values, Unicode: through each codec, idempotent and not, read back whole."""
        records = [
            {"key": "a", "value": "first", "headers": [["trace", "1"], ["trace", "2"]]},
            {"key": None, "value": "no key", "headers": []},
            {"key": "gone", "value": None, "headers": [["why", None]]},
            {"key": "", "value": "", "headers": [["", ""]]},
            {"key": "ключ", "value": "значение ✓", "headers": [["h", "é"]]},
            *({"key": f"k{i}", "value": f"value {i} " * 20, "headers": []} for i in range(50)),
        ]
        self.create_topic("codecs", 1)
        producer = self.driver()
        if producer("version").startswith("kafka-python"):
            records[2]["headers"] = []  # it refuses headers without a value
        for codec in CODECS:
            for acks, idempotent in (("all", True), ("1", False)):
                offsets = send(producer, "codecs", 0, records, compression=codec, acks=acks, idempotent=idempotent)
                self.transcript.append([codec, acks, offsets[0], offsets[-1]])
        reader = self.driver()
        reader("assign", group=None, partitions=[["codecs", 0]], isolation="read_uncommitted")
        found = read(reader, len(records) * len(CODECS) * 2)
        expected = [[r["key"], r["value"], r["headers"]] for r in records] * (len(CODECS) * 2)
        assert [row[3:] for row in found] == expected
        assert [row[2] for row in found] == list(range(len(expected)))
        self.transcript.append([found[0], found[-1], reader("bounds", topic="codecs", partition=0)])
        reader.close()
        producer.close()

    def big_batches(self) -> None:
        """Batches near the limit, and records of 900 KB, in one partition of three."""
        self.create_topic("big", 3)
        producer = self.driver()
        small = [{"key": None, "value": f"{i:04d}" * 256, "headers": []} for i in range(2000)]
        large = [{"key": None, "value": "x" * 900_000 + str(i), "headers": []} for i in range(3)]
        for partition, records in ((0, small), (1, large)):
            offsets = send(producer, "big", partition, records, compression="none", batch_bytes=900_000)
            assert offsets == list(range(len(records)))
        reader = self.driver()
        reader("assign", group=None, partitions=[["big", 0], ["big", 1], ["big", 2]], isolation="read_committed")
        found = read(reader, len(small) + len(large))
        by_partition = {p: [row[4] for row in found if row[1] == p] for p in (0, 1)}
        assert by_partition == {0: [r["value"] for r in small], 1: [r["value"] for r in large]}
        self.transcript.append([digest(by_partition[0]), digest(by_partition[1])])
        reader.close()
        producer.close()

    def seek_and_replay(self) -> None:
        """Positions move as told: back to the start, into the middle of a batch, to the end."""
        reader = self.driver()
        reader("assign", group="seekers", partitions=[["codecs", 0]], isolation="read_uncommitted")
        read(reader, 1)  # librdkafka only seeks in a partition that it already fetches
        for offset in (0, 17, 160, 545):
            reader("seek", topic="codecs", partition=0, offset=offset)
            row = read(reader, 1)[0]
            assert row[2] == offset, row
            self.transcript.append(row)
        assert reader("offset_for_time", topic="codecs", partition=0, timestamp=0) == 0
        assert reader("offset_for_time", topic="codecs", partition=0, timestamp=2**42) is None
        reader.close()

    def group_of_three(self) -> None:
        """Three members share six partitions; one is killed, and the other two take over what it had."""
        self.create_topic("shared", 6)
        members = [self.driver() for _ in range(3)]
        for member in members:
            member("subscribe", group="trio", topics=["shared"], strategy="range", session_ms=SESSION_MS,
                   heartbeat_ms=500, instance=None)  # fmt: skip
        self.wait_for_assignment(members, 6)
        self.transcript.append(sorted(len(member("assignment")) for member in members))
        producer = self.driver()
        for partition in range(6):
            send(producer, "shared", partition, numbered("before", partition, 10))
        seen = self.read_all(members, 60)
        self.commit_all(members, seen)
        members[1].kill()
        survivors = [members[0], members[2]]
        for partition in range(6):
            send(producer, "shared", partition, numbered("after", partition, 10))
        again = self.read_all(survivors, 60)
        assert {row[4] for row in again} == {f"after {p} {i}" for p in range(6) for i in range(10)}
        self.wait_for_assignment(survivors, 6)
        self.backlog = []
        self.transcript.append(sorted(len(member("assignment")) for member in survivors))
        self.commit_all(survivors, again)
        self.transcript.append(survivors[0]("committed", partitions=[["shared", p] for p in range(6)]))
        for member in survivors:
            member.close()
        producer.close()

    def restart_in_the_middle(self) -> None:
        """The broker stops and starts again: records, offsets and commits are what they were, and clients carry on."""
        reader = self.driver()
        reader("assign", group="trio", partitions=[["shared", p] for p in range(6)], isolation="read_uncommitted")
        assert reader("poll", max=1, timeout_ms=1000) == []  # every client has asked for its positions now
        assert reader("committed", partitions=[["shared", p] for p in range(6)]) == [
            ["shared", p, 20] for p in range(6)
        ]
        before = [reader("bounds", topic="shared", partition=p) for p in range(6)]
        self.broker.stop()
        self.broker.start()
        producer = self.driver()
        for partition in range(6):
            send(producer, "shared", partition, numbered("restarted", partition, 5))
        found = read(reader, 30)
        expected = sorted(f"restarted {p} {i}" for p in range(6) for i in range(5))
        assert sorted(row[4] for row in found) == expected, found
        fresh = self.driver()
        fresh("assign", group="trio", partitions=[["shared", p] for p in range(6)], isolation="read_uncommitted")
        after = [fresh("bounds", topic="shared", partition=p) for p in range(6)]
        assert [[low, high + 5] for low, high in before] == after
        self.transcript.append([before, after, fresh("committed", partitions=[["shared", p] for p in range(6)])])
        for driver in (reader, fresh, producer):
            driver.close()

    def second_group(self) -> None:
        """Another group replays everything from the start, each partition in order."""
        reader = self.driver()
        reader("subscribe", group="replay", topics=["shared"], strategy="cooperative-sticky", session_ms=SESSION_MS,
               heartbeat_ms=500, instance="replayer")  # fmt: skip
        found = read(reader, 150)
        for partition in range(6):
            values = [row[4] for row in found if row[1] == partition]
            written = (("before", 10), ("after", 10), ("restarted", 5))
            expected = [f"{word} {partition} {i}" for word, n in written for i in range(n)]
            assert values == expected
        reader("commit", offsets=[["shared", p, 25, f"note {p}"] for p in range(6)])
        self.transcript.append(reader("committed", partitions=[["shared", p] for p in range(6)]))
        reader.close()

    # --- what steps share ----------------------------------------------------------------------------------------

    def wait_for_assignment(self, members: list[Driver], partitions: int) -> None:
        """Poll the members until together they own each partition once; what comes meanwhile is kept for read_all."""
        deadline = time.monotonic() + STEP_SECONDS
        while True:
            self.backlog += poll_together(members)
            owned = [tuple(tp) for member in members for tp in member("assignment")]
            if len(owned) == len(set(owned)) == partitions and all(member("assignment") for member in members):
                return
            assert time.monotonic() < deadline, f"no balanced assignment: {owned}"

    def read_all(self, members: list[Driver], count: int) -> list[list[Any]]:
        """Poll the members until `count` different offsets were seen."""
        deadline = time.monotonic() + STEP_SECONDS
        found = {(row[0], row[1], row[2]): row for row in self.backlog}
        self.backlog = []
        while len(found) < count:
            found |= {(row[0], row[1], row[2]): row for row in poll_together(members)}
            assert time.monotonic() < deadline, f"{len(found)} of {count} records"
        return list(found.values())

    def commit_all(self, members: list[Driver], rows: list[list[Any]]) -> None:
        ends: dict[tuple[str, int], int] = {}
        for topic, partition, offset, *_ in rows:
            ends[topic, partition] = max(offset + 1, ends.get((topic, partition), 0))
        for member in members:
            mine = [[t, p, ends[t, p], ""] for t, p in map(tuple, member("assignment")) if (t, p) in ends]
            if mine:
                member("commit", offsets=mine)


def poll_together(members: list[Driver]) -> list[list[Any]]:
    """One poll of every member at the same time: a rebalance needs them all."""
    for member in members:
        member.ask("poll", max=500, timeout_ms=300)
    return [row for member in members for row in member.answer()]


def numbered(word: str, partition: int, count: int) -> list[dict[str, Any]]:
    return [{"key": str(i), "value": f"{word} {partition} {i}", "headers": []} for i in range(count)]


def send(driver: Driver, topic: str, partition: int, records: list[dict[str, Any]], **how: Any) -> list[int]:
    settings = {"compression": "none", "acks": "all", "idempotent": False, "batch_bytes": 16384,
                "max_request_bytes": 1_000_000, **how}  # fmt: skip
    offsets: list[int] = driver("produce", topic=topic, partition=partition, records=records, **settings)
    return offsets


def read(driver: Driver, count: int) -> list[list[Any]]:
    """Poll until at least `count` records came; more is the caller's business to notice."""
    deadline = time.monotonic() + STEP_SECONDS
    found: list[list[Any]] = []
    while len(found) < count:
        found += driver("poll", max=count - len(found), timeout_ms=500)
        assert time.monotonic() < deadline, f"{len(found)} of {count} records"
    return found


def digest(values: list[str]) -> str:
    return hashlib.sha256("\n".join(values).encode()).hexdigest()
