"""Latencies of many operations: average, maximum and the percentiles that Kafka's performance tools print."""

from __future__ import annotations

from array import array
from typing import NamedTuple


class Summary(NamedTuple):
    """Latencies in milliseconds; 0 if nothing was measured."""

    avg_latency_ms: float
    max_latency_ms: float
    p50_ms: float
    p95_ms: float
    p99_ms: float
    p999_ms: float


class Latencies:
    """Seconds, eight bytes each."""

    def __init__(self) -> None:
        self._seconds = array("d")
        self._total = 0.0
        self.max_s = 0.0

    def __repr__(self) -> str:
        return f"<Latencies count={len(self)}>"

    def __len__(self) -> int:
        return len(self._seconds)

    def add(self, seconds: float) -> None:
        self._seconds.append(seconds)
        self._total += seconds
        if seconds > self.max_s:
            self.max_s = seconds

    def average_s(self) -> float:
        return self._total / len(self._seconds) if self._seconds else 0.0

    def summary(self) -> Summary:
        """Return the figures; a percentile is the least latency that so many operations did not exceed."""
        ordered = sorted(self._seconds)

        def at(per_mille: int) -> float:
            return round(ordered[-(-len(ordered) * per_mille // 1000) - 1] * 1000, 3) if ordered else 0.0

        average, most = (round(each * 1000, 3) for each in (self.average_s(), self.max_s))
        return Summary(average, most, at(500), at(950), at(990), at(999))
