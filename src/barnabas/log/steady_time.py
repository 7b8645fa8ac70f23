"""Time for waits: the wall clock without its steps back.

A wait until a time of the wall clock would last a day longer if the clock was set back by a day. A step ahead ends waits early, which
costs a little work. What is compared with the timestamps of records or files needs the wall clock itself.
"""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["SteadyTime"]


class SteadyTime:
    """Returns milliseconds that never go back; read it often, since a step back hides what has passed since the last reading."""

    def __init__(self, now_ms: Callable[[], int]) -> None:
        self._now_ms = now_ms
        self._last_ms = now_ms()
        # By how much the clock has been set back.
        self._back_ms = 0

    def __repr__(self) -> str:
        return f"<SteadyTime back={self._back_ms}>"

    def __call__(self) -> int:
        now_ms = self._now_ms()
        self._back_ms += max(0, self._last_ms - now_ms)
        self._last_ms = now_ms
        return now_ms + self._back_ms
