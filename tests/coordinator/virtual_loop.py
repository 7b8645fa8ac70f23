"""A loop whose time moves only when told: enough of asyncio's loop for futures and timers."""

from __future__ import annotations

import asyncio
import contextvars
import heapq
from collections import deque
from collections.abc import Callable
from typing import Any

from barnabas.turns import new_budget


class Handle:
    def __init__(self, callback: Callable[..., object], args: tuple[Any, ...]) -> None:
        self._callback: Callable[..., object] | None = callback
        self._args = args

    @property
    def is_set(self) -> bool:
        return self._callback is not None

    def cancel(self) -> None:
        self._callback = None

    def run(self) -> None:
        if self._callback is not None:
            self._callback(*self._args)


class VirtualLoop:
    """Time is in milliseconds inside, in seconds at asyncio's border. It begins with a whole turn."""

    def __init__(self, start_ms: int = 1_000_000) -> None:
        new_budget()
        self.now_ms = start_ms
        self._ready: deque[Handle] = deque()
        self._timers: list[tuple[int, int, Handle]] = []
        self._sequence = 0

    def get_debug(self) -> bool:
        return False

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        raise AssertionError(context["message"]) from context.get("exception")

    def create_future(self) -> asyncio.Future[Any]:
        return asyncio.Future(loop=self)  # type: ignore[arg-type]

    def call_soon(
        self, callback: Callable[..., object], *args: Any, context: contextvars.Context | None = None
    ) -> Handle:
        handle = Handle(callback, args)
        self._ready.append(handle)
        return handle

    def call_later(self, delay: float, callback: Callable[..., object], *args: Any) -> Handle:
        handle = Handle(callback, args)
        self._sequence += 1
        heapq.heappush(self._timers, (self.now_ms + round(delay * 1000), self._sequence, handle))
        return handle

    def run_in_executor(self, executor: None, func: Callable[..., Any], *args: Any) -> asyncio.Future[Any]:
        """Do the work at the moment at which it is given, after all that is ready."""
        future = self.create_future()

        def work() -> None:
            if not future.cancelled():
                future.set_result(func(*args))

        self.call_later(0, work)
        return future

    def run_ready(self) -> None:
        while self._ready:
            self._ready.popleft().run()

    @property
    def is_idle(self) -> bool:
        """Whether nothing is ready and no timer is set."""
        return not self._ready and not self.timers_set

    @property
    def timers_set(self) -> int:
        """How many timers have neither fired nor been cancelled."""
        return sum(handle.is_set for _, _, handle in self._timers)

    @property
    def ready(self) -> int:
        """How many things are ready."""
        return len(self._ready)

    @property
    def due_in_ms(self) -> list[int]:
        """When the timers fire, those that are cancelled too."""
        return [due_ms - self.now_ms for due_ms, *_ in self._timers]

    def run_one(self) -> None:
        """Run the first thing that is ready."""
        self._ready.popleft().run()

    def run_one_turn(self) -> None:
        """Run what is ready now, and not what that makes ready."""
        for _ in range(len(self._ready)):
            self._ready.popleft().run()

    def advance(self, delay_ms: int) -> None:
        """Let time pass, running what falls due at its own moment."""
        until_ms = self.now_ms + delay_ms
        self.run_ready()
        while self._timers and self._timers[0][0] <= until_ms:
            due_ms, _, handle = heapq.heappop(self._timers)
            self.now_ms = max(self.now_ms, due_ms)
            handle.run()
            self.run_ready()
        self.now_ms = until_ms
