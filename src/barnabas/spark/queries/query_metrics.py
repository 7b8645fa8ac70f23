"""The metrics of streaming queries, in a registry of `prometheus_client`.

The label `query` is the query's name, or its id if it has none. A query that ends keeps its counters, and has no lag
until it runs again. `docs/spark-operating.md` lists the metrics; a test compares the two.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from barnabas.spark.queries.progress_report import ProgressReport
from barnabas.spark.source.unread_since import UnreadSince

__all__ = ["QueryMetrics"]

_BUCKETS = (0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300)
_QUERY = ("query",)
_TOPIC = ("query", "topic")


class QueryMetrics:
    """The values that a scrape reads; reports keep them up to date.

    Args:
        registry: where the metrics are registered.
        clock: the time of a scrape, in seconds since 1970.
    """

    def __init__(self, registry: CollectorRegistry, clock: Callable[[], float] = time.time) -> None:
        def gauge(name: str, text: str, names: tuple[str, ...] = _QUERY) -> Gauge:
            return Gauge(f"barnabas_spark_query_{name}", text, names, registry=registry)

        def counter(name: str, text: str) -> Counter:
            return Counter(f"barnabas_spark_query_{name}", text, _QUERY, registry=registry)

        self._clock = clock
        self._active = gauge("active", "1 if the query runs, 0 if it has ended.")
        self._failures = counter("failures_total", "Ends of the query by an exception.")
        self._batch_seconds = Histogram(
            "barnabas_spark_query_batch_duration_seconds",
            "Duration of a batch.",
            _QUERY,
            buckets=_BUCKETS,
            registry=registry,
        )
        self._last_batch_seconds = gauge("last_batch_seconds", "Duration of the last batch.")
        self._reported = gauge("last_progress_timestamp_seconds", "When the last reported trigger began.")
        self._rows = counter("input_rows_total", "Rows read from the query's sources.")
        self._rate = gauge("processed_rows_per_second", "Rows per second of the last batch, as Spark reports them.")
        self._late = counter("late_rows_dropped_total", "Rows dropped because they came after the watermark.")
        self._lag = gauge("lag_records", "Offsets of a topic that the query has not read.", _TOPIC)
        self._lag_seconds = gauge(
            "lag_seconds", "How long the oldest record that the query has not read has been there.", _TOPIC
        )
        self._history: dict[str, dict[tuple[str, int], UnreadSince]] = defaultdict(lambda: defaultdict(UnreadSince))
        self._topics: dict[str, set[str]] = defaultdict(set)

    def __repr__(self) -> str:
        return f"<QueryMetrics queries={len(self._topics)}>"

    def started(self, query: str) -> None:
        """Count a query that starts."""
        self._active.labels(query).set(1)
        # Counters that exist from the start: Prometheus sees their first increase.
        for counter in (self._failures, self._rows, self._late):
            counter.labels(query)

    def progressed(self, query: str, report: ProgressReport) -> None:
        """Take a query's report."""
        self._active.labels(query).set(1)
        self._reported.labels(query).set(report.timestamp_s)
        if report.has_batch:
            self._batch_seconds.labels(query).observe(report.batch_seconds)
            self._last_batch_seconds.labels(query).set(report.batch_seconds)
            self._rate.labels(query).set(report.rows_per_second or 0)
        self._rows.labels(query).inc(report.rows)
        self._late.labels(query).inc(report.late_rows)
        self._show_lag(query, report)

    def ended(self, query: str, *, failed: bool) -> None:
        """Take the end of a query."""
        self._active.labels(query).set(0)
        if failed:
            self._failures.labels(query).inc()
        self._remove_lag(query, self._topics.pop(query, set()))
        self._history.pop(query, None)

    def _show_lag(self, query: str, report: ProgressReport) -> None:
        lag: dict[str, int] = {}
        since: dict[str, list[float]] = defaultdict(list)
        for each, reach in report.reach.items():
            topic = each[0]
            lag[topic] = lag.get(topic, 0) + max(0, reach.end - reach.read)
            unread_since = self._history[query][each].observe(reach.read, reach.end, report.timestamp_s)
            if unread_since is not None:
                since[topic].append(unread_since)
        for topic, records in lag.items():
            self._lag.labels(query, topic).set(records)
            self._lag_seconds.labels(query, topic).set_function(_age(self._clock, min(since[topic], default=None)))
        self._remove_lag(query, self._topics[query] - lag.keys())
        self._topics[query] = set(lag)

    def _remove_lag(self, query: str, topics: set[str]) -> None:
        for topic in topics:
            self._lag.remove(query, topic)
            self._lag_seconds.remove(query, topic)


def _age(clock: Callable[[], float], since_s: float | None) -> Callable[[], float]:
    """Return the function of a scrape: a query that is stuck falls behind further, without any report."""
    return lambda: 0.0 if since_s is None else max(0.0, clock() - since_s)
