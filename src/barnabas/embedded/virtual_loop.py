"""A loop whose time a test moves ahead: what waits for a session timeout or for retention to look waits no longer.

Between two moves the time passes as on every other loop. A move goes in steps, so that a timer that becomes due is followed by those that
it sets, as if the time had really passed: the broker's heartbeats keep its own session alive. What works outside of the loop, such as a
thread or a client, does not notice: a client sends no heartbeats in that time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

__all__ = ["STEP_S", "VirtualLoop"]

STEP_S = 1.0
"""Shorter than every timeout by which nodes watch each other."""

_TURNS = 10
"""Of the loop after each step: a heartbeat and its answer, or a group that rebalances and writes it down."""


class VirtualLoop(asyncio.SelectorEventLoop):
    """asyncio's loop, ahead of the machine's monotonic clock by what `advance` was told in all; it never goes back."""

    def __init__(self) -> None:
        super().__init__()
        self._ahead_s = 0.0

    def __repr__(self) -> str:
        return f"<VirtualLoop ahead_s={self._ahead_s}>"

    def time(self) -> float:
        """Return the loop's time, in seconds."""
        return super().time() + self._ahead_s

    async def advance(self, seconds: float, then: Callable[[float], object]) -> None:
        """Move the time on, on this loop.

        Args:
            then: called with the seconds of each step, to move what else has a time.
        """
        left = seconds
        while left > 0:
            step = min(left, STEP_S)
            left -= step
            self._ahead_s += step
            then(step)
            for _ in range(_TURNS):
                await asyncio.sleep(0)
