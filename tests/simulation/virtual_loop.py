"""An asyncio event loop in virtual time: a timer an hour away fires as soon as nothing is left to do before it.

The loop is asyncio's own, with a selector that never waits: asked to wait for `t` seconds, it moves the clock by `t`. One such loop
carries a whole simulated world; each node in it runs on a `NodeLoop` of its own, which puts its work here. If nothing is scheduled at
all the simulated world has come to a stop, which is an error, not a wait for ever.
"""

from __future__ import annotations

import asyncio
import heapq
import math
import selectors
from collections.abc import Mapping
from typing import Any


class Stuck(SystemExit):
    """Nothing is scheduled and nothing is ready, yet somebody still waits; or the world has gone on for longer than it may."""


class Crash(SystemExit):
    """The simulated process ends here, between two instructions. A SystemExit, because asyncio lets only such pass."""


class _NeverWaits(selectors.BaseSelector):
    def __init__(self) -> None:
        self.loop: VirtualLoop | None = None
        self._keys: dict[Any, selectors.SelectorKey] = {}

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        self._keys[fileobj] = key = selectors.SelectorKey(fileobj, 0, events, data)
        return key

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:
        return self._keys.pop(fileobj)

    def modify(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        return self.register(fileobj, events, data)

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        assert self.loop is not None
        if timeout is None:
            raise Stuck("nothing is scheduled in the simulation")
        self.loop.advance(max(timeout, 0.0))
        return []

    def get_map(self) -> Mapping[Any, selectors.SelectorKey]:
        return self._keys


class VirtualLoop(asyncio.SelectorEventLoop):
    """The one loop of a simulated world. It has no sockets and no threads: those belong to nodes.

    Attributes:
        ends_at: when the world is taken for stuck.
    """

    def __init__(self, began: float = 0.0) -> None:
        self._now = began
        self.ends_at = math.inf
        selector = _NeverWaits()
        super().__init__(selector)
        selector.loop = self
        self.errors: list[dict[str, Any]] = []
        self.set_exception_handler(lambda _, context: self.errors.append(context))

    def time(self) -> float:
        return self._now

    def advance(self, seconds: float) -> None:
        self._now += seconds
        if self._now > self.ends_at:
            raise Stuck(f"the simulation still goes on at {self._now:.0f} s")

    # A node's loop schedules handles of its own, which know how to run.

    def put(self, handle: asyncio.Handle) -> None:
        self._ready.append(handle)  # type: ignore[attr-defined]

    def put_first(self, handles: list[asyncio.Handle]) -> None:
        """Put handles before all others, so that they keep their order."""
        self._ready.extendleft(reversed(handles))  # type: ignore[attr-defined]

    def put_at(self, timer: asyncio.TimerHandle) -> None:
        heapq.heappush(self._scheduled, timer)  # type: ignore[attr-defined]
        timer._scheduled = True  # type: ignore[attr-defined]

    def handles_of(self, loop: asyncio.AbstractEventLoop) -> list[asyncio.Handle]:
        """Return what a node's loop has scheduled here."""
        scheduled = [*self._ready, *self._scheduled]  # type: ignore[attr-defined]
        return [handle for handle in scheduled if handle._loop is loop]
