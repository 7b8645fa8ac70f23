"""The wall clock of a node, which a test may set ahead or behind.

Everything on the node that reads the time of day reads this clock: timestamps of records, retention, expiry of offsets and tokens. Session
timeouts and other timers use the monotonic clock, which no fault moves (`virtual_loop` does, together with this one).
"""

from __future__ import annotations

from collections.abc import Callable

from barnabas.embedded.fault_plan import ClockFault
from barnabas.embedded.fault_tickets import FaultTickets

__all__ = ["MovedClock"]


class MovedClock:
    """A clock.

    Args:
        now_ms: the real one, epoch milliseconds.
    """

    def __init__(self, now_ms: Callable[[], int]) -> None:
        self._real_now_ms = now_ms
        self._ahead_ms = 0
        self._passed_ms = 0.0
        self._counted: set[str] = set()

    def __repr__(self) -> str:
        return f"<MovedClock ahead_ms={self._ahead_ms}>"

    def now_ms(self) -> int:
        return self._real_now_ms() + self._ahead_ms + round(self._passed_ms)

    def advance(self, seconds: float) -> None:
        """Let time pass: no fault, so that no `apply` takes it back."""
        self._passed_ms += seconds * 1000

    def apply(self, fault: ClockFault) -> None:
        """Move to this difference from the real clock, and count each of the fault's orders once."""
        self._ahead_ms = round(fault.seconds * 1000)
        for path in fault.tickets:
            if path not in self._counted:
                self._counted.add(path)
                FaultTickets(path).take()
