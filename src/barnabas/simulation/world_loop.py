"""An asyncio event loop in virtual time: a timer an hour away fires as soon as nothing is left to do before it.

It is asyncio's own loop with one difference: where asyncio would wait for `t` seconds, it moves the clock by `t`. One such loop carries a
whole simulated world; each node in it runs on a `NodeLoop` of its own, which puts its work here. If nothing is scheduled at all, the
simulated world has come to a stop: that is an error, and not an endless wait.

What falls due is whatever has `_run` and `_cancelled`, as asyncio's handles have: nodes and connections put lighter things here than
handles, because they put very many. Timers of the same moment fire in the order in which they were set.
"""

from __future__ import annotations

import asyncio
import contextvars
import heapq
import math
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, Protocol

RESOLUTION_SECONDS = 1e-9
"""The difference of two times that are the same moment to asyncio: sums of times differ by less."""


TURNS_AT_ONCE_MAX = 200_000
"""Far more turns of the loop than all that happens in one moment takes, unless somebody waits with `sleep(0)`."""


class Stuck(SystemExit):
    """Nothing is scheduled and nothing is ready, yet somebody still waits; or the world has gone on for longer than it may."""


class Crash(SystemExit):
    """The simulated process ends here, between two instructions. It is a SystemExit, because asyncio catches most other exceptions."""


class Due(Protocol):
    """Something that falls due."""

    _cancelled: bool

    def _run(self) -> object: ...


class WorldLoop(asyncio.BaseEventLoop):
    """The one loop of a simulated world. It has no sockets and no threads: those belong to nodes.

    Attributes:
        ends_at: when the world is taken for stuck.
        running: the loop of the node whose callback runs now.
    """

    _ready: deque[Due]
    _stopping: bool

    def __init__(self, began: float = 0.0) -> None:
        super().__init__()
        self._now = began
        self.ends_at = math.inf
        self.running: asyncio.AbstractEventLoop | None = None
        self._turns_at_once = 0
        self._timers: list[tuple[float, int, Due]] = []
        self._timers_set = 0
        self.errors: list[dict[str, Any]] = []
        self.set_exception_handler(lambda _, context: self.errors.append(context))

    def time(self) -> float:
        return self._now

    def advance(self, seconds: float) -> None:
        self._now += seconds
        if seconds > RESOLUTION_SECONDS:
            self._turns_at_once = 0
        if self._now > self.ends_at:
            raise Stuck(f"the simulation still goes on at {self._now:.0f} s")

    def _run_once(self) -> None:
        """Run what is ready now, and not what that makes ready; if nothing is, move the clock to the next timer."""
        ready, timers = self._ready, self._timers
        self._turns_at_once += 1
        if self._turns_at_once > TURNS_AT_ONCE_MAX:
            raise Stuck(
                f"no time passes in the simulation: {TURNS_AT_ONCE_MAX:,} turns of its loop at {self._now:.3f} s"
            )
        if not ready and not self._stopping:
            while timers and timers[0][2]._cancelled:
                heapq.heappop(timers)
            if not timers:
                raise Stuck("nothing is scheduled in the simulation")
            self.advance(max(timers[0][0] - self._now, 0.0))
        ends_at = self._now + RESOLUTION_SECONDS
        while timers and timers[0][0] < ends_at:
            when, _, due = heapq.heappop(timers)
            if when > self._now:
                self._now = when  # No timer fires early: a client that finds that too little time has passed would wait no time again.
            ready.append(due)
        for _ in range(len(ready)):
            due = ready.popleft()
            if not due._cancelled:
                due._run()

    def call_at(  # type: ignore[override]
        self, when: float, callback: Callable[..., object], *args: Any, context: contextvars.Context | None = None
    ) -> asyncio.TimerHandle:
        timer = asyncio.TimerHandle(when, callback, args, self, context)
        self.put_at(when, timer)
        return timer

    def call_later(  # type: ignore[override]
        self, delay: float, callback: Callable[..., object], *args: Any, context: contextvars.Context | None = None
    ) -> asyncio.TimerHandle:
        return self.call_at(self._now + delay, callback, *args, context=context)

    def _timer_handle_cancelled(self, timer: asyncio.TimerHandle) -> None:
        """A timer that is cancelled stays where it is until its time comes."""

    def _write_to_self(self) -> None:
        """No other thread has to wake this loop."""

    def run_in_executor(self, executor: Any, func: Callable[..., Any], *args: Any) -> asyncio.Future[Any]:  # type: ignore[override]
        """Do the work in the next turn; a node's loop has an executor of its own, in which it takes time."""
        future = self.create_future()

        def work() -> None:
            if not future.cancelled():
                future.set_result(func(*args))

        self.call_soon(work)
        return future

    def close(self) -> None:
        super().close()
        self._timers.clear()

    # A node's loop schedules things of its own, which know how to run.

    def put(self, due: Due) -> None:
        self._ready.append(due)

    def put_first(self, held: list[Due]) -> None:
        """Put what was held before all others, so that it keeps its order."""
        self._ready.extendleft(reversed(held))

    def put_at(self, when: float, due: Due) -> None:
        self._timers_set += 1
        heapq.heappush(self._timers, (when, self._timers_set, due))

    def handles_of(self, loop: asyncio.AbstractEventLoop) -> Iterable[asyncio.Handle]:
        """Return what a node's loop has scheduled here."""
        scheduled = [*self._ready, *(timer[2] for timer in self._timers)]
        return [due for due in scheduled if isinstance(due, asyncio.Handle) and due._loop is loop]  # type: ignore[attr-defined]
