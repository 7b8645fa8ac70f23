"""Where reading begins or ends, as users write it: `from_` and `to` of `barnabas.read`, `--from` and `--to`.

    "earliest", "start", "beginning"       the first offset of each partition
    "latest", "end"                        the end of each partition
    "-1h", "2026-11-21T08:00", "@TIME"     the first record at or after a time; also a datetime
    "group:NAME", "cut:NAME"               what a group committed; a cut
    47, "47", "+2", "-3"                   exactly there, 2 after the start, 3 before the end, in each partition
    {0: 47, 1: 12}                         by partition, if one topic is read
    {"orders": {0: 47}}, or as JSON        by topic and partition; -1 is the end and -2 the beginning

That is the grammar of the Spark source (`barnabas.spark.source.offsets`) and the points of `barnabas consume`. A text
of digits is an offset, as on the command line: a time in milliseconds is written `@1763712000000`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, TypeAlias

from barnabas.client.log_points import Anchor, Point
from barnabas.spark.source.offset_reader import OffsetReader
from barnabas.spark.source.offsets import (
    ByTimestamp,
    Earliest,
    Latest,
    OffsetLimit,
    Specific,
    TopicPartition,
    from_spark,
    limit_from_text,
)
from barnabas.words.times import parse_time_ms

Place: TypeAlias = "str | int | datetime | Mapping[int, int] | Mapping[str, Mapping[int, int]]"

_WORDS: dict[str, OffsetLimit] = {"start": Earliest(), "beginning": Earliest(), "end": Latest()}


def parse_place(place: Place, topics: Sequence[str], now_ms: int) -> OffsetLimit | Point:
    """Parse a beginning or an end.

    Args:
        topics: those that are read.
        now_ms: times such as `-1h` count back from it.

    Raises:
        ValueError: it has none of the forms, or it has offsets by partition and several topics are read.
    """
    if isinstance(place, str):
        return _from_text(place.strip(), now_ms)
    if isinstance(place, datetime):
        moment = place if place.tzinfo is not None else place.replace(tzinfo=UTC)
        return ByTimestamp(round(moment.timestamp() * 1000))
    if isinstance(place, Mapping):
        return Specific(from_spark(_by_topic(place, topics)))
    if isinstance(place, bool) or not isinstance(place, int) or place < 0:
        raise ValueError(f"{place!r} is not a position: write an offset from 0 on, or a text such as earliest or -1h")
    return Point(Anchor.EXACT, place)


def settle(place: OffsetLimit | Point, reader: OffsetReader, partitions: Iterable[TopicPartition]) -> OffsetLimit:
    """Return a place as the offset reader takes it: a point becomes an offset in each partition."""
    if not isinstance(place, Point):
        return place
    wanted = list(partitions)
    first, last = reader.earliest(wanted), reader.latest(wanted)
    return Specific({each: place.resolve(first[each], last[each]) for each in wanted})


def _from_text(text: str, now_ms: int) -> OffsetLimit | Point:
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    if text.startswith("@"):
        return ByTimestamp(parse_time_ms(text[1:], now_ms))
    return Point.of_number(text) or limit_from_text(text, now_ms)


def _by_topic(place: Mapping[Any, Any], topics: Sequence[str]) -> dict[str, dict[str, int]]:
    """Return offsets as Spark writes them."""
    if all(isinstance(name, str) and isinstance(table, Mapping) for name, table in place.items()):
        return {name: {str(partition): offset for partition, offset in table.items()} for name, table in place.items()}
    if len(topics) != 1:
        raise ValueError("offsets by partition fit one topic: write {topic: {partition: offset}} for several")
    return {topics[0]: {str(partition): offset for partition, offset in place.items()}}
