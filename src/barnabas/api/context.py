"""What a handler is given: the request's context, the connection it came on, and the broker's services. Both planes.

A handler is a plain function `handle(context, request)`. It answers with the response, with a future of the response when
it must wait for a commit, a high watermark or more data, or with None when the client wants no answer (Produce with
acks=0). It never blocks and never touches the socket; what it must tell the connection it says through the context.

- `RequestContext` lives as long as its request, and is the only place where a handler may leave a word for the connection
  (`close_connection`).
- `ConnectionInfo` lives as long as the connection; `ApiVersions` fills in the client's software.
- `BrokerServices` lives as long as the broker; there is one, assembled by `server.broker`.

Source: Kafka's `RequestContext`, and the constructor of `KafkaApis`, which lists the same services.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from barnabas.api.throttling import Accounting
    from barnabas.group.group_coordinator import GroupCoordinator
    from barnabas.group.share.service import ShareGroupService
    from barnabas.metadata.config_entries import ConfigResolver
    from barnabas.metadata.config_schema import ConfigSchema
    from barnabas.metadata.image import MetadataImage
    from barnabas.metadata.recent_deletions import RecentDeletions
    from barnabas.quota.client_quotas import ClientQuotas
    from barnabas.quota.quota_manager import MutationQuota
    from barnabas.replication.fetch_session import FetchSessionCache
    from barnabas.replication.replica_manager import ReplicaManager
    from barnabas.share.share_coordinator import ShareCoordinator
    from barnabas.share.share_partition_manager import SharePartitionManager
    from barnabas.telemetry.client_metrics_manager import ClientMetricsManager
    from barnabas.transaction.producer_id_manager import ProducerIdManager
    from barnabas.transaction.transaction_coordinator import TransactionCoordinator

__all__ = ["BrokerServices", "ConnectionInfo", "Controller", "Endpoint", "RequestContext", "Settings"]


ANONYMOUS = "User:ANONYMOUS"

Creation = asyncio.Future[dict[str, int]]
"""A creation of topics that is under way: an error code for each name when it has ended."""


class Endpoint(Protocol):
    """One entry of `advertised.listeners`."""

    @property
    def name(self) -> str: ...
    @property
    def host(self) -> str: ...
    @property
    def port(self) -> int: ...


class Settings(Protocol):
    """The broker's configuration as handlers see it: typed values by Kafka's name, and the ones read on every request."""

    @property
    def advertised_listeners(self) -> tuple[Endpoint, ...] | None: ...
    @property
    def auto_create_topics_enable(self) -> bool: ...
    @property
    def delete_topic_enable(self) -> bool: ...
    @property
    def num_partitions(self) -> int: ...
    @property
    def default_replication_factor(self) -> int: ...
    @property
    def fetch_max_bytes(self) -> int: ...
    @property
    def message_max_bytes(self) -> int: ...
    @property
    def request_timeout_ms(self) -> int: ...
    @property
    def broker_rack(self) -> str | None: ...
    @property
    def offsets_topic_num_partitions(self) -> int: ...
    @property
    def offsets_topic_replication_factor(self) -> int: ...
    @property
    def offsets_topic_segment_bytes(self) -> int: ...
    @property
    def offsets_topic_compression_codec(self) -> int: ...
    def int_value(self, name: str) -> int: ...
    def str_value(self, name: str) -> str: ...
    def bool_value(self, name: str) -> bool: ...
    def list_value(self, name: str) -> tuple[str, ...]: ...


class Controller(Protocol):
    """The active controller as handlers see it; `metadata.quorum_controller.QuorumController` is one."""

    def handle(
        self,
        api_key: int,
        version: int,
        request: Any,
        *,
        principal: str = ANONYMOUS,
        deadline_ms: int | None = None,
        mutation_quota: MutationQuota | None = None,
    ) -> asyncio.Future[Any]: ...


class ShareGroupServices(Protocol):
    """What share groups need, made on first use; `server.share_groups.ShareServices` is one."""

    @property
    def coordinator(self) -> ShareCoordinator: ...
    @property
    def partitions(self) -> SharePartitionManager: ...
    @property
    def groups(self) -> ShareGroupService: ...


class ConnectionInfo:
    """One client's connection: where it comes from, which address it dialled, what software it says it is.

    `local_host` and `local_port` are what the client dialled: `advertised.listeners=auto` answers with them.
    """

    __slots__ = (
        "_on_close",
        "client_software_name",
        "client_software_version",
        "connection_id",
        "listener_name",
        "local_host",
        "local_port",
        "peer_host",
        "peer_port",
        "principal",
    )

    def __init__(
        self,
        connection_id: str,
        listener_name: str = "PLAINTEXT",
        peer_host: str = "",
        peer_port: int = 0,
        local_host: str = "",
        local_port: int = 0,
        principal: str = ANONYMOUS,
    ) -> None:
        self.connection_id = connection_id
        self.listener_name = listener_name
        self.peer_host = peer_host
        self.peer_port = peer_port
        self.local_host = local_host
        self.local_port = local_port
        self.principal = principal
        self.client_software_name = "unknown"
        self.client_software_version = "unknown"
        self._on_close: dict[Callable[[str], None], None] | None = None

    def when_closed(self, callback: Callable[[str], None]) -> None:
        """Have a function called with the connection's id when the connection has ended; once, however often it is asked."""
        if self._on_close is None:
            self._on_close = {}
        self._on_close[callback] = None

    def closed(self) -> None:
        """The connection has ended."""
        callbacks, self._on_close = self._on_close, None
        for callback in callbacks or ():
            callback(self.connection_id)

    def __repr__(self) -> str:
        return f"ConnectionInfo({self.connection_id} {self.client_software_name}/{self.client_software_version})"


@dataclass(slots=True, kw_only=True)
class BrokerServices:
    """What handlers may use, gathered once by `server.broker`.

    Attributes:
        image: the committed metadata as of now; ask again rather than keep it across a wait.
        now_ms: wall clock, epoch milliseconds.
        quotas: what clients may use.
        client_metrics: the client telemetry, made when a client first asks for it.
        monotonic_ns: a clock for durations, in nanoseconds.
    """

    node_id: int
    cluster_id: str
    config: Settings
    config_schema: ConfigSchema
    config_resolver: ConfigResolver
    replica_manager: ReplicaManager
    group_coordinator: GroupCoordinator
    transaction_coordinator: TransactionCoordinator
    controller: Controller
    image: Callable[[], MetadataImage]
    now_ms: Callable[[], int]
    loop: asyncio.AbstractEventLoop
    random: random.Random
    producer_ids: ProducerIdManager
    fetch_sessions: FetchSessionCache
    share: ShareGroupServices
    quotas: ClientQuotas
    client_metrics: Callable[[], ClientMetricsManager]
    monotonic_ns: Callable[[], int]
    recent_deletions: RecentDeletions
    # Topics whose creation by a Metadata, FindCoordinator or StreamsGroupHeartbeat request is under way.
    creating_topics: dict[str, Creation] = field(default_factory=dict)
    # Internal topics of streams applications that the controller refused: name → why, and until when not to ask again.
    refused_topics: dict[str, tuple[str, int]] = field(default_factory=dict)


class RequestContext:
    """One request's surroundings.

    Attributes:
        accounting: what the request costs; None while nobody asks.
        request: the decoded request while its response waits; what an error response needs to name its parts.
        close_connection: set by a handler to end the connection after this request, as a failed acks=0 produce must.
        holds_order: set by a handler that has not done anything yet: nothing sent behind this request may be handled before it.
    """

    __slots__ = (
        "accounting",
        "api_key",
        "client_id",
        "close_connection",
        "connection",
        "correlation_id",
        "holds_order",
        "request",
        "services",
        "version",
    )

    def __init__(
        self,
        services: BrokerServices,
        connection: ConnectionInfo,
        api_key: int,
        version: int,
        correlation_id: int = 0,
        client_id: str | None = None,
    ) -> None:
        self.services = services
        self.connection = connection
        self.api_key = api_key
        self.version = version
        self.correlation_id = correlation_id
        self.client_id = client_id
        self.close_connection = False
        self.holds_order = False
        self.request: Any = None
        self.accounting: Accounting | None = None

    def __repr__(self) -> str:
        return f"RequestContext(api {self.api_key} v{self.version} #{self.correlation_id} of {self.client_id!r})"
