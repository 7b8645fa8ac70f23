"""The newest values that clients pushed, kept for a while after the last push.

- A new value of a gauge replaces the old one. A sum that is pushed as differences is added up to a counter.
- A client that is silent for three push intervals, and for five minutes, is forgotten. A monitoring system thus has time to read the
  last push of a client that has ended.
- Memory is bounded: `CLIENT_SERIES_MAX` series for a client and `SERIES_MAX` in all. `dropped` counts the values beyond.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from barnabas.telemetry.otlp import Attributes, Point

__all__ = ["PushedMetrics", "Pusher"]

CLIENT_SERIES_MAX = 2_000
SERIES_MAX = 200_000
KEEP_MS = 300_000


class Pusher(NamedTuple):
    """The client that pushed, as labels name it."""

    client_instance_id: str
    client_id: str
    software_name: str
    software_version: str


class _Client:
    __slots__ = ("expires_ms", "pusher", "series")

    def __init__(self, pusher: Pusher) -> None:
        self.pusher = pusher
        self.expires_ms = 0
        self.series: dict[tuple[str, Attributes], tuple[float, bool]] = {}


class PushedMetrics:
    """The values of all clients.

    Attributes:
        dropped: the number of values beyond the bounds.
    """

    def __init__(self) -> None:
        self._clients: dict[bytes, _Client] = {}
        self._series = 0
        self.dropped = 0

    def __repr__(self) -> str:
        return f"<PushedMetrics {self._series} series of {len(self._clients)} clients>"

    def take(self, instance: bytes, pusher: Pusher, points: Iterable[Point], interval_ms: int, now_ms: int) -> None:
        """Store the values of a push.

        Args:
            instance: the client instance id.
            interval_ms: the client's push interval.
        """
        client = self._clients.get(instance)
        if client is None:
            client = self._clients[instance] = _Client(pusher)
        client.pusher = pusher
        client.expires_ms = now_ms + max(KEEP_MS, 3 * interval_ms)
        series = client.series
        for point in points:
            key = (point.name, point.attributes)
            before = series.get(key)
            if before is None:
                if len(series) >= CLIENT_SERIES_MAX or self._series >= SERIES_MAX:
                    self.dropped += 1
                    continue
                self._series += 1
            base = before[0] if before is not None and point.is_delta and point.is_sum else 0.0
            series[key] = (base + point.value, point.is_sum)

    def expire(self, now_ms: int) -> None:
        """Forget clients that have been silent for too long."""
        for instance in [key for key, client in self._clients.items() if client.expires_ms <= now_ms]:
            self._series -= len(self._clients.pop(instance).series)

    def by_name(self) -> Mapping[str, list[tuple[Pusher, Attributes, float, bool]]]:
        """Return each metric's values, by its name."""
        found: dict[str, list[tuple[Pusher, Attributes, float, bool]]] = {}
        for pusher, (name, attributes), (value, is_sum) in self._each():
            found.setdefault(name, []).append((pusher, attributes, value, is_sum))
        return found

    def _each(self) -> Iterator[tuple[Pusher, tuple[str, Attributes], tuple[float, bool]]]:
        for client in self._clients.values():
            for key, value in client.series.items():
                yield client.pusher, key, value
