"""Work on many partitions, in slices.

Such work is a generator. It yields after each slice, so that other work may have a turn of the loop, and returns its result at the end.
`in_turns` runs them so; `at_once` runs all slices in one turn, for work that is known to be small.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Iterator
from typing import Generic, TypeVar

from barnabas.steps import turn

__all__ = ["PARTITIONS_PER_SLICE", "SliceCount", "Slices", "at_once", "in_turns"]

R = TypeVar("R")

PARTITIONS_PER_SLICE = 1_000
"""How many partitions, or topics, a slice looks at: a few milliseconds."""

Slices = Generator[None, None, R]


class SliceCount:
    """Counts what the present slice has looked at."""

    __slots__ = ("_looked_at",)

    def __init__(self) -> None:
        self._looked_at = 0

    def __repr__(self) -> str:
        return f"<SliceCount {self._looked_at}>"

    def ends(self, looked_at: int = 1) -> bool:
        """Count what was looked at; return whether the slice ends here, and the next one begins."""
        self._looked_at += looked_at
        if self._looked_at < PARTITIONS_PER_SLICE:
            return False
        self._looked_at = 0
        return True


class _Running(Generic[R]):
    """Work under way: iterate over its slices, then take its result."""

    result: R

    def __init__(self, work: Slices[R]) -> None:
        self._work = work

    def __iter__(self) -> Iterator[None]:
        self.result = yield from self._work


async def in_turns(work: Slices[R], between: Callable[[], Awaitable[None]] = turn) -> R:
    """Run all slices, and return the result.

    Args:
        between: awaited after each slice; gives other work a turn of the loop.
    """
    running = _Running(work)
    for _ in running:
        await between()
    return running.result


def at_once(work: Slices[R]) -> R:
    """Run all slices, and return the result."""
    running = _Running(work)
    for _ in running:
        pass
    return running.result
