"""`/metrics` of a running node: its objects as the metrics see them, and the HTTP port they are read from. Shell.

Only imported when `barnabas.metrics.listen` asks for it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from barnabas.api.context import BrokerServices
from barnabas.metrics.exposition import CONTENT_TYPE, Family
from barnabas.metrics.request_times import RequestTimes
from barnabas.metrics.scrape import Scraper
from barnabas.metrics.source import QuorumState
from barnabas.quota.connection_quotas import ConnectionQuotas
from barnabas.server.http_listener import Answer, HttpListener

if TYPE_CHECKING:
    from barnabas.server.broker import BrokerServer
    from barnabas.share.share_partition_manager import SharePartitionManager

__all__ = ["MetricsEndpoint"]


class NodeSource:
    """A node as the metrics see it."""

    def __init__(self, server: BrokerServer, request_times: RequestTimes) -> None:
        self._server = server
        self.request_times = request_times

    @property
    def services(self) -> BrokerServices:
        return self._server.services

    @property
    def connection_quotas(self) -> ConnectionQuotas:
        return self._server.connections.quotas

    @property
    def share_partitions(self) -> SharePartitionManager | None:
        # Only looked at: asking for it would make it.
        found: SharePartitionManager | None = vars(self._server.services.share).get("partitions")
        return found

    def listener_counts(self) -> Sequence[tuple[str, int]]:
        return [(listener.name, listener.connection_count) for listener in self._server.listeners]

    def quorum(self) -> QuorumState:
        node = self._server.controller.driver.node
        return QuorumState(
            leader=node.leader_id,
            epoch=node.epoch,
            vote=node.election.voted_id,
            state=node.role.value,
            high_watermark=node.high_watermark,
            log_end_offset=node.end_offset,
            commits=self._server.controller.commits,
            commit_ms=self._server.controller.commit_ms,
        )


class MetricsEndpoint:
    """Counts requests from its making on, and serves `/metrics` once it is started."""

    def __init__(self, server: BrokerServer, host: str, port: int) -> None:
        services = server.services
        self.request_times = RequestTimes(services.monotonic_ns)
        self._server = server
        self._scraper = Scraper(NodeSource(server, self.request_times), services.monotonic_ns, self._pushed)
        self.http = HttpListener(services.loop, host, port, {"/metrics": self._metrics})

    def _pushed(self) -> Iterator[Family]:
        if self._server.client_metrics is not None:
            from barnabas.metrics import client_families

            yield from client_families.families(self._server.client_metrics)

    async def _metrics(self) -> Answer:
        return Answer(CONTENT_TYPE, await self._scraper.text())
