"""The metrics of a session's streaming queries on a page for Prometheus.

    Spark's listener ──► QueryListener ──► QueryMetrics ──► /metrics

Spark calls the listener on a thread of the driver, after each batch. The page is served on a thread, too; it is the
driver's, next to the page of the broker, which has the lag of every consumer group.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from prometheus_client import CollectorRegistry, start_http_server
from pyspark.sql.streaming.listener import StreamingQueryListener

from barnabas.spark.progress_report import parse_report
from barnabas.spark.query_metrics import QueryMetrics

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
        self._names: dict[Any, str] = {}

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
        self._metrics.ended(self._name(event.id, None), failed=event.exception is not None)
        self._names.pop(event.id, None)

    def _name(self, query_id: Any, name: str | None) -> str:
        return self._names.setdefault(query_id, name or str(query_id))


class MetricsPage:
    """A page that is served until it is closed.

    Attributes:
        url: where Prometheus reads it.
    """

    def __init__(self, spark: SparkSession, listener: QueryListener, server: Any, address: str) -> None:
        self._spark = spark
        self._listener = listener
        self._server = server
        host = f"[{address}]" if ":" in address else address
        self.url = f"http://{host}:{server.server_port}/metrics"

    def __repr__(self) -> str:
        return f"<MetricsPage url={self.url}>"

    def close(self) -> None:
        """Stop listening to queries, and close the port."""
        self._spark.streams.removeListener(self._listener)
        self._server.shutdown()
        self._server.server_close()


def serve_metrics(
    spark: SparkSession, port: int, address: str = _LOOPBACK, registry: CollectorRegistry | None = None
) -> MetricsPage:
    """Serve the metrics of the session's streaming queries, also of those that run already.

    Args:
        spark: the session.
        port: of the page; 0 for a free one.
        address: where the page listens. The page has no password, so only this machine reads it unless told otherwise.
        registry: whose other metrics the page shows as well, `prometheus_client.REGISTRY` for example.

    Raises:
        RuntimeError: the page cannot listen there.
    """
    registry = CollectorRegistry() if registry is None else registry
    try:
        server, _ = start_http_server(port, address, registry)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise RuntimeError(f"cannot serve metrics on {address}:{port}: {reason}; choose another port") from None
    listener = QueryListener(QueryMetrics(registry))
    spark.streams.addListener(listener)
    return MetricsPage(spark, listener, server, address)
