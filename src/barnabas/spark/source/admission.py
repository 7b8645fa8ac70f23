"""How many of the new offsets one micro-batch takes.

Two limits, as in Spark's Kafka source:

- `maxOffsetsPerTrigger`: at most this many offsets, shared among the partitions in proportion to their waiting offsets.
  Each partition with waiting offsets gets at least one, so that none starves; the sum may therefore exceed the limit
  by less than the number of partitions.
- `minOffsetsPerTrigger`: no batch until this many offsets wait, or until `maxTriggerDelay` has passed since the last
  batch began.

Positions are dictionaries by (topic, partition). The caller adds a partition that is new to the query to `start`.
"""

from __future__ import annotations

from collections.abc import Mapping

from barnabas.spark.source.offsets import Position, TopicPartition


def take_at_most(limit: int, start: Mapping[TopicPartition, int], end: Mapping[TopicPartition, int]) -> Position:
    """Return a position between start and end that is about `limit` offsets past start.

    Partitions without new offsets, or whose end went backwards, get the offset of `end`; the caller decides whether
    that is an error.
    """
    waiting = {tp: end[tp] - start[tp] for tp in end if tp in start and end[tp] > start[tp]}
    total = sum(waiting.values())
    if total <= limit:
        return dict(end)
    return {tp: start[tp] + max(1, limit * waiting[tp] // total) if tp in waiting else end[tp] for tp in end}


class MinimumOffsets:
    """Holds a batch back until enough offsets wait or enough time has passed.

    The first batch after a query starts is never held back.
    """

    def __init__(self, min_offsets: int, max_delay_ms: int) -> None:
        self._min_offsets = min_offsets
        self._max_delay_ms = max_delay_ms
        self._last_trigger_ms: int | None = None

    def __repr__(self) -> str:
        return f"<MinimumOffsets min={self._min_offsets} delay_ms={self._max_delay_ms} last_ms={self._last_trigger_ms}>"

    def holds_back(self, start: Mapping[TopicPartition, int], end: Mapping[TopicPartition, int], now_ms: int) -> bool:
        """Return True if the batch from start to end must wait, False if it runs now."""
        waiting = sum(max(0, offset - start.get(tp, 0)) for tp, offset in end.items())
        since_ms = None if self._last_trigger_ms is None else now_ms - self._last_trigger_ms
        if waiting < self._min_offsets and since_ms is not None and since_ms < self._max_delay_ms:
            return True
        self._last_trigger_ms = now_ms
        return False
