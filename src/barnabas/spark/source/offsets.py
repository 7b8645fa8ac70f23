"""Offsets in a query: where it begins, where it ends, and its position between two triggers.

Inside this package a position is a dictionary `{(topic, partition): offset}`. Outside it is the JSON of Spark's own
Kafka source, `{"topic": {"0": 42}}`; a `startingOffsets` copied from a checkpoint of either source works in the other.
In JSON an offset of -1 means the end of the partition and -2 its beginning.

Where a query begins or ends is one `OffsetLimit`:

- `Earliest`, `Latest`: the ends of every partition;
- `Specific`: one offset per partition (`-1`, `-2` as above);
- `ByTimestamp`: the first offset at or after one timestamp, the same for every partition;
- `ByPartitionTimestamp`: the same with a timestamp per partition;
- `ByGroup`, `ByCut`: what the cluster keeps under a name (`named_positions`).

A timestamp is written as milliseconds since 1970 (Spark's form), as ISO 8601 (`2026-11-21T08:00`, UTC unless it names a
zone) or relative to now (`-2h`, `-10m`, `-1d12h`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NoReturn, TypeAlias

TopicPartition: TypeAlias = tuple[str, int]
Position: TypeAlias = dict[TopicPartition, int]
SparkOffsets: TypeAlias = dict[str, dict[str, int]]

LATEST_OFFSET = -1
EARLIEST_OFFSET = -2

_OFFSETS_EXAMPLE = '{"topicA":{"0":23,"1":-1},"topicB":{"0":-2}}'
_OTHER_FORMS = "or earliest, latest, group:NAME, cut:NAME, a time (2026-11-21T08:00), a time before now (-10m)"
_TIMESTAMPS_EXAMPLE = '{"topicA":{"0":1763712000000,"1":1763712000000}}'
_ASSIGN_EXAMPLE = '{"topicA":[0,1],"topicB":[0,1]}'
_INT64_MAX = 2**63 - 1

_UNIT_MS = {"ms": 1, "s": 1_000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}
_RELATIVE = re.compile(r"-((?:\d+(?:ms|min|[smhdw]))+)", re.IGNORECASE)
_STARTS_LIKE_A_MOMENT = re.compile(r"-?\d")
_RELATIVE_PART = re.compile(r"(\d+)(ms|min|[smhdw])", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Earliest:
    """The first offset of each partition."""


@dataclass(frozen=True, slots=True)
class Latest:
    """The end of each partition in the query's isolation level."""


@dataclass(frozen=True, slots=True)
class Specific:
    """An offset for each partition; `-1` is the end and `-2` the beginning."""

    offsets: Mapping[TopicPartition, int]


@dataclass(frozen=True, slots=True)
class ByTimestamp:
    """The first offset at or after `timestamp_ms` in every partition."""

    timestamp_ms: int


@dataclass(frozen=True, slots=True)
class ByPartitionTimestamp:
    """The first offset at or after a timestamp per partition."""

    timestamps_ms: Mapping[TopicPartition, int]


@dataclass(frozen=True, slots=True)
class ByGroup:
    """The offsets that a consumer group committed."""

    group_id: str


@dataclass(frozen=True, slots=True)
class ByCut:
    """The offsets of a cut."""

    name: str


OffsetLimit: TypeAlias = Earliest | Latest | Specific | ByTimestamp | ByPartitionTimestamp | ByGroup | ByCut


def to_spark(position: Mapping[TopicPartition, int]) -> SparkOffsets:
    """Return the position as Spark stores it: sorted, so that equal positions are equal text."""
    out: SparkOffsets = {}
    for topic, partition in sorted(position):
        out.setdefault(topic, {})[str(partition)] = position[topic, partition]
    return out


def from_spark(offsets: Mapping[str, Mapping[str, int]]) -> Position:
    """Return the position from a dictionary that Spark stored, without what `stored_offset` adds to it.

    Raises:
        ValueError: the dictionary does not have the form `{"topic": {"0": 42}}`.
    """
    return _partition_values(offsets, json.dumps(offsets), _OFFSETS_EXAMPLE)


def limit_from_text(text: str, now_ms: int) -> OffsetLimit:
    """Parse `startingOffsets` or `endingOffsets`.

    Args:
        text: `earliest`, `latest`, `group:NAME`, `cut:NAME`, JSON by partition, or a timestamp that is not a number.

    Raises:
        ValueError: the text is none of these.
    """
    text = text.strip()
    ends: dict[str, OffsetLimit] = {"earliest": Earliest(), "latest": Latest()}
    if text.lower() in ends:
        return ends[text.lower()]
    kind, colon, name = text.partition(":")
    if colon and kind.lower() in ("group", "cut"):
        if not name:
            raise ValueError(f"'{text}' names no {kind.lower()}: write {kind.lower()}:NAME")
        return ByGroup(name) if kind.lower() == "group" else ByCut(name)
    # A number would be read as an offset by people and as a moment by us.
    if _STARTS_LIKE_A_MOMENT.match(text) and not text.lstrip("-").isdigit():
        return ByTimestamp(timestamp_ms(text, now_ms))
    try:
        return Specific(offsets_from_json(text))
    except ValueError as error:
        raise ValueError(f"{error}; {_OTHER_FORMS}") from None


def offsets_from_json(text: str) -> Position:
    """Parse `startingOffsets` or `endingOffsets` written per partition."""
    return _partition_values(_load(text, _OFFSETS_EXAMPLE), text, _OFFSETS_EXAMPLE)


def timestamps_from_json(text: str, now_ms: int) -> dict[TopicPartition, int]:
    """Parse timestamps per partition from JSON; each is a number or a text that `timestamp_ms` accepts."""
    table = _load(text, _TIMESTAMPS_EXAMPLE)
    out: dict[TopicPartition, int] = {}
    for topic, partitions in table.items():
        if not isinstance(partitions, dict):
            _expected(_TIMESTAMPS_EXAMPLE, text)
        for partition, moment in partitions.items():
            if isinstance(moment, bool) or not isinstance(moment, int | str) or not partition.isdecimal():
                _expected(_TIMESTAMPS_EXAMPLE, text)
            out[topic, int(partition)] = timestamp_ms(str(moment), now_ms)
    return out


def assignment_from_json(text: str) -> list[TopicPartition]:
    """Parse the `assign` option, `{"topicA":[0,1]}`."""
    table = _load(text, _ASSIGN_EXAMPLE)
    out: list[TopicPartition] = []
    for topic, partitions in table.items():
        if not isinstance(partitions, list) or not all(type(p) is int and p >= 0 for p in partitions):
            _expected(_ASSIGN_EXAMPLE, text)
        out += [(topic, partition) for partition in partitions]
    return sorted(set(out))


def timestamp_ms(text: str, now_ms: int) -> int:
    """Return a timestamp as milliseconds since 1970.

    Args:
        text: milliseconds, ISO 8601, or a time before now such as `-2h`.
        now_ms: the current time, for relative timestamps.

    Raises:
        ValueError: the text has none of the three forms; the message names them.
    """
    text = text.strip()
    if text.isascii() and text.isdigit():
        return int(text)
    if relative := _RELATIVE.fullmatch(text):
        return max(0, now_ms - sum(int(n) * _UNIT_MS[unit.lower()] for n, unit in _RELATIVE_PART.findall(relative[1])))
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(
            f"'{text}' is not a valid timestamp: write milliseconds since 1970 (1763712000000), "
            "ISO 8601 (2026-11-21T08:00, UTC unless it names a zone) or a time before now (-2h, -10m, -1d12h)"
        ) from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return round(moment.timestamp() * 1000)


def check_order(start: OffsetLimit, end: OffsetLimit) -> None:
    """Raise the error of Spark's own source for a batch that begins after its end, if the limits alone show it."""
    if isinstance(start, ByTimestamp) and isinstance(end, ByTimestamp):
        if start.timestamp_ms > end.timestamp_ms:
            raise ValueError(
                f"The specified start timestamp {start.timestamp_ms} is greater than the end timestamp {end.timestamp_ms}"
            )
    elif isinstance(start, Specific) and isinstance(end, Specific):
        _check_each("offset", start.offsets, end.offsets)
    elif isinstance(start, ByPartitionTimestamp) and isinstance(end, ByPartitionTimestamp):
        _check_each("timestamp", start.timestamps_ms, end.timestamps_ms)


def _check_each(kind: str, start: Mapping[TopicPartition, int], end: Mapping[TopicPartition, int]) -> None:
    for topic, partition in sorted(set(start) & set(end)):
        begin, until = start[topic, partition], end[topic, partition]
        if 0 <= until < begin:
            raise ValueError(
                f"The specified start {kind} {begin} is greater than the end {kind} {until} for topic {topic} partition "
                f"{partition}."
            )


def missing_partitions(wanted: Iterable[TopicPartition], given: Mapping[TopicPartition, int]) -> str | None:
    """Return an error message if the given values do not name exactly the partitions read, else None."""
    wanted_set = set(wanted)
    if wanted_set == set(given):
        return None
    return (
        "you must specify all TopicPartitions. Use -1 for latest, -2 for earliest, if you don't care. "
        f"Specified: {_names(given)} Assigned: {_names(wanted_set)}"
    )


def _names(partitions: Iterable[TopicPartition]) -> str:
    return "[" + ", ".join(f"{topic}-{partition}" for topic, partition in sorted(partitions)) + "]"


def _load(text: str, example: str) -> dict[str, Any]:
    try:
        table = json.loads(text)
    except json.JSONDecodeError:
        _expected(example, text)
    if not isinstance(table, dict):
        _expected(example, text)
    return table


def _partition_values(table: Mapping[str, Any], text: str, example: str) -> Position:
    out: Position = {}
    for topic, partitions in table.items():
        if topic.startswith("~"):
            continue
        if not isinstance(partitions, dict):
            _expected(example, text)
        for partition, offset in partitions.items():
            if not partition.isdecimal() or type(offset) is not int or not EARLIEST_OFFSET <= offset <= _INT64_MAX:
                _expected(example, text)
            out[topic, int(partition)] = offset
    return out


def _expected(example: str, got: str) -> NoReturn:
    raise ValueError(f"Expected e.g. {example}, got {got}")
