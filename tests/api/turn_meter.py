"""A loop that measures each of its turns: the work from one look at the sockets to the next.

Work that would be another thread's is left out. The meter is a clock, or a counter of calls: with the counter the same
request gives the same number on every machine.
"""

from __future__ import annotations

import cProfile
import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tests.api.quiet_clock import QuietClock


class TurnMeter(QuietClock):
    """The loop. `longest` is the longest turn since the last `reset`, in the meter's unit."""

    def __init__(self) -> None:
        super().__init__()
        self.longest = 0
        self.turns = 0
        self._meter: Callable[[], int] = int
        self._begun = 0
        self._elsewhere = 0
        selector: Any = self._selector  # type: ignore[attr-defined]
        self._select = selector.select
        selector.select = self._selected

    def reset(self, meter: Callable[[], int]) -> None:
        self._meter = meter
        self.longest = self.turns = self._elsewhere = 0
        self._begun = meter()

    def end_turn(self) -> None:
        """End the turn that is under way."""
        now = self._meter()
        self.longest = max(self.longest, now - self._begun - self._elsewhere)
        self.turns += 1

    def _selected(self, timeout: float | None = None) -> Any:
        self.end_turn()
        found = self._select(timeout)
        self._elsewhere = 0
        self._begun = self._meter()
        return found

    def run_in_executor(self, executor: Any, func: Callable[..., Any], *args: Any) -> Any:  # type: ignore[override]
        before = self._meter()
        try:
            return super().run_in_executor(executor, func, *args)
        finally:
            self._elsewhere += self._meter() - before


@contextmanager
def counted_calls() -> Iterator[Callable[[], int]]:
    """Count calls and returns, of Python's functions and of built-in ones; yields the counter."""
    # The profiler reads its clock at each call and each return, so a clock that counts its readings counts them.
    events = itertools.count().__next__
    profiler = cProfile.Profile(events, 1.0)
    profiler.enable()
    try:
        yield events
    finally:
        profiler.disable()
