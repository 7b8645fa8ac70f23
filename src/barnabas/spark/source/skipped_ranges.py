"""The ranges that queries skipped, counted from the topic in which their sources record it.

With `failOnDataLoss=false` a source goes on without records that are gone. The driver and each task notice this in
processes of their own, and record it in the topic of the option `lossesTopic`, a JSON object for each range:

    {"topic": "orders", "partition": 0, "from": 10, "to": 15, "query": "6b4f…", …}

A scrape reads what is new in that topic, so the counts begin where the topic begins, and outlive the driver. `to` is
null if the end of the range is unknown, and `query` if the driver noticed.
"""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

from prometheus_client.metrics_core import CounterMetricFamily

__all__ = ["SkippedRanges"]

_LABELS = ("query", "topic")


class SkippedRanges:
    """A collector of prometheus_client.

    Args:
        new_values: returns the values of the losses topic since its last call; none if the broker does not answer.
        name_of: returns the name of a query by its id.
    """

    def __init__(self, new_values: Callable[[], list[bytes]], name_of: Callable[[str], str]) -> None:
        self._new_values = new_values
        self._name_of = name_of
        self._lock = threading.Lock()
        self._ranges: Counter[tuple[str, str]] = Counter()
        self._offsets: Counter[tuple[str, str]] = Counter()

    def __repr__(self) -> str:
        return f"<SkippedRanges ranges={self._ranges.total()}>"

    def describe(self) -> list[CounterMetricFamily]:
        """Return the families without samples, so that registering them does not read the topic."""
        return [
            CounterMetricFamily(
                "barnabas_spark_query_skipped_ranges", "Ranges of offsets that were skipped.", labels=_LABELS
            ),
            CounterMetricFamily(
                "barnabas_spark_query_skipped_offsets",
                "Offsets that were skipped, without ranges of unknown end.",
                labels=_LABELS,
            ),
        ]

    def collect(self) -> Iterator[CounterMetricFamily]:
        """Read what is new, and yield the families."""
        # Each scrape has a thread of its own.
        with self._lock:
            for value in self._new_values():
                self._count(value)
        for family, counts in zip(self.describe(), (self._ranges, self._offsets), strict=True):
            for (query_id, topic), count in sorted(counts.items()):
                family.add_metric([self._name_of(query_id) if query_id else "", topic], count)
            yield family

    def _count(self, value: bytes) -> None:
        try:
            loss: dict[str, Any] = json.loads(value)
            key = (str(loss["query"] or ""), str(loss["topic"]))
            size = 0 if loss["to"] is None else int(loss["to"]) - int(loss["from"])
        except (ValueError, TypeError, KeyError):
            return  # somebody else's record
        self._ranges[key] += 1
        self._offsets[key] += max(0, size)
