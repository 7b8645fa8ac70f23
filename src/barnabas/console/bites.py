"""A long question in bites, with a rest after each, so that neither the brokers nor the console's other pages wait for it.

A question about 100,000 partitions keeps a broker busy for a second. As a hundred questions with rests it takes longer, and a
producer, or another page, never waits for more than one of them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import TypeVar

T = TypeVar("T")

BITE = 1_000
"""Partitions in one question."""
REST = 1.0
"""A rest in lengths of the bite before it: half of the time nothing is asked."""


class Bites:
    """Cuts questions.

    Args:
        size: things in one question.
        rest: how many times as long as a bite took is the rest after it.
        clock, sleep: seams for tests.
    """

    def __init__(
        self,
        size: int = BITE,
        rest: float = REST,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.size = size
        self._rest = rest
        self._clock = clock
        self._sleep = sleep
        self._began_s = clock()

    def __repr__(self) -> str:
        return f"<Bites size={self.size} rest={self._rest:g}>"

    def of(self, things: Iterable[T], size: int | None = None) -> Iterator[list[T]]:
        """Yield the things in bites, with a rest between two; a caller asks about a bite before it takes the next."""
        left = iter(things)
        self.begin()
        bite = list(islice(left, size or self.size))
        while bite:
            yield bite
            bite = list(islice(left, size or self.size))
            if bite:
                self.rest()

    def begin(self) -> None:
        """Begin a bite."""
        self._began_s = self._clock()

    def rest(self) -> None:
        """End a bite, rest, and begin the next one."""
        self._sleep(self._rest * max(0.0, self._clock() - self._began_s))
        self.begin()
