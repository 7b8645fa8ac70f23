"""The last hour of a cluster in memory: a few figures of each look, for charts.

The sampler adds the looks that it makes anyway. Nothing is interpolated: a look without an answer has no figures, a line ends where the
looks stood too far apart, and a rate needs an answered look right before it. Of many topics and groups only the busiest are kept, so that a
cluster takes at most about 10 MB.
"""

from __future__ import annotations

import heapq
import sys
from collections import deque
from collections.abc import Iterable
from typing import NamedTuple

from barnabas.console.chart import Point
from barnabas.console.look import Look, farthest_behind, growth_rate, rate_of, records_rate

HOUR_S = 3600
MOST_LOOKS = 720
"""An hour of looks, one every five seconds."""
MOST_NAMES = 100
"""Topics, and groups, whose figures a look leaves here."""


class Moment(NamedTuple):
    """The figures of one look; None is not known.

    Attributes:
        at_s: on a clock that never goes back.
        time_ms: epoch milliseconds.
        begins: no look stands close before it, so no line leads to it.
        bytes_per_sec: that the leaders' logs grew by.
        records_per_sec: appended to all topics.
        total_lag: records, of the groups that the overview shows.
        topic_rates: records a second by topic.
        group_lags: records by group.
    """

    at_s: float
    time_ms: int
    begins: bool
    bytes_per_sec: float | None = None
    records_per_sec: float | None = None
    total_lag: int | None = None
    topic_rates: dict[str, float] = {}
    group_lags: dict[str, int] = {}


class History:
    """The moments of the last hour, the oldest first."""

    def __init__(self) -> None:
        self._moments: deque[Moment] = deque(maxlen=MOST_LOOKS)

    def __repr__(self) -> str:
        return f"<History moments={len(self._moments)}>"

    def __len__(self) -> int:
        return len(self._moments)

    def add(self, now: Look, previous: Look | None, most_apart_s: float) -> None:
        """Keep the figures of a look.

        Args:
            previous: the look before it, answered or not.
            most_apart_s: looks that stand farther apart do not belong to one line.
        """
        begins = previous is None or now.at_s - previous.at_s > most_apart_s
        self._moments.append(_moment(now, None if begins else previous, begins))
        while self._moments[0].at_s < now.at_s - HOUR_S:
            self._moments.popleft()

    def bytes_per_sec(self) -> list[Point]:
        """Return how fast the logs grew."""
        return [Point(each.time_ms, each.bytes_per_sec, each.begins) for each in self._moments]

    def records_per_sec(self) -> list[Point]:
        """Return how fast records were appended."""
        return [Point(each.time_ms, each.records_per_sec, each.begins) for each in self._moments]

    def total_lag(self) -> list[Point]:
        """Return how far the groups of the overview were behind, together."""
        return [Point(each.time_ms, each.total_lag, each.begins) for each in self._moments]

    def topic_rate(self, topic: str) -> list[Point]:
        """Return the records a second of one topic."""
        return [Point(each.time_ms, each.topic_rates.get(topic), each.begins) for each in self._moments]

    def group_lag(self, group_id: str) -> list[Point]:
        """Return the lag of one group, in records."""
        return [Point(each.time_ms, each.group_lags.get(group_id), each.begins) for each in self._moments]


def _moment(now: Look, before: Look | None, begins: bool) -> Moment:
    if now.silence is not None:
        return Moment(now.at_s, now.time_ms, begins)
    rates: Iterable[tuple[str, float | None]] = ()
    if not isinstance(now.topics, Exception):
        rates = ((name, rate_of(name, now, before)) for name in now.topics)
    known = [(name, rate) for name, rate in rates if rate is not None]
    total_lag, lags = None, []
    if not isinstance(now.groups, Exception):
        total_lag = sum(each.total_lag for each in farthest_behind(now.groups))
        lags = [(each.group, each.total_lag) for each in now.groups.values()]
    return Moment(
        now.at_s,
        now.time_ms,
        begins,
        growth_rate(now, before),
        records_rate(now, before),
        total_lag,
        {sys.intern(name): rate for name, rate in heapq.nlargest(MOST_NAMES, known, key=lambda each: each[1])},
        {sys.intern(name): lag for name, lag in heapq.nlargest(MOST_NAMES, lags, key=lambda each: each[1])},
    )
