"""Ordered growth in a stream: a new partition waits until its parent is read up to the fence.

`protocol.ordered_growth` has the meaning of the topic's setting. A batch reads its partitions side by side, so a new partition stays where
it begins until an earlier batch has finished the parent: until the start of the batch has reached the fence.

A query that does not read the parent, because it assigns partitions, reads the new one without waiting.

The driver asks for the setting at its first batch, when partitions are new, and at each batch while a growth is not sealed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from barnabas.protocol.ordered_growth import Generation, hold_of
from barnabas.spark.source.offsets import Position

Growth = Mapping[str, tuple[Generation, ...]]
"""The generations of each topic that has grown in order."""

_NOT_READ = 2**63 - 1


class GrowthHolds:
    """The growth of a query's topics, as of the last look."""

    def __init__(self) -> None:
        self._growth: Growth | None = None

    def __repr__(self) -> str:
        return f"<GrowthHolds {dict(self._growth or {})}>"

    def held_back(
        self, begin: Position, end: Position, *, has_new: bool, look: Callable[[Iterable[str]], Growth]
    ) -> Position:
        """Return where a batch ends, with every partition that must wait at its begin.

        Args:
            begin: where the batch begins, in every partition of `end`.
            has_new: whether a partition is new to the query.
            look: returns the growth of some topics.
        """
        if self._growth is None or has_new or not all(each[-1].is_sealed for each in self._growth.values()):
            self._growth = look(sorted({topic for topic, _ in end}))
        if not self._growth:
            return end
        growth = self._growth
        return {
            (topic, partition): begin[topic, partition]
            if topic in growth and self._waits(growth[topic], topic, partition, begin)
            else offset
            for (topic, partition), offset in end.items()
        }

    @staticmethod
    def _waits(generations: tuple[Generation, ...], topic: str, partition: int, begin: Position) -> bool:
        def reached(parent: int) -> int | None:
            return begin.get((topic, parent), _NOT_READ)

        why = hold_of(generations, partition, reached)
        return why is not None and why.committed != _NOT_READ
