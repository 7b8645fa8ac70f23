"""`/metrics` of a running node: what the metrics read of it, and the HTTP port that serves them.

Only imported if `barnabas.metrics.listen` is set.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from barnabas.api.context import BrokerServices
from barnabas.metadata.quorum_controller import QuorumController
from barnabas.metrics import client_families
from barnabas.metrics.exposition import CONTENT_TYPE, Family
from barnabas.metrics.request_times import RequestTimes
from barnabas.metrics.scrape import Scraper
from barnabas.metrics.source import QuorumState, Source
from barnabas.quota.connection_quotas import ConnectionQuotas
from barnabas.server.http_listener import Answer, HttpListener
from barnabas.server.listener import Listener
from barnabas.server.share_groups import ShareServices
from barnabas.telemetry.client_metrics_manager import ClientMetricsManager

__all__ = ["MetricsEndpoint"]


class MetricsEndpoint:
    """Counts requests from its creation on, and serves `/metrics` once `http` is bound.

    Args:
        client_metrics: returns None until a client asks for its telemetry subscription.
    """

    def __init__(
        self,
        host: str,
        port: int,
        *,
        services: BrokerServices,
        share: ShareServices,
        controller: QuorumController,
        listeners: Sequence[Listener],
        connection_quotas: ConnectionQuotas,
        client_metrics: Callable[[], ClientMetricsManager | None],
    ) -> None:
        self.request_times = RequestTimes(services.monotonic_ns)
        self._client_metrics = client_metrics
        source = Source(
            services=services,
            request_times=self.request_times,
            connection_quotas=connection_quotas,
            share_partitions=lambda: share.partitions_if_any,
            listener_counts=lambda: [(listener.name, listener.connection_count) for listener in listeners],
            quorum=lambda: _quorum_state(controller),
        )
        self._scraper = Scraper(source, services.monotonic_ns, self._pushed)
        self.http = HttpListener(services.loop, host, port, {"/metrics": self._metrics})

    def _pushed(self) -> Iterator[Family]:
        manager = self._client_metrics()
        if manager is not None:
            yield from client_families.families(manager)

    async def _metrics(self) -> Answer:
        return Answer(CONTENT_TYPE, await self._scraper.text())


def _quorum_state(controller: QuorumController) -> QuorumState:
    node = controller.driver.node
    return QuorumState(
        leader=node.leader_id,
        epoch=node.epoch,
        vote=node.election.voted_id,
        state=node.role.value,
        high_watermark=node.high_watermark,
        log_end_offset=node.end_offset,
        commits=controller.commits,
        commit_ms=controller.commit_ms,
    )
