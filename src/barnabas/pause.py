"""A pause that somebody may end: a coroutine rests for a while, or until there is something to do."""

from __future__ import annotations

import asyncio

from barnabas.steps import Loop

__all__ = ["Pause"]


class Pause:
    """The pauses of one coroutine. A wake that comes while it is at work ends its next pause before that begins.

    Source: `asyncio.Event`, which has no time limit and must be cleared.
    """

    __slots__ = ("_is_woken", "_loop", "_resting")

    def __init__(self, loop: Loop) -> None:
        self._loop = loop
        self._resting: asyncio.Future[None] | None = None
        self._is_woken = False

    def __repr__(self) -> str:
        state = "resting" if self._resting is not None else "woken" if self._is_woken else "at work"
        return f"<Pause {state}>"

    def wake(self) -> None:
        """End the pause, or the next one."""
        self._is_woken = True
        self._end()

    def _end(self) -> None:
        if self._resting is not None and not self._resting.done():
            self._resting.set_result(None)

    async def or_woken(self, seconds: float | None) -> bool:
        """Rest for a time, None for no limit; return whether `wake` ended it."""
        if not self._is_woken:
            assert self._resting is None, "one coroutine rests"
            self._resting = self._loop.create_future()
            timer = None if seconds is None else self._loop.call_later(seconds, self._end)
            try:
                await self._resting
            finally:
                self._resting = None
                if timer is not None:
                    timer.cancel()
        was_woken, self._is_woken = self._is_woken, False
        return was_woken
