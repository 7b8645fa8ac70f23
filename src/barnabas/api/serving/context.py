"""The arguments of a handler: the request's context, its connection, and the services of the broker or the controller.

A handler is a coroutine `handle(context, request)`. It awaits the commit, the high watermark or the data that the request needs, and
returns the response, or None if the client wants none (Produce with acks=0). It never blocks and never touches the socket; it speaks to
the connection by attributes of the context alone (`close_connection`, `holds_order`).

- `RequestContext` and `ControllerContext` live as long as their request. Handlers of both kinds of listener take an `AnyContext`.
- `ConnectionInfo` lives as long as the connection; ApiVersions sets the client's software.
- `BrokerServices` and `ControllerServices` live as long as the broker and the controller of a node, which have one each.

Source: Kafka's `RequestContext`, and the constructors of `KafkaApis` and `ControllerApis`, which list the same services.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, TypeVar

from barnabas.api import APIS, Api
from barnabas.api.authorization.asker import Asker, Decisions
from barnabas.group.sender import Sender
from barnabas.metadata.controller_request import Client
from barnabas.security.acls import AclOperation, ResourceType
from barnabas.security.hosts import java_address
from barnabas.security.principal import ANONYMOUS, Principal

if TYPE_CHECKING:
    from barnabas.api.accounting import Accounting
    from barnabas.config.config import BrokerConfig
    from barnabas.group.group_coordinator import GroupCoordinator
    from barnabas.group.share.requests import ShareGroupService
    from barnabas.metadata.config_entries import ConfigResolver
    from barnabas.metadata.config_schema import ConfigSchema
    from barnabas.metadata.image import MetadataImage
    from barnabas.metadata.local_controller import LocalController
    from barnabas.metadata.recent_deletions import RecentDeletions
    from barnabas.protocol.message import Message
    from barnabas.protocol.primitives import RecordSlice
    from barnabas.quota.client_quotas import ClientQuotas
    from barnabas.quota.quota_manager import MutationQuota
    from barnabas.raft.raft_driver import RaftDriver
    from barnabas.replication.fetch_session_cache import FetchSessionCache
    from barnabas.replication.replica_manager import ReplicaManager
    from barnabas.security.authorizer import StandardAuthorizer
    from barnabas.security.server_login import ServerLogin
    from barnabas.share.share_coordinator import ShareCoordinator
    from barnabas.share.share_partition_manager import SharePartitionManager
    from barnabas.telemetry.client_metrics_manager import ClientMetricsManager
    from barnabas.transaction.producer_id_manager import ProducerIdManager
    from barnabas.transaction.transaction_coordinator import TransactionCoordinator

__all__ = [
    "AnyContext",
    "BrokerServices",
    "Client",
    "ConnectionInfo",
    "Controller",
    "ControllerContext",
    "ControllerServices",
    "RequestContext",
]


Creation = asyncio.Future[dict[str, int]]
"""A creation of topics; its result has an error code for each name."""


class Controller(Protocol):
    """The active controller for handlers: `metadata.local_controller.LocalController`, or the way to it over the network,
    `quorum.controller_channel.ControllerChannel`.
    """

    def handle(
        self,
        api_key: int,
        version: int,
        request: Message,
        *,
        principal: Principal = ANONYMOUS,
        deadline_ms: int | None = None,
        mutation_quota: MutationQuota | None = None,
        is_long: bool = False,
        client: Client | None = None,
    ) -> asyncio.Future[Any]:
        """Return the response.

        Args:
            principal, client: who asks; `client` is None if the node asks in its own name, and then the principal means nothing.
        """
        ...


class ShareGroupServices(Protocol):
    """The services of share groups, made on first use; `node.share_groups.ShareServices` is one."""

    @property
    def coordinator(self) -> ShareCoordinator: ...
    @property
    def partitions(self) -> SharePartitionManager: ...
    @property
    def groups(self) -> ShareGroupService: ...


class ConnectionInfo:
    """One client's connection.

    Attributes:
        local_host, local_port: the address that the client dialled; `advertised.listeners=auto` means this address.
        principal: who logged in; ANONYMOUS without a login.
        security_protocol: of the listener, such as SASL_SSL; None in a request that a broker has forwarded.
        client_software_name, client_software_version: as the client says in ApiVersions.
        decisions: the authorizer's about this principal at this address.
        login: of a listener with SASL; None without.
    """

    __slots__ = (
        "_on_close",
        "client_software_name",
        "client_software_version",
        "connection_id",
        "decisions",
        "listener_name",
        "local_host",
        "local_port",
        "login",
        "peer_host",
        "peer_port",
        "principal",
        "security_protocol",
    )

    def __init__(
        self,
        connection_id: str,
        listener_name: str = "PLAINTEXT",
        peer_host: str = "",
        peer_port: int = 0,
        local_host: str = "",
        local_port: int = 0,
        principal: Principal = ANONYMOUS,
        security_protocol: str | None = "PLAINTEXT",
    ) -> None:
        self.connection_id = connection_id
        self.security_protocol = security_protocol
        self.listener_name = listener_name
        self.peer_host = peer_host
        self.peer_port = peer_port
        self.local_host = local_host
        self.local_port = local_port
        self.principal = principal
        self.decisions = Decisions()
        self.client_software_name = "unknown"
        self.client_software_version = "unknown"
        self.login: ServerLogin | None = None
        self._on_close: dict[Callable[[str], None], None] | None = None

    def when_closed(self, callback: Callable[[str], None]) -> None:
        """Call `callback` with the connection's id when the connection closes; once, even if it is registered twice."""
        if self._on_close is None:
            self._on_close = {}
        self._on_close[callback] = None

    def closed(self) -> None:
        """Run the callbacks: the connection has closed."""
        callbacks, self._on_close = self._on_close, None
        for callback in callbacks or ():
            callback(self.connection_id)

    def __repr__(self) -> str:
        software = f"{self.client_software_name}/{self.client_software_version}"
        return f"<ConnectionInfo id={self.connection_id} software={software}>"


@dataclass(slots=True, kw_only=True)
class BrokerServices:
    """The services that handlers of a broker's listeners use.

    Attributes:
        apis: the APIs that these listeners serve.
        image: returns the current committed metadata; call it again after a wait.
        now_ms: wall clock, epoch milliseconds.
        client_metrics: returns the client telemetry, made at the first call.
        monotonic_ns: a clock for durations, in nanoseconds.
        creating_topics: topics that Metadata, FindCoordinator or StreamsGroupHeartbeat requests are creating.
        missing_topics: coordinators' topics that the controller could not create, and the last reason.
        authorizer: None if everything is allowed.
        refused_topics: internal topics of streams applications that the controller rejected: name → reason, and the time of the next try.
        why_not_settings: returns why this node cannot honour settings, its own in the metadata; empty if it can.
    """

    listener_kind: ClassVar[str] = "broker"
    apis: ClassVar[Mapping[int, Api]] = APIS
    node_id: int
    cluster_id: str
    config: BrokerConfig
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
    why_not_settings: Callable[[Mapping[str, str]], Awaitable[str]]
    authorizer: StandardAuthorizer | None = None
    creating_topics: dict[str, Creation] = field(default_factory=dict)
    missing_topics: dict[str, str] = field(default_factory=dict)
    refused_topics: dict[str, tuple[str, int]] = field(default_factory=dict)


@dataclass(slots=True, kw_only=True)
class ControllerServices:
    """The services that handlers of a controller's listeners use.

    Attributes:
        apis: the APIs that these listeners serve.
        controller: of this node, active or not.
        driver: this node's part of the quorum.
        heard: is called with the broker, its epoch and the connection of each heartbeat.
        image: returns the current committed metadata; call it again after a wait.
        now_ms: wall clock, epoch milliseconds.
        monotonic_ns: a clock for durations, in nanoseconds.
        authorizer: None if everything is allowed.
        why_not_settings: None: a controller does not check the settings of brokers' files, as Kafka's do not.
    """

    listener_kind: ClassVar[str] = "controller"
    why_not_settings: ClassVar[None] = None
    apis: Mapping[int, Api]
    node_id: int
    cluster_id: str
    config: BrokerConfig
    config_resolver: ConfigResolver
    controller: LocalController
    driver: RaftDriver
    heard: Callable[[int, int, ConnectionInfo], None]
    image: Callable[[], MetadataImage]
    now_ms: Callable[[], int]
    loop: asyncio.AbstractEventLoop
    random: random.Random
    quotas: ClientQuotas
    monotonic_ns: Callable[[], int]
    authorizer: StandardAuthorizer | None = None


def _sees(authorizer: StandardAuthorizer, principal: Principal, host: str, topic: str) -> bool:
    """Return whether a client may describe a topic; any thread may call this."""
    return authorizer.is_allowed(principal, host, AclOperation.DESCRIBE, ResourceType.TOPIC, topic)


Services = TypeVar("Services", bound="BrokerServices | ControllerServices")


class _Context(Generic[Services]):
    """The parts of a request around its body, and what its handler may use.

    Attributes:
        accounting: the request's costs; None without quotas and metrics.
        request: the decoded request until its response is made; an error response repeats parts of it.
        close_connection: a handler sets it to close the connection after this request, as a failed acks=0 produce must.
        has_waited, output: whether the response had to wait; its bytes if it had not.
        holds_order: a handler that waits before it has done anything sets it, so that no later request overtakes this one.
        when_released: set by the connection, to continue when the order is held no longer.
        is_long: the request took the executor to decode; so does its response, and what the controller makes of it.
    """

    __slots__ = (
        "accounting",
        "api_key",
        "client_id",
        "close_connection",
        "connection",
        "correlation_id",
        "has_waited",
        "holds_order",
        "is_long",
        "output",
        "request",
        "services",
        "version",
        "when_released",
    )

    def __init__(
        self,
        services: Services,
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
        self.has_waited = False
        self.output: list[bytearray | RecordSlice] | None = None
        self.holds_order = False
        self.when_released: Callable[[], object] | None = None
        self.is_long = False
        self.request: Any = None
        self.accounting: Accounting | None = None

    @property
    def asker(self) -> Asker | None:
        """Who asks the authorizer in this request; None if everything is allowed."""
        services, connection = self.services, self.connection
        if services.authorizer is None:
            return None
        return Asker(
            services.authorizer,
            connection.principal,
            connection.peer_host,
            connection.decisions,
            api_key=self.api_key,
            version=self.version,
            image=services.image,
        )

    @property
    def sender(self) -> Sender:
        """The client, for requests of groups."""
        connection, authorizer = self.connection, self.services.authorizer
        sees = None
        if authorizer is not None:
            host = java_address(connection.peer_host)
            sees = partial(_sees, authorizer, connection.principal, host)
        return Sender(self.client_id or "", f"/{connection.peer_host}", self.version, connection.principal, sees)

    def __repr__(self) -> str:
        return (
            f"<{type(self).__name__} api_key={self.api_key} version={self.version} correlation_id={self.correlation_id}"
            f" client_id={self.client_id!r}>"
        )


class RequestContext(_Context[BrokerServices]):
    """A request on a broker's listener."""

    __slots__ = ()


class ControllerContext(_Context[ControllerServices]):
    """A request on a controller's listener."""

    __slots__ = ()


AnyContext = RequestContext | ControllerContext
