"""Ranges of offsets, and how they are split into tasks.

One range is one task. Without options each partition that has new offsets is one range. `maxRecordsPerPartition` splits
each range into equal parts of at most this length. If there are then fewer ranges than `minPartitions`, the missing
ones are shared among the ranges in proportion to their length. Ranges that are too short to split are taken out first,
so that the long ranges share the rest (the arithmetic of Spark's `KafkaOffsetRangeCalculator`). Because of rounding
there may be a few tasks fewer or more than `minPartitions`.

Invariants:

- the parts of a range are adjacent, do not overlap and cover it;
- no part is empty;
- the order of partitions is kept.

A range's length counts offsets, not records: compaction and transactions leave gaps, so a task may read fewer records.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise


@dataclass(frozen=True, slots=True)
class OffsetRange:
    """The offsets `start <= offset < end` of one partition."""

    topic: str
    partition: int
    start: int
    end: int

    def __post_init__(self) -> None:
        assert 0 <= self.start <= self.end, self

    @property
    def size(self) -> int:
        """The number of offsets in the range."""
        return self.end - self.start


def cut_ranges(
    ranges: Iterable[OffsetRange], min_partitions: int | None = None, max_records_per_partition: int | None = None
) -> list[OffsetRange]:
    """Return the ranges that tasks read.

    Args:
        ranges: at most one per partition; empty ones are dropped.
        min_partitions: the minimum number of ranges wanted, or None.
        max_records_per_partition: the maximum length of a range, or None.
    """
    whole = [r for r in ranges if r.size > 0]
    if max_records_per_partition is not None:
        whole = [part for r in whole for part in _cut(r, -(-r.size // max_records_per_partition))]
    if min_partitions is None or len(whole) >= min_partitions:
        return whole
    return _cut_by_length(whole, min_partitions)


def _cut_by_length(ranges: Sequence[OffsetRange], min_partitions: int) -> list[OffsetRange]:
    total = sum(r.size for r in ranges)
    short = {r for r in ranges if _share(r.size, total, min_partitions) == 1}
    rest = total - sum(r.size for r in short)
    wanted = min_partitions - len(short)
    return [part for r in ranges for part in _cut(r, 1 if r in short else _share(r.size, rest, wanted))]


def _share(size: int, total: int, parts: int) -> int:
    return max(1, round(size / total * parts))


def _cut(whole: OffsetRange, parts: int) -> list[OffsetRange]:
    parts = min(parts, whole.size)
    cuts = [whole.start + whole.size * i // parts for i in range(parts + 1)]
    return [replace(whole, start=a, end=b) for a, b in pairwise(cuts)]
