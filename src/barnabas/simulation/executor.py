"""A node's threads: work handed to them takes virtual time, and may wait for a free thread.

    submit ── waits for a thread ──► begins ── some of its time ──► is done, in one step ── the rest ──► its result is known

The seed picks the moment of the step. A process that ends before the step has not done the work; one that ends after it has done the
work, but does not know it. While the node is paused its threads are paused too.

Limit: work is one step. It sees no change of the node while it runs, and makes none that the node sees half done.
"""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import Callable
from typing import Any

from barnabas.simulation.disk import SimDisk

Work = Callable[[], Any]
THREADS = 16
"""As many as the server has for syncs."""


class Executor:
    """The threads of one incarnation of a node.

    Args:
        max_seconds: how long a piece of work takes at most, without the time that it waits for the disk; 0 does it in the turn of the
            loop that submits it.

    Attributes:
        duration: asked for the seconds that the next piece of work takes; a test may replace it.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        rng: random.Random,
        disk: SimDisk,
        *,
        max_seconds: float = 0.0,
        threads: int = THREADS,
    ) -> None:
        self._loop, self._rng, self._disk = loop, rng, disk
        self._idle_threads = threads
        self._waiting: deque[tuple[Work, asyncio.Future[Any]]] = deque()
        self.max_seconds = max_seconds
        self.duration: Callable[[], float] = lambda: self._rng.random() * self.max_seconds if self.max_seconds else 0.0

    def __repr__(self) -> str:
        return f"<Executor idle_threads={self._idle_threads} waiting={len(self._waiting)}>"

    def submit(self, work: Work) -> asyncio.Future[Any]:
        """Return a future of the node's loop for what the work returns or raises."""
        future: asyncio.Future[Any] = self._loop.create_future()
        self._waiting.append((work, future))
        self._begin()
        return future

    def _begin(self) -> None:
        while self._idle_threads and self._waiting:
            work, future = self._waiting.popleft()
            if future.cancelled():
                continue
            self._idle_threads -= 1
            seconds = self.duration()
            if seconds <= 0:
                self._do(work, future, 0.0)
            else:
                before = seconds * self._rng.random()
                self._loop.call_later(before, self._do, work, future, seconds - before)

    def _do(self, work: Work, future: asyncio.Future[Any], rest_seconds: float) -> None:
        result, failure = None, None
        # The time that the caller has waited for the disk does not count for this work, and the other way round.
        before, self._disk.seconds_spent = self._disk.seconds_spent, 0.0
        # No loop runs in the thread of an executor.
        running = asyncio._get_running_loop()
        asyncio._set_running_loop(None)
        try:
            result = work()
        except Exception as error:
            failure = error
        finally:
            asyncio._set_running_loop(running)
            rest_seconds += self._disk.take_seconds()
            self._disk.seconds_spent = before
        if rest_seconds > 0:
            self._loop.call_later(rest_seconds, self._end, future, result, failure)
        else:
            self._loop.call_soon(self._end, future, result, failure)

    def _end(self, future: asyncio.Future[Any], result: Any, failure: Exception | None) -> None:
        self._idle_threads += 1
        if not future.done():
            if failure is None:
                future.set_result(result)
            else:
                future.set_exception(failure)
        self._begin()
