"""A loop on which time passes only while nothing is left to do: what is waited for always comes before the timer that is there in case
it does not, however slow the machine is.

The clock jumps to the next timer when no callback is ready and no socket has anything. Work for other threads runs at once, as otherwise
the clock could jump while it is done. Not for tests in which both ends of a connection matter: bytes on their way count as nothing to do.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable
from typing import Any


class QuietClock(asyncio.SelectorEventLoop):
    """The loop; `time` is in seconds of its own."""

    def __init__(self) -> None:
        self._now = 0.0
        super().__init__(_Jumping(self._pass))

    def time(self) -> float:
        return self._now

    def _pass(self, seconds: float) -> None:
        self._now += seconds

    def run_in_executor(self, executor: Any, func: Callable[..., Any], *args: Any) -> asyncio.Future[Any]:  # type: ignore[override]
        future = self.create_future()
        try:
            future.set_result(func(*args))
        except Exception as error:
            future.set_exception(error)
        return future


class _Jumping(selectors.DefaultSelector):
    def __init__(self, pass_time: Callable[[float], None]) -> None:
        super().__init__()
        self._pass_time = pass_time

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout == 0:  # Callbacks are ready. Sockets are looked at when none is: some tests have millions of turns.
            return []
        found = super().select(0)
        if not found and timeout is None:
            return super().select(None)
        if not found and timeout:
            self._pass_time(timeout)
        return found
