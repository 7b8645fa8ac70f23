"""The two clocks: the time of day, and a monotonic time for intervals.

The wall clock is what records and people see. It can jump, also backwards, when it is set. So timeouts, sessions and intervals are
measured with the monotonic clock, which never does, and whose zero means nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

__all__ = ["Clock"]


class Clock(NamedTuple):
    """Attributes: `wall_ms` returns epoch milliseconds, `monotonic_ms` milliseconds since some moment."""

    wall_ms: Callable[[], int]
    monotonic_ms: Callable[[], int]

    def to_wall_ms(self, monotonic_ms: int) -> int:
        """Return the wall time of a monotonic time, by the present difference between the two clocks."""
        return self.wall_ms() - (self.monotonic_ms() - monotonic_ms)

    def to_monotonic_ms(self, wall_ms: int) -> int:
        """Return the monotonic time of a wall time, by the present difference between the two clocks."""
        return self.monotonic_ms() + (wall_ms - self.wall_ms())
