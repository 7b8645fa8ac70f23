"""Looks at a cluster, one after the other, as long as somebody watches: one for all viewers, none without.

The pause after a look is ten times as long as the look took, so that a large cluster is not asked without end. Figures of the looks stay
for an hour, for charts.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable

from barnabas.console.asked_cluster import AskedCluster
from barnabas.console.bites import Bites
from barnabas.console.history import History
from barnabas.console.look import Look, look

INTERVAL_S = 5.0
PATIENCE_S = 0.2
_PAUSE_FOR_EACH_SECOND = 10
_PAUSES_APART = 3
"""Looks farther apart than so many pauses do not belong to one line of a chart; a page that reloads looks every other time."""


class Sampler:
    """Watches one cluster.

    Args:
        interval_s: between two looks, at least.
        patience_s: how long a page waits for a look, if there is an older one.
        clock, time_ms: seams for tests.
    """

    def __init__(
        self,
        cluster: AskedCluster,
        interval_s: float = INTERVAL_S,
        patience_s: float = PATIENCE_S,
        clock: Callable[[], float] = time.monotonic,
        time_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    ) -> None:
        self.viewers = 0
        self.history = History()
        self._cluster = cluster
        self._interval_s = interval_s
        self._clock = clock
        self._time_ms = time_ms
        self._last: Look | None = None
        self._before: Look | None = None
        self._pause_s = interval_s
        self._one_at_a_time = asyncio.Lock()
        self._changed = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._patience_s = patience_s
        self._renewal: asyncio.Task[None] | None = None

    def __repr__(self) -> str:
        return f"<Sampler {self._cluster.name} viewers={self.viewers}>"

    @property
    def is_running(self) -> bool:
        """Whether it looks again and again."""
        return self._task is not None

    async def latest(self) -> tuple[Look, Look | None]:
        """Return the last look, and the one before it.

        If the last one is not fresh, wait `patience_s` for a new one: a page of a large cluster shows the last one meanwhile.
        """
        if self._last is None or self._renewal is not None or self._is_old():
            if self._renewal is None:
                self._renewal = asyncio.create_task(self._renewed())
            # The page of the first look has nothing else to show.
            patience_s = None if self._last is None else self._patience_s
            done, _ = await asyncio.wait([self._renewal], timeout=patience_s)
            for each in done:
                each.result()
        assert self._last is not None
        return self._last, self._before

    def _is_old(self) -> bool:
        return self._last is None or self._clock() - self._last.at_s >= self._interval_s

    async def _renewed(self) -> None:
        try:
            async with self._one_at_a_time:
                if self._is_old():
                    await self._look()
        finally:
            self._renewal = None

    async def looks(self) -> AsyncGenerator[tuple[Look, Look | None]]:
        """Yield each new look with the one before it, until the caller closes the generator.

        Raises:
            Exception: a look raised it, for another reason than a cluster that does not answer.
        """
        self.viewers += 1
        if self._task is None:
            self._changed = asyncio.Event()
            self._task = asyncio.create_task(self._go_on())
            self._task.add_done_callback(self._ended)
        task = self._task
        try:
            while True:
                changed = self._changed
                await changed.wait()
                if task.done():
                    task.result()
                assert self._last is not None
                yield self._last, self._before
        finally:
            self.viewers -= 1
            if not self.viewers and self._task is not None:
                self._task.cancel()
                self._task = None

    def _ended(self, task: asyncio.Task[None]) -> None:
        """Wake the viewers when a look has raised: each gets the exception."""
        if not task.cancelled():
            self._changed.set()

    async def _go_on(self) -> None:
        while True:
            async with self._one_at_a_time:
                await self._look()
            await asyncio.sleep(self._pause_s)

    async def _look(self) -> None:
        at_s, time_ms = self._clock(), self._time_ms()
        # A page waits for the first look, and not for the later ones.
        bites = Bites(rest=0) if self._last is None else Bites()
        found = await self._cluster.ask(lambda admin: look(admin, at_s, time_ms, bites))
        self._pause_s = max(self._interval_s, _PAUSE_FOR_EACH_SECOND * (self._clock() - at_s))
        self.history.add(found, self._last, _PAUSES_APART * self._pause_s)
        if self._last is not None and self._last.silence is None:
            self._before = self._last
        self._last = found
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()
