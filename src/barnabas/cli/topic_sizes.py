"""How large topics are and how fast they grow: `topic list --sizes --rates`, and the figures of `plan --topic`.

A rate is that of the records whose timestamps are within a window before now. What compaction removed, and markers of transactions,
count as records. Bytes are those of logs on disk, so they are compressed.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from barnabas.cli.log_bounds import Bounds, log_bounds
from barnabas.cli.output import json_name
from barnabas.client.admin import Admin, OffsetAndTimestamp, TopicMetadata, TopicPartition
from barnabas.protocol.errors import KafkaError
from barnabas.words.byte_sizes import format_bytes


class Column(NamedTuple):
    """A column of the list.

    Attributes:
        name: its title.
        values: by topic, as JSON has them; None for unknown.
        words: what a table shows for a value.
        json: the field's name in JSON; None for the title's.
    """

    name: str
    values: Mapping[str, Any]
    words: Callable[[Any], str] | None = None
    json: str | None = None

    def cell(self, topic: str) -> object:
        value = self.values[topic]
        return value if value is None or self.words is None else self.words(value)

    def field(self, topic: str) -> tuple[str, object]:
        return self.json or json_name(self.name), self.values[topic]


class Stored(NamedTuple):
    """Bytes of logs: of the leaders, and of all replicas."""

    leaders: int
    replicas: int


class Rate(NamedTuple):
    """The records and bytes that a topic got in a second."""

    records: float
    bytes: float


def stored_bytes(admin: Admin, leaders: Mapping[TopicPartition, int]) -> dict[str, Stored]:
    """Return the bytes of each topic.

    Args:
        leaders: by partition, a broker or -1.

    Raises:
        KafkaError: a broker does not answer.
    """
    sizes: dict[str, list[int]] = {each.topic: [0, 0] for each in leaders}
    for broker, folders in admin.describe_log_dirs(partitions=leaders).items():
        if isinstance(folders, KafkaError):
            raise folders
        for replica in (each for folder in folders for each in folder.replicas):
            of_topic = sizes.get(replica.partition.topic)
            if of_topic is None or replica.is_future:
                continue
            of_topic[1] += replica.size_in_bytes
            if leaders.get(replica.partition) == broker:
                of_topic[0] += replica.size_in_bytes
    return {name: Stored(*found) for name, found in sizes.items()}


def first_since(
    admin: Admin, partitions: Iterable[TopicPartition], since_ms: int
) -> dict[TopicPartition, OffsetAndTimestamp]:
    """Return the first record at or after a time; a partition without one, or without a leader, is left out."""
    found = admin.list_offsets(dict.fromkeys(partitions, since_ms))
    return {at: each for at, each in found.items() if isinstance(each, OffsetAndTimestamp) and each.offset >= 0}


def seconds_of(
    first: Mapping[TopicPartition, OffsetAndTimestamp],
    bounds: Mapping[TopicPartition, Bounds],
    *,
    window_ms: int,
    now_ms: int,
) -> float:
    """Return the seconds in which the records from `first` on came, at least one: a topic may be younger than the window.

    Args:
        first: the first record of each partition within the window; not empty.
    """
    is_young = all(each.offset == bounds[at][0] for at, each in first.items())
    oldest_ms = min(each.timestamp for each in first.values()) if is_young else now_ms - window_ms
    return max(now_ms - oldest_ms, 1000) / 1000


def rates(
    admin: Admin,
    topics: Iterable[TopicMetadata],
    bounds: Mapping[TopicPartition, Bounds],
    stored: Mapping[str, Stored],
    *,
    window_ms: int,
    now_ms: int,
) -> dict[str, Rate | None]:
    """Return the rate of each topic; None if one of its partitions has no leader."""
    known = {at: (start, end) for at, (start, end) in bounds.items() if start is not None and end is not None}
    first: dict[str, dict[TopicPartition, OffsetAndTimestamp]] = defaultdict(dict)
    for at, each in first_since(admin, known, now_ms - window_ms).items():
        first[at.topic][at] = each
    found: dict[str, Rate | None] = {}
    for topic in topics:
        places = [TopicPartition(topic.name, each.partition) for each in topic.partitions]
        if not all(at in known for at in places):
            found[topic.name] = None
        elif topic.name not in first:
            found[topic.name] = Rate(0, 0)
        else:
            of_topic = first[topic.name]
            seconds = seconds_of(of_topic, bounds, window_ms=window_ms, now_ms=now_ms)
            records = sum(known[at][1] - each.offset for at, each in of_topic.items()) / seconds
            kept = sum(known[at][1] - known[at][0] for at in places)
            found[topic.name] = Rate(records, records * stored[topic.name].leaders / max(kept, 1))
    return found


def figures(admin: Admin, topics: list[TopicMetadata], *, sizes: bool, window_ms: int | None) -> list[Column]:
    """Return the columns of sizes, and those of rates if there is a window.

    Raises:
        KafkaError: a broker does not answer.
    """
    leaders = {TopicPartition(each.name, found.partition): found.leader for each in topics for found in each.partitions}
    stored = stored_bytes(admin, leaders)
    bounds = log_bounds(admin, leaders)
    columns = []
    if sizes:
        columns = [
            Column("RECORDS", {each.name: _records(each, bounds) for each in topics}),
            Column("SIZE", {name: found.leaders for name, found in stored.items()}, format_bytes, "size_bytes"),
            Column(
                "REPLICAS-SIZE",
                {name: found.replicas for name, found in stored.items()},
                format_bytes,
                "replicas_bytes",
            ),
        ]
    if window_ms is not None:
        now_ms = time.time_ns() // 1_000_000
        found = rates(admin, topics, bounds, stored, window_ms=window_ms, now_ms=now_ms)
        columns += [
            Column(
                "RECORDS/S",
                {name: each and round(each.records, 3) for name, each in found.items()},
                lambda each: f"{each:,.1f}",
                "records_per_sec",
            ),
            Column(
                "BYTES/S",
                {name: each and round(each.bytes, 3) for name, each in found.items()},
                lambda each: format_bytes(round(each)),
                "bytes_per_sec",
            ),
        ]
    return columns


def _records(topic: TopicMetadata, bounds: Mapping[TopicPartition, Bounds]) -> int | None:
    """Return the offsets of a topic's logs; None if a partition has no leader."""
    total = 0
    for each in topic.partitions:
        start, end = bounds[TopicPartition(topic.name, each.partition)]
        if start is None or end is None:
            return None
        total += end - start
    return total
