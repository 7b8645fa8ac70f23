"""Ranges of offsets, and how they are cut into tasks.

Plane: control, pure.

One range is one task. Without options there is a range per partition that has anything to read.
`maxRecordsPerPartition` cuts each range into equal parts that are no longer than asked. `minPartitions`, when there
are still fewer ranges than asked, shares the wanted number among the ranges in proportion to their length: ranges too
short to be cut are set aside first, so that their lengths do not eat into the share of the long ones (the arithmetic
of Spark's `KafkaOffsetRangeCalculator`).

Invariants:

- the parts of a range touch, do not overlap and cover it;
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
        """How many offsets the range spans."""
        return self.end - self.start


def cut_ranges(
    ranges: Iterable[OffsetRange], min_partitions: int | None = None, max_records_per_partition: int | None = None
) -> list[OffsetRange]:
    """Return the ranges that tasks read.

    Args:
        ranges: at most one per partition; empty ones are dropped.
        min_partitions: the least number of ranges wanted, or None.
        max_records_per_partition: the greatest length of a range, or None.
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
