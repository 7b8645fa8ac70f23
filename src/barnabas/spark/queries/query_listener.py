"""The metrics of a session's streaming queries on a page for Prometheus.

    Spark's listener ──► QueryListener ──► QueryMetrics ──► /metrics
    the losses topic ──► TopicTail ──► SkippedRanges ──────────▲

Spark calls the listener on a thread of the driver, after each batch. The page is served on a thread, too; it is the
driver's, next to the page of the broker, which has the lag of every consumer group.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from prometheus_client import CollectorRegistry, start_http_server
from pyspark.sql.streaming.listener import StreamingQueryListener

from barnabas.spark.queries.progress_report import parse_report
from barnabas.spark.queries.query_metrics import QueryMetrics
from barnabas.spark.queries.topic_tail import TopicTail
from barnabas.spark.security_options import SecurityOptions, settings_of
from barnabas.spark.source.skipped_ranges import SkippedRanges

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.listener import (
        QueryIdleEvent,
        QueryProgressEvent,
        QueryStartedEvent,
        QueryTerminatedEvent,
    )

__all__ = ["MetricsPage", "QueryListener", "serve_metrics"]

_LOOPBACK = "127.0.0.1"


class QueryListener(StreamingQueryListener):
    """Puts the reports of queries into metrics.

    A program that has a metrics page already adds only the listener:

        from prometheus_client import REGISTRY

        spark.streams.addListener(QueryListener(QueryMetrics(REGISTRY)))
    """

    def __init__(self, metrics: QueryMetrics) -> None:
        self._metrics = metrics
        # The event of a query's end has no name.
        self._names: dict[str, str] = {}

    def __repr__(self) -> str:
        return f"<QueryListener queries={len(self._names)}>"

    def onQueryStarted(self, event: QueryStartedEvent) -> None:
        """Take the start of a query."""
        self._metrics.started(self._name(event.id, event.name))

    def onQueryProgress(self, event: QueryProgressEvent) -> None:
        """Take the report of a trigger."""
        progress = event.progress
        self._metrics.progressed(self._name(progress.id, progress.name), parse_report(json.loads(progress.json)))

    def onQueryIdle(self, event: QueryIdleEvent) -> None:
        """Do nothing: an idle query has nothing to report."""

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:
        """Take the end of a query."""
        self._metrics.ended(self.name_of(str(event.id)), failed=event.exception is not None)

    def name_of(self, query_id: str) -> str:
        """Return the name of a query, also of one that has ended; the id if it has none."""
        return self._names.get(query_id, query_id)

    def _name(self, query_id: Any, name: str | None) -> str:
        known = self._names[str(query_id)] = name or self.name_of(str(query_id))
        return known


class MetricsPage:
    """A page that is served until it is closed.

    Attributes:
        url: where Prometheus reads it.
    """

    def __init__(self, url: str, closers: list[Callable[[], object]]) -> None:
        self.url = url
        self._closers = closers

    def __repr__(self) -> str:
        return f"<MetricsPage url={self.url}>"

    def close(self) -> None:
        """Stop listening to queries, and close the port. A second call does nothing."""
        while self._closers:
            self._closers.pop(0)()


def serve_metrics(
    spark: SparkSession,
    port: int,
    address: str = _LOOPBACK,
    *,
    registry: CollectorRegistry | None = None,
    bootstrap_servers: str | None = None,
    losses_topic: str | None = None,
    security: Mapping[str, str] | None = None,
) -> MetricsPage:
    """Serve the metrics of the session's streaming queries, also of those that run already.

    Args:
        spark: the session.
        port: of the page; 0 for a free one.
        address: where the page listens. The page has no password, so only this machine reads it unless told otherwise.
        registry: whose other metrics the page shows as well, `prometheus_client.REGISTRY` for example.
        bootstrap_servers, losses_topic: the topic of the sources' option `lossesTopic`, for the metrics of what they
            skipped.
        security: the options of TLS and login for this topic, as `format("barnabas")` takes them; others are ignored.

    Raises:
        RuntimeError: the page cannot listen there, or the topic cannot be read.
        NotInstalled: the topic is given, and confluent-kafka is not installed.
        ValueError: only one of the two is given, or TLS and login cannot be set up.
    """
    registry = CollectorRegistry() if registry is None else registry
    tail = _tail(bootstrap_servers, losses_topic, settings_of(security))
    try:
        server, _ = start_http_server(port, address, registry)
    except OSError as error:
        if tail is not None:
            tail.close()
        reason = (error.strerror or str(error)).lower()
        raise RuntimeError(f"cannot serve metrics on {address}:{port}: {reason}; choose another port") from None
    listener = QueryListener(QueryMetrics(registry))
    spark.streams.addListener(listener)
    closers: list[Callable[[], object]] = [
        lambda: spark.streams.removeListener(listener),
        server.shutdown,
        server.server_close,
    ]
    if tail is not None:
        skipped = SkippedRanges(tail.new, listener.name_of)
        registry.register(skipped)
        closers += [lambda: registry.unregister(skipped), tail.close]
    host = f"[{address}]" if ":" in address else address
    return MetricsPage(f"http://{host}:{server.server_port}/metrics", closers)


def _tail(bootstrap_servers: str | None, topic: str | None, security: SecurityOptions) -> TopicTail | None:
    if (bootstrap_servers is None) != (topic is None):
        raise ValueError("losses_topic= and bootstrap_servers= go together")
    return None if bootstrap_servers is None or topic is None else TopicTail(bootstrap_servers, topic, security)
