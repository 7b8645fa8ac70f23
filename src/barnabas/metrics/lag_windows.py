"""Burrow's verdicts about groups on `/metrics`: the samples of the last scrapes, judged as `group list --verdict` judges its looks.

A sample is kept from a scrape if the one before is ten seconds old, so it does not matter how often and by how many servers a node is
scraped. A partition has a verdict once its samples reach back half a minute: consumers commit every five seconds by default, and in a
shorter window a group that moves on looks as if it stood still. A broker that has just started, or has just become the coordinator, has
no verdicts for that long.
"""

from __future__ import annotations

from collections import deque

from barnabas.client.lag_verdicts import Sample, Verdict, judge

__all__ = ["LagWindows", "Where"]

Where = tuple[str, str, int]
"""Group, topic, partition."""

SAMPLE_MS = 10_000
WINDOW_MIN_MS = 30_000
SAMPLES_MAX = 10


class LagWindows:
    """Keeps samples between scrapes; of a partition that is not in a scrape it keeps none."""

    def __init__(self) -> None:
        self._kept: dict[Where, deque[tuple[int, Sample]]] = {}
        self._seen: dict[Where, deque[tuple[int, Sample]]] = {}

    def verdict(self, where: Where, sample: Sample, now_ms: int, *, has_members: bool) -> Verdict | None:
        """Return the verdict about a partition with what was seen just now; None if the samples do not reach back far enough."""
        window = self._kept.get(where) or deque(maxlen=SAMPLES_MAX)
        while window and window[-1][0] > now_ms:
            # The clock was set back.
            window.pop()
        self._seen[where] = window
        reaches_back = bool(window) and now_ms - window[0][0] >= WINDOW_MIN_MS
        found = judge([*(each for _, each in window), sample], has_members=has_members) if reaches_back else None
        if not window or now_ms - window[-1][0] >= SAMPLE_MS:
            window.append((now_ms, sample))
        return found

    def end_scrape(self) -> None:
        """Forget the partitions that had no sample since the last call."""
        self._kept, self._seen = self._seen, {}
