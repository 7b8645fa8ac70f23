"""Filters of a batch that narrow what is read: on topic, partition, offset and timestamp.

Spark offers the parts of a `where` that are joined by `and` (`spark.sql.python.filterPushdown.enabled`).

- `topic`, `partition`, `offset` against constants: no partition and no offset is read that cannot match. These are
  exact, so Spark does not apply them again.
- `timestamp` from below: the leader finds the first offset at or after the moment, and all records before it are older.
  Records after it may be older as well, so Spark applies the filter again. A moment from above excludes nothing, because
  producers' timestamps need not ascend.
- Everything else is left to Spark.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from pyspark.sql.datasource import (
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    LessThan,
    LessThanOrEqual,
)

from barnabas.spark.source.offsets import Position, TopicPartition

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NEVER_NULL = ("topic", "partition", "offset", "timestamp")


class PushedFilters:
    """The rows that the filters leave to read; at first everything."""

    def __init__(self) -> None:
        self._topics: set[str] | None = None
        self._partitions: set[int] | None = None
        self._partition_range = _Range()
        self._offset_range = _Range()
        self.since_ms: int | None = None

    def __repr__(self) -> str:
        return (
            f"<PushedFilters topics={self._topics} partitions={self._partitions} "
            f"partition_range={self._partition_range} offsets={self._offset_range} since_ms={self.since_ms}>"
        )

    def push(self, filters: Iterable[Filter]) -> Iterator[Filter]:
        """Take filters; yield those that Spark must still apply."""
        for each in filters:
            if not self._take(each):
                yield each

    def partitions(self, partitions: Iterable[TopicPartition]) -> list[TopicPartition]:
        """Return the partitions that may have matching records."""
        return [
            (topic, partition)
            for topic, partition in partitions
            if (self._topics is None or topic in self._topics)
            and (self._partitions is None or partition in self._partitions)
            and partition in self._partition_range
        ]

    def narrow(self, start: Position, end: Position, since: Position) -> tuple[Position, Position]:
        """Return the part of the offsets between two positions that may match.

        Args:
            since: the first offset at or after `since_ms` in each partition, -1 if it has none; empty without `since_ms`.
        """
        low, high = self._offset_range.low, self._offset_range.high
        first: Position = {}
        last: Position = {}
        for each in self.partitions(start):
            first[each] = max(start[each], end[each] if since.get(each) == -1 else since.get(each, 0), low)
            last[each] = min(end[each], high + 1)
        return first, last

    def _take(self, each: Filter) -> bool:
        """Note what a filter excludes; return whether nothing is left of it for Spark."""
        attribute: tuple[str, ...] = getattr(each, "attribute", ())
        column = attribute[0] if len(attribute) == 1 else ""
        if isinstance(each, IsNotNull):
            return column in _NEVER_NULL
        value = getattr(each, "value", None)
        if column == "topic" and isinstance(each, EqualTo | In):
            self._topics = _both(self._topics, _values(each, str))
            return True
        if column == "partition" and isinstance(each, In):
            self._partitions = _both(self._partitions, _values(each, int))
            return True
        if column in ("partition", "offset") and type(value) is int:
            return (self._partition_range if column == "partition" else self._offset_range).take(each, value)
        if column == "timestamp" and isinstance(value, datetime) and value.tzinfo is not None:
            self._take_moment(each, value)
        return False

    def _take_moment(self, each: Filter, moment: datetime) -> None:
        if isinstance(each, EqualTo | GreaterThanOrEqual | GreaterThan):
            # Records have milliseconds, Spark has microseconds.
            micros = (moment - _EPOCH) // timedelta(microseconds=1)
            ms = micros // 1000 + 1 if isinstance(each, GreaterThan) else -(-micros // 1000)
            self.since_ms = max(self.since_ms or 0, ms)


class _Range:
    """The whole numbers `low <= n <= high`."""

    def __init__(self) -> None:
        self.low = 0
        self.high = 2**63 - 2

    def __repr__(self) -> str:
        return f"{self.low}..{self.high}"

    def __contains__(self, number: int) -> bool:
        return self.low <= number <= self.high

    def take(self, each: Filter, value: int) -> bool:
        """Narrow the range by a comparison; return False for any other filter."""
        if isinstance(each, EqualTo):
            self.low, self.high = max(self.low, value), min(self.high, value)
        elif isinstance(each, GreaterThanOrEqual | GreaterThan):
            self.low = max(self.low, value + isinstance(each, GreaterThan))
        elif isinstance(each, LessThanOrEqual | LessThan):
            self.high = min(self.high, value - isinstance(each, LessThan))
        else:
            return False
        return True


def _values(each: EqualTo | In, kind: type) -> set[Any]:
    values = each.value if isinstance(each, In) else (each.value,)
    # A comparison with null is never true.
    return {value for value in values if isinstance(value, kind)}


def _both(known: set[Any] | None, more: set[Any]) -> set[Any]:
    return more if known is None else known & more
