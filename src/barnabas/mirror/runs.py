"""Which offset of the source became which offset of the target, in one partition.

    source  10 11 12    15 16          run (source 10, target 0, length 3), run (source 15, target 4, length 2)
    target   0  1  2     4  5          target 3 is the marker of a transaction

A run is a row of records that stand side by side in both logs. Both offsets grow from run to run. Control records, aborted records and
records that a mask dropped have no place in the target; a position at one of them is that of the next record that has.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterable
from typing import NamedTuple


class Run(NamedTuple):
    """Records side by side: the first offset in each log, and how many they are."""

    source: int
    target: int
    length: int


def runs_of(places: Iterable[tuple[int, int]]) -> list[Run]:
    """Return the runs of some records.

    Args:
        places: source and target offset of each record, in their order.
    """
    found: list[Run] = []
    for source, target in places:
        last = found[-1] if found else None
        if last is not None and (source, target) == (last.source + last.length, last.target + last.length):
            found[-1] = last._replace(length=last.length + 1)
        else:
            found.append(Run(source, target, 1))
    return found


class Runs:
    """All runs of a partition, in three arrays: a mirror of years has millions of them."""

    def __init__(self, runs: Iterable[Run] = ()) -> None:
        self._source, self._target, self._length = array("q"), array("q"), array("q")
        self.extend(runs)

    def __repr__(self) -> str:
        return f"<Runs {len(self._source)} end={self.end}>"

    def __len__(self) -> int:
        return len(self._source)

    @property
    def end(self) -> int:
        """The target's offset after the last record; 0 if there is none."""
        return self._target[-1] + self._length[-1] if self._source else 0

    def extend(self, runs: Iterable[Run]) -> None:
        """Append runs that lie behind those that are there."""
        for run in runs:
            assert not self._source or (run.source >= self._source[-1] + self._length[-1] and run.target >= self.end), (
                run
            )
            self._source.append(run.source)
            self._target.append(run.target)
            self._length.append(run.length)

    def translate(self, source: int) -> int:
        """Return the target's offset of the first record whose source offset is at least `source`; `end` if there is none yet."""
        at = bisect_right(self._source, source) - 1
        if at >= 0 and source < self._source[at] + self._length[at]:
            return self._target[at] + source - self._source[at]
        return self._target[at + 1] if at + 1 < len(self._source) else self.end
