"""Delivery states over ranges of offsets, and how older and newer ranges become one list.

    so far   0..9 AVAILABLE x1        new   5..14 AVAILABLE x2      start offset 3
    combined 3..4 AVAILABLE x1, 5..14 AVAILABLE x2

Where ranges overlap, the one with more deliveries wins, and among equals the later state (AVAILABLE < ACKNOWLEDGED < ARCHIVING <
ARCHIVED). States only move that way, so the order of the ranges does not matter. Equal neighbours are joined. Ranges below the start
offset are dropped.

Sources: Kafka classes `PersisterStateBatch`, `PersisterStateBatchCombiner`.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from enum import IntEnum
from itertools import pairwise
from typing import NamedTuple

NO_OFFSET = -1


class RecordState(IntEnum):
    """A record's delivery state; the numbers are those of the protocol and of `__share_group_state`."""

    AVAILABLE = 0
    ACQUIRED = 1
    ACKNOWLEDGED = 2
    ARCHIVING = 3
    ARCHIVED = 4

    @property
    def is_terminal(self) -> bool:
        """Whether the record is never delivered again, so that the start offset may pass it."""
        return self is RecordState.ACKNOWLEDGED or self is RecordState.ARCHIVED


class StateBatch(NamedTuple):
    """Both offsets are inclusive; the state is a number of `RecordState` (ACQUIRED is never kept)."""

    first_offset: int
    last_offset: int
    delivery_state: int
    delivery_count: int


def combine(batches: Iterable[StateBatch], start_offset: int) -> tuple[StateBatch, ...]:
    """Return one sorted list without overlaps.

    Args:
        start_offset: ranges below it are dropped; -1 keeps all.
    """
    kept = sorted(
        batch if batch.first_offset >= start_offset else batch._replace(first_offset=start_offset)
        for batch in batches
        if start_offset == NO_OFFSET or batch.last_offset >= start_offset
    )
    borders = sorted({b.first_offset for b in kept} | {b.last_offset + 1 for b in kept})
    combined: list[StateBatch] = []
    covering: list[tuple[int, int, int]] = []  # Most deliveries first, then the latest state.
    next_batch = 0
    for first, end in pairwise(borders):
        while next_batch < len(kept) and kept[next_batch].first_offset <= first:
            batch = kept[next_batch]
            heapq.heappush(covering, (-batch.delivery_count, -batch.delivery_state, batch.last_offset))
            next_batch += 1
        while covering and covering[0][2] < first:
            heapq.heappop(covering)
        if not covering:
            continue
        count, state = -covering[0][0], -covering[0][1]
        last = combined[-1] if combined else None
        if last is not None and last.last_offset + 1 == first and last[2:] == (state, count):
            combined[-1] = last._replace(last_offset=end - 1)
        else:
            combined.append(StateBatch(first, end - 1, state, count))
    return tuple(combined)
