"""A compacted topic: keys, tombstones, and transactions that are aborted, while each broker cleans its own replica.

- Two transactional producers write, each to keys of its own, so that the order of a key's records is known. Every record has its number
  in a header, also a tombstone.
- A reader reads all again and again, with read_committed. Of each key it finds the last record that was committed before it began, or a
  later one. A tombstone may be gone if it was older than delete.retention.ms when the reader reached the end.
- In the end the replica of each node is judged in the same way, from the bytes on its disk: its own transaction markers, and no list of
  aborted transactions, say what is committed.

A replica that is behind for longer than delete.retention.ms may miss a tombstone, and keep the former value, here as in Apache Kafka.
"""

from __future__ import annotations

import asyncio
import random
from typing import Any

from barnabas.log.log_manager import LogManager
from barnabas.records.control import ControlRecordType, control_type
from barnabas.records.record import iter_records
from barnabas.records.record_batch import iter_batches
from tests.simulation.client import Asks, Connect
from tests.simulation.cluster_client import TRANSACTION, ClusterClient
from tests.simulation.history import History, Partition
from tests.simulation.judged_node import JudgedNode
from tests.simulation.keyed_history import Entry, Found, Reading
from tests.simulation.side_topic import View
from tests.simulation.transactions import (
    READ_COMMITTED,
    Refused,
    TransactionalProducer,
    end_offset,
    find_coordinator,
    read_committed_records,
)
from tests.simulation.workload import LOST

KEYED = Partition("keyed", 0)
KEYS = 3
"""Of each writer."""
DELETE_RETENTION_MS = 2500
HEADER = "number"
TOMBSTONE_RATE, COMMIT_RATE = 0.25, 0.7
CLEANER = {
    "log.cleaner.backoff.ms": "200",
    "log.cleaner.dedupe.buffer.size": "100000",
    "log.segment.delete.delay.ms": "500",
}
"""The settings of brokers that clean often."""


class KeyedTopic:
    """The topic, its writers and its reader."""

    name = KEYED.topic

    def __init__(self, history: History, view: View, rng: Any, pause_seconds: float) -> None:
        self.partitions = self.watched = [KEYED]
        self.settings = {
            "cleanup.policy": "compact",
            "segment.ms": "500",
            "min.cleanable.dirty.ratio": "0.01",
            "delete.retention.ms": str(DELETE_RETENTION_MS),
        }
        self._view, self._found = view, history.keyed
        self._found.partitions, self._found.delete_retention_ms = self.partitions, DELETE_RETENTION_MS
        self._writers = [KeyedWriter(f"k{n}", n + 1, history, view, rng(f"k{n}"), pause_seconds) for n in range(2)]
        self._cleaned: dict[JudgedNode, int] = {}
        self._known_ends: dict[JudgedNode, int] = {}
        # How often an active segment was seen that begins with a record of the future: until then its time never comes, as in Apache Kafka.
        self._excused = 0
        # Whether a node was seen without a tombstone for too long.
        self._late = False

    def workers(self) -> list[Any]:
        return [*self._writers, KeyedReader(self)]

    def counts(self) -> dict[str, int]:
        return {
            "the writers of keys": self._found.committed,
            f"the cleaning of {self.name}": self._found.cleanings + self._excused,
            "the reader of keys": len(self._found.readings),
        }

    def observe(self) -> None:
        jumps = [node.clock_jumped_ms for node in self._view.brokers]
        self._found.skew_ms = max(self._found.skew_ms, max(0, *jumps) - min(0, *jumps))
        for node in self._view.brokers:
            log = node.log(KEYED)
            if log is None:
                continue
            self._known_ends[node] = log.log_end_offset
            self._excused += (log.segments.active.first_timestamp or 0) > self._view.now_ms()
            directory = node.server.log_manager.directory_of(*KEYED)
            cleaned_to = directory.cleaner.cleaned_to(KEYED) if isinstance(directory, LogManager) else 0
            self._found.cleanings += cleaned_to > self._cleaned.get(node, 0)
            self._cleaned[node] = cleaned_to
        if not self._late:
            now_ms = self._view.now_ms()
            self._late = any(
                self._known_ends.get(node, 0) <= each.offset
                for each in self._found.last_tombstones()
                if each.offset >= 0 and now_ms - each.sent_ms > DELETE_RETENTION_MS - self._found.skew_ms
                for node in self._view.brokers
            )

    def read(self, who: str, required: dict[bytes, int], end: int, records: list[Any]) -> None:
        """Keep what somebody has read."""
        found = [
            Found(each.offset, each.key or b"", each.value, int(dict(each.headers)[HEADER] or 0)) for each in records
        ]
        self._found.readings.append(Reading(who, required, end, self._view.now_ms(), found, self._late))

    def required(self) -> dict[bytes, int]:
        return self._found.required()

    # At the end

    async def read_at_the_end(self, client: ClusterClient) -> None:
        for writer in self._writers:
            await writer.take_over(client)
        end = await end_offset(client, *KEYED)
        while await end_offset(client, *KEYED, READ_COMMITTED) < end:
            await asyncio.sleep(0.1)
        required = self.required()
        self.read("the last reader", required, *await read_to_the_end(client))
        while any((node.high_watermark(KEYED) or 0) < end for node in self._view.brokers):
            await asyncio.sleep(0.1)
        for node in self._view.brokers:
            log = node.log(KEYED)
            if log is not None:
                data = b"".join(bytes(node.disk.contents(segment.path)) for segment in log.segments)
                self.read(node.name, required, end, _committed(data, end))


async def read_to_the_end(client: Asks) -> tuple[int, list[Any]]:
    """Return the last stable offset, and all that is committed below it; what is written meanwhile, too.

    What compaction has removed behind the reader's back has a later record, which it must not miss.
    """
    records: list[Any] = []
    offset = 0
    while offset < (end := await end_offset(client, *KEYED, READ_COMMITTED)):
        records += await read_committed_records(client, *KEYED, offset, end)
        offset = end
    return offset, records


def _committed(data: bytes, end: int) -> list[Any]:
    """Return the committed records of a log's bytes below an offset, by offset; its markers say which they are."""
    view, found = memoryview(data), []
    pending: dict[int, list[Any]] = {}
    for at, header in iter_batches(view):
        if header.base_offset >= end:
            break
        records = list(iter_records(view[at : at + header.size]))
        if not header.is_control:
            pending.setdefault(header.producer_id, []).extend(records)
        elif records:
            written = pending.pop(header.producer_id, [])
            found += written if control_type(records[0].key) is ControlRecordType.COMMIT else []
    return sorted(found, key=lambda record: record.offset)


class KeyedWriter:
    """One transactional id that writes to keys of its own.

    Args:
        version: of transactions, 1 or 2.
    """

    def __init__(
        self, name: str, version: int, history: History, view: View, rng: random.Random, pause_seconds: float
    ) -> None:
        self.name, self._version, self._found, self._rng = name, version, history.keyed, rng
        self._view, self._pause_seconds = view, pause_seconds
        self._producer: TransactionalProducer | None = None

    async def run(self, connect: Connect, loop: Any) -> None:
        client = connect(self.name)
        while True:
            try:
                await self._step(client)
            except (*LOST, Refused):
                # Whatever became of the transaction, the next InitProducerId ends it.
                self._producer = None
                await asyncio.sleep(self._rng.random() * 0.2)
            await asyncio.sleep(self._rng.random() * self._pause_seconds)

    async def _step(self, client: Asks) -> None:
        if self._producer is None:
            self._producer = await self.take_over(client)
        entries = []
        for key in self._rng.sample(range(KEYS), self._rng.randrange(1, KEYS)):
            number = len(self._found.entries)
            value = None if self._rng.random() < TOMBSTONE_RATE else b"%d" % number
            entry = Entry(number, f"{self.name}:{key}".encode(), value, self._view.now_ms())
            self._found.entries[number] = entry
            entries.append(entry)
            headers = [(HEADER, b"%d" % number)]
            entry.offset = await self._producer.send(*KEYED, value, key=entry.key, headers=headers)
            await asyncio.sleep(self._rng.choice((0.0, 0.0, 0.8)) * self._rng.random())
        commit = self._rng.random() < COMMIT_RATE
        for entry in entries:
            entry.is_committed = commit
        await self._producer.end(commit=commit)
        for entry in entries:
            entry.is_acknowledged = True
        self._found.committed += commit

    async def take_over(self, client: Asks) -> TransactionalProducer:
        """End what is open as the next producer does, and return that one."""
        await find_coordinator(client, TRANSACTION, self.name)
        producer = TransactionalProducer(client, self.name, self._version)
        await producer.init()
        return producer


class KeyedReader:
    """Reads everything, again and again."""

    def __init__(self, topic: KeyedTopic) -> None:
        self._topic = topic

    async def run(self, connect: Connect, loop: Any) -> None:
        client = connect("keyed reader")
        while True:
            required = self._topic.required()
            try:
                self._topic.read("a reader", required, *await read_to_the_end(client))
            except (*LOST, Refused):
                pass
            await asyncio.sleep(0.7)
