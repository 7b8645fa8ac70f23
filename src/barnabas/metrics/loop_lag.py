"""How long the event loop keeps its work waiting: a timer that should fire every 100 ms, and how late it does.

Everything of a node runs on one loop. A turn that takes long delays every request, and, in a cluster, heartbeats and elections too.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

from barnabas.metrics.exposition import Family, histogram

__all__ = ["LoopLag"]

PERIOD_S = 0.1
BOUNDS_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)

NAME = "barnabas_loop_lag_seconds"
TEXT = "How late the event loop was for work that was due, looked at ten times a second."


class LoopLag:
    """Observes a loop from its creation until `close`."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._counts = [0] * (len(BOUNDS_S) + 1)
        self._sum_s = 0.0
        self._due = loop.time() + PERIOD_S
        self._timer = loop.call_at(self._due, self._look)

    def __repr__(self) -> str:
        return f"<LoopLag looks={sum(self._counts)} sum={self._sum_s:.3f} s>"

    def _look(self) -> None:
        now = self._loop.time()
        late = max(now - self._due, 0.0)
        self._sum_s += late
        self._counts[next((n for n, bound in enumerate(BOUNDS_S) if late <= bound), len(BOUNDS_S))] += 1
        self._due = now + PERIOD_S
        self._timer = self._loop.call_at(self._due, self._look)

    def families(self) -> Iterator[Family]:
        """Yield the histogram."""
        yield histogram(NAME, TEXT, zip((*BOUNDS_S, float("inf")), self._counts, strict=True), self._sum_s)

    def close(self) -> None:
        """Look no more."""
        self._timer.cancel()
