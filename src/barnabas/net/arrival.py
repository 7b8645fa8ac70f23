"""How a request that has begun goes on arriving.

The connection drops its `Arrival` when it handles a request, and makes another one at the next question.
"""

from __future__ import annotations

__all__ = ["ARRIVAL_SECONDS", "LOOK_SECONDS", "PACE", "SLOWEST", "SWEEP_SECONDS", "Arrival"]

LOOK_SECONDS = 2.0
"""How often `RequestMemory` looks at the requests that have memory, while others wait for it."""

PACE = 1_000_000
"""The bytes a second with which a request must arrive while others wait for its memory."""

PATIENCE_SECONDS = 30.0
"""How long a request may lie in memory, not handled, while others wait for it."""

SWEEP_SECONDS = 5.0
"""How often the listener looks at the requests that arrive."""

ARRIVAL_SECONDS = 60.0
"""How long a request may take to arrive: after 30 s (Java) or 60 s (librdkafka) clients give up by default."""

SLOWEST = 100_000
"""The bytes a second with which a large request may arrive for longer."""


class Arrival:
    """One connection's request."""

    __slots__ = ("_looked_bytes", "_lying_looks", "_sweeps", "_swept_bytes")

    def __init__(self) -> None:
        self._looked_bytes: int | None = None
        self._lying_looks = 0
        self._swept_bytes: int | None = None
        self._sweeps = 0

    def __repr__(self) -> str:
        return f"<Arrival looked={self._looked_bytes} swept={self._swept_bytes}>"

    def is_slow(self, arrived_bytes: int | None) -> bool:
        """Return whether it keeps others waiting; asked each `LOOK_SECONDS`.

        Args:
            arrived_bytes: what has arrived; None while the broker does not read, because the request is whole and must wait.
        """
        before, self._looked_bytes = self._looked_bytes, arrived_bytes
        if arrived_bytes is None:
            self._lying_looks += 1
            return self._lying_looks * LOOK_SECONDS > PATIENCE_SECONDS
        self._lying_looks = 0
        return before is not None and arrived_bytes - before < PACE * LOOK_SECONDS

    def is_overdue(self, arrived_bytes: int | None) -> bool:
        """Return whether it should have arrived; asked each `SWEEP_SECONDS`. `arrived_bytes` as above."""
        if arrived_bytes is None or self._swept_bytes is None:
            self._swept_bytes, self._sweeps = arrived_bytes, 0
            return False
        self._sweeps += 1
        if self._sweeps * SWEEP_SECONDS < ARRIVAL_SECONDS:
            return False
        arrived, self._swept_bytes, self._sweeps = arrived_bytes - self._swept_bytes, arrived_bytes, 0
        return arrived < SLOWEST * ARRIVAL_SECONDS
