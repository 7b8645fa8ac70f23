"""The HTTP port of a node: health checks, and `/metrics` with what the metrics read of the node.

Only imported if `barnabas.metrics.listen` is set.
"""

from __future__ import annotations

import asyncio
import importlib
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Self

from barnabas.api.serving.context import BrokerServices
from barnabas.config.cannot_start import CannotStart, remedies
from barnabas.config.metrics_settings import METRICS, TOKEN_FILE, tls_settings_of_metrics
from barnabas.http_access import BadTokenFile, read_token
from barnabas.metadata.quorum_controller import ControllerCounts
from barnabas.metrics import client_families
from barnabas.metrics.exposition import CONTENT_TYPE, Family
from barnabas.metrics.loop_lag import LoopLag
from barnabas.metrics.request_times import RequestTimes
from barnabas.metrics.scrape import Scraper
from barnabas.metrics.source import QuorumState, Source
from barnabas.net.addresses import dialable, remedy_for, why_not
from barnabas.net.http_listener import Answer, HttpListener
from barnabas.net.listener import Listener
from barnabas.net.renewed_stores import RenewedStores
from barnabas.node.health import health_routes
from barnabas.node.share_groups import ShareServices
from barnabas.quorum.metadata_quorum import MetadataQuorum
from barnabas.quota.connection_quotas import ConnectionQuotas
from barnabas.security.setting_error import SecuritySettingError
from barnabas.telemetry.client_metrics_manager import ClientMetricsManager

__all__ = ["MetricsEndpoint"]

logger = logging.getLogger(__name__)

_REMEDIES = remedies(embedded=False)._replace(free_port="port 0 picks a free one")


class MetricsEndpoint:
    """Answers health checks once `http` is bound, and `/metrics` once there is something to measure.

    Args:
        not_ready: returns why the broker is not ready; empty if it is.
        properties: of the node, text by name.

    Attributes:
        request_times: counts requests from `measure` on.

    Raises:
        SecuritySettingError, BadTokenFile: the port cannot be protected as the properties have it.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        host: str,
        port: int,
        not_ready: Callable[[], str],
        properties: Mapping[str, str],
    ) -> None:
        token_file, tls = properties.get(TOKEN_FILE, ""), tls_settings_of_metrics(properties)
        if token_file:
            read_token(token_file)
        over_tls = None
        if tls:
            # 20 ms of a start, which a port in plain text does not pay.
            over_tls = importlib.import_module("barnabas.net.http_tls").over_tls(tls, METRICS, loop)
        self.http = HttpListener(
            loop,
            host,
            port,
            health_routes(not_ready),
            costly=("/metrics",),
            guarded=("/metrics",),
            token_file=token_file,
            over_tls=over_tls,
        )
        self.request_times: RequestTimes
        self._loop_lag = LoopLag(loop)
        self._scraper: Scraper
        self._client_metrics: Callable[[], ClientMetricsManager | None]

    def __repr__(self) -> str:
        return f"<MetricsEndpoint {self.http!r}>"

    @classmethod
    async def bound(
        cls,
        loop: asyncio.AbstractEventLoop,
        host: str,
        port: int,
        not_ready: Callable[[], str],
        properties: Mapping[str, str],
    ) -> Self:
        """Make one, and bind it.

        Raises:
            CannotStart: the address cannot be bound, or the port not be protected as its settings have it.
        """
        try:
            made = cls(loop, host, port, not_ready, properties)
            await made.http.bind()
        except SecuritySettingError as error:
            raise CannotStart(str(error)) from None
        except BadTokenFile as error:
            raise CannotStart(f"{TOKEN_FILE}: {error}") from None
        except OSError as error:
            raise CannotStart(
                f"cannot serve metrics on {host}:{port}: {why_not(error)}{remedy_for(error, _REMEDIES)}"
            ) from None
        return made

    def close(self) -> None:
        """Answer no more."""
        self._loop_lag.close()
        self.http.close()

    @property
    def url(self) -> str:
        """Where a client on this machine, or one that knows the host, finds the metrics."""
        scheme = "https" if self.http.has_tls else "http"
        return f"{scheme}://{dialable(self.http.host, self.http.port)}/metrics"

    def measure(
        self,
        *,
        services: BrokerServices,
        share: ShareServices,
        quorum: MetadataQuorum,
        listeners: Sequence[Listener],
        connection_quotas: ConnectionQuotas,
        client_metrics: Callable[[], ClientMetricsManager | None],
        stores: RenewedStores,
    ) -> None:
        """Serve `/metrics` of a broker.

        Args:
            client_metrics: returns None until a client asks for its telemetry subscription.
        """
        self.request_times = RequestTimes(services.monotonic_ns)
        self._client_metrics = client_metrics
        source = Source(
            services=services,
            request_times=self.request_times,
            connection_quotas=connection_quotas,
            share_partitions=lambda: share.partitions_if_any,
            listener_counts=lambda: [(listener.name, listener.connection_count) for listener in listeners],
            quorum=lambda: _quorum_state(quorum),
            certificates=stores.certificate_ends,
        )
        self._scraper = Scraper(source, services.monotonic_ns, self._pushed)
        self.http.routes["/metrics"] = self._metrics
        for listener in listeners:
            listener.metrics_url = self.url
        logger.info("Metrics on %s", self.url)

    def _pushed(self) -> Iterator[Family]:
        yield from self._loop_lag.families()
        manager = self._client_metrics()
        if manager is not None:
            yield from client_families.families(manager)

    async def _metrics(self) -> Answer:
        return Answer(CONTENT_TYPE, await self._scraper.text())


def _quorum_state(quorum: MetadataQuorum) -> QuorumState:
    node = quorum.driver.node
    traffic = quorum.traffic
    counts = ControllerCounts() if quorum.local_controller is None else quorum.local_controller.counts
    return QuorumState(
        leader=node.leader_id,
        epoch=node.epoch,
        vote=node.quorum.election.voted_id,
        state=node.role.value,
        high_watermark=node.high_watermark,
        log_end_offset=node.end_offset,
        commits=counts.commits,
        commit_ms=counts.commit_ms,
        unclean_elections=counts.unclean_elections,
        requests=0 if traffic is None else traffic.requests,
        responses=0 if traffic is None else traffic.responses,
        bytes_out=0 if traffic is None else traffic.bytes_out,
        bytes_in=0 if traffic is None else traffic.bytes_in,
    )
