"""Work that recurs: a timer a piece of work, all cancelled together."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


class Timers:
    """The recurring work of one part of a node, on its loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._timers: dict[Callable[[], None], asyncio.TimerHandle] = {}

    def __repr__(self) -> str:
        return f"<Timers {', '.join(work.__name__ for work in self._timers)}>"

    def every(self, period_ms: int, work: Callable[[], None]) -> None:
        """Call `work` once a period, the first time after one period."""

        def again() -> None:
            self._timers[work] = self._loop.call_later(period_ms / 1000, again)
            work()

        self._timers[work] = self._loop.call_later(period_ms / 1000, again)

    def cancel(self) -> None:
        """Call nothing any more."""
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
