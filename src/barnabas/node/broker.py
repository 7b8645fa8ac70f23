"""The broker of a node: replicas, coordinators, and the listeners for clients.

Start
 1. Bind the listeners.
 2. Register with the controller.
 3. Receive the metadata, as new as the registration: create the replicas and the coordinators that live on them.
 4. Be unfenced, and answer requests.

Stop: listeners, partitions handed over, coordinators. The node closes the logs afterwards.

Source: Kafka's `BrokerServer`, `BrokerMetadataPublisher`.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from barnabas.api.serving.context import BrokerServices
from barnabas.api.serving.dispatch import Dispatcher
from barnabas.config.cannot_start import CannotStart
from barnabas.config.config import BrokerConfig, effective_broker_value, log_config, quota_windows, value_in_force
from barnabas.config.config_checks import selects_by_rack
from barnabas.config.config_table import config_schema
from barnabas.config.runtime import Runtime
from barnabas.config.timers import Timers
from barnabas.log.log_config import LogConfig
from barnabas.log.log_directories import LogDirectories, Logs
from barnabas.log.log_manager import LogManager
from barnabas.log.meta_properties import MetaProperties
from barnabas.metadata.config_entries import ConfigResolver
from barnabas.metadata.config_schema import ConfigResourceType
from barnabas.metadata.cordoned_directories import CORDONED, cordoned_among, why_not_cordoned
from barnabas.metadata.delta import MetadataDelta
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.metadata_version import CORDONED_DIRECTORIES_SINCE
from barnabas.metadata.recent_deletions import RecentDeletions
from barnabas.net.addresses import dialable
from barnabas.net.connections import Connections
from barnabas.net.listener import Listener
from barnabas.net.listeners import bind_listeners
from barnabas.net.security_of_listeners import securities
from barnabas.node.broker_lifecycle import BrokerLifecycle
from barnabas.node.coordinators import Coordinators
from barnabas.node.directory_assignments import placement_of
from barnabas.node.directory_move_limit import move_quota, moved_bytes_per_second
from barnabas.node.log_cleaning import cleaner_config
from barnabas.node.share_groups import ShareServices
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.quota.client_quotas import ClientQuotas
from barnabas.replication.directory_failures import DirectoryFailures
from barnabas.replication.directory_moves import DirectoryMoves
from barnabas.replication.fetch_session_cache import FetchSessionCache
from barnabas.replication.leaderless_replicas import LeaderlessReplicas
from barnabas.replication.replica_changes import apply_delta
from barnabas.replication.replica_manager import ReplicaManager
from barnabas.transaction.producer_id_manager import ProducerIdManager

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from barnabas.api.serving.context import Controller
    from barnabas.api.serving.dispatch import Observer
    from barnabas.metadata.configs_image import ConfigurationsImage
    from barnabas.net.renewed_stores import RenewedStores
    from barnabas.node.directory_assignments import Placement
    from barnabas.node.inter_broker import InterBrokerChannels
    from barnabas.node.membership import Membership
    from barnabas.node.metrics_endpoint import MetricsEndpoint
    from barnabas.quorum.metadata_quorum import MetadataQuorum
    from barnabas.quota.replication_quota_manager import ReplicationQuotaManager
    from barnabas.replication.replicated_partitions import ReplicatedPartitions
    from barnabas.security.authorizer import StandardAuthorizer
    from barnabas.telemetry.client_metrics_manager import ClientMetricsManager

__all__ = ["BrokerServer"]

logger = logging.getLogger(__name__)

_EXPIRE_SENSORS_MS = 30_000
_HAND_OVER_MS = 30_000


class BrokerServer:
    """One broker.

    Args:
        resolver: resolves this node's settings.
        membership: what the node does alone, or as a member of a cluster.
        stores: of the listeners and connections of this node.
        authorizer: None if everything is allowed.

    Attributes:
        image: the metadata as of now.
        client_metrics: the client telemetry; None until a client asks for its subscription.
        directory_failures: None for a broker with one data directory.
        dispatcher: of the listeners, once this broker answers requests.
        stores: as given.
    """

    def __init__(
        self,
        config: BrokerConfig,
        runtime: Runtime,
        resolver: ConfigResolver,
        membership: Membership,
        on_fault: Callable[[BaseException], None],
        stores: RenewedStores,
        authorizer: StandardAuthorizer | None = None,
    ) -> None:
        self.config = config
        self.image = MetadataImage()
        self.listeners: list[Listener] = []
        self.log_manager: Logs
        self.controller: Controller
        self.lifecycle: BrokerLifecycle
        self.replica_manager: ReplicaManager
        self.coordinators: Coordinators
        self.quotas: ClientQuotas
        self.client_metrics: ClientMetricsManager | None = None
        self.services: BrokerServices
        self.dispatcher: Dispatcher
        self.connections = Connections(config, self.listeners, runtime.loop, runtime.disk.max_open_files())
        self._quorum: MetadataQuorum
        self._runtime = runtime
        self._resolver = resolver
        self._membership = membership
        self._on_fault = on_fault
        self._authorizer = authorizer
        self.stores = stores
        self._timers = Timers(runtime.loop)
        self._channels: InterBrokerChannels | None = None
        self.directory_failures: DirectoryFailures | None = None
        self._move_quota: ReplicationQuotaManager | None = None
        self._placement: Placement
        # Done when the metadata of this broker has it as unfenced for the first time.
        self._has_seen_itself: asyncio.Future[None] = runtime.loop.create_future()

    def __repr__(self) -> str:
        return f"<BrokerServer {self.config.node_id} on {', '.join(self.addresses)} {self.image!r}>"

    @property
    def addresses(self) -> list[str]:
        """HOST:PORT of each listener, as a client can dial it."""
        return [dialable(listener.host, listener.port) for listener in self.listeners]

    # Start

    def check(self) -> None:
        """Find what would fail the start, without a change of anything.

        Raises:
            CannotStart: something would.
        """
        try:
            self.connections.configure()
        except ValueError as error:
            raise CannotStart(str(error)) from None

    async def bind(self) -> None:
        """Bind the listeners; early connections wait.

        Raises:
            CannotStart: the node cannot bind an address, or cannot use a security setting of a listener.
        """
        await bind_listeners(
            self.config.listeners,
            self.listeners,
            self.connections,
            self.config,
            loop=self._runtime.loop,
            now_ms=self._runtime.now_ms,
            securities=securities(
                self.config, self.config.listeners, lambda: self.image, self._runtime.now_ms, self.stores
            ),
        )

    async def register(
        self,
        meta: MetaProperties,
        quorum: MetadataQuorum,
        log_manager: Logs,
    ) -> None:
        """Register with the controller.

        Args:
            log_manager: of the logs that this broker has; recovered.

        Raises:
            CannotStart: the controller rejects this broker.
        """
        self.log_manager = log_manager
        self.controller = self._membership.controller_for("forwarding", quorum)
        self._quorum = quorum
        self._make_services(meta)
        try:
            await self.lifecycle.register(self.listeners, log_manager.broker_epoch)
        except KafkaError as error:
            if error.code == ErrorCode.REQUEST_TIMED_OUT:
                setting = "voters" if self.config.quorum_voters else "bootstrap.servers"
                remedy = f"start the controllers that controller.quorum.{setting} names, or correct their addresses"
                raise CannotStart(f"cannot register this broker: {error.message} ({remedy})") from None
            if error.code == ErrorCode.DUPLICATE_BROKER_REGISTRATION:
                remedy = "stop it, or start this one with another node.id and an empty directory"
                raise CannotStart(f"another process serves as node {meta.node_id} ({remedy})") from None
            raise CannotStart(f"the controller rejects this broker: {error.message}") from None
        log_manager.broker_epoch = self.lifecycle.epoch
        await log_manager.claim.prepare(self.lifecycle.epoch)

    async def enter_service(self, observer: Observer | None) -> None:
        """Apply the metadata, be unfenced, and answer requests.

        Args:
            observer: counts requests, for metrics.
        """
        await self._membership.catch_up(self.lifecycle.catch_up)
        await self._quorum.loader.add_late_publisher(self._on_metadata)
        self.dispatcher = Dispatcher(self.services, observer, self.connections.lines)
        await self._membership.begin_service(self._serve, self._be_unfenced)

    def _serve(self) -> None:
        for listener in self.listeners:
            listener.serve(self.dispatcher)
        self._timers.every(_EXPIRE_SENSORS_MS, self._expire_quota_sensors)
        interval_ms = self.coordinators.transaction.config.abort_timed_out_interval_ms
        self._timers.every(interval_ms, self.coordinators.end_hanging_transactions)

    async def _be_unfenced(self) -> None:
        await self.lifecycle.unfence()
        # The controller may answer before the change is here; a client that asks this broker for the brokers must find it among them.
        await self._has_seen_itself

    def measured_by(self, metrics: MetricsEndpoint) -> None:
        """Show this broker on `/metrics`."""
        metrics.measure(
            services=self.services,
            share=self._share,
            quorum=self._quorum,
            listeners=self.listeners,
            connection_quotas=self.connections.quotas,
            client_metrics=lambda: self.client_metrics,
            stores=self.stores,
        )

    def not_ready(self) -> str:
        """Return why this broker does not serve requests; empty if it does."""
        broker = self.image.cluster.brokers.get(self.config.node_id)
        return "the broker is fenced" if broker is None or broker.fenced else ""

    def _make_services(self, meta: MetaProperties) -> None:
        config, runtime = self.config, self._runtime
        placement = self._placement = placement_of(self.log_manager)
        self.lifecycle = BrokerLifecycle(
            config,
            self._membership,
            meta,
            self._membership.controller_for("heartbeat", self._quorum),
            lambda: self._quorum.loader.image.provenance.offset,
            runtime.random,
            runtime.loop,
            lambda: self._leaderless.logs(),
            placement.ids,
            self._offline_directories,
            self._cordoned_directories,
        )
        self.quotas = ClientQuotas(quota_windows(config), runtime.now_ms)
        self.replica_manager = ReplicaManager(
            self.log_manager,
            runtime.loop,
            runtime.now_ms,
            config.node_id,
            self._log_config,
            config.replica_lag_time_max_ms,
        )
        self._leaderless = LeaderlessReplicas(self.replica_manager)
        self.replica_manager.own_broker_epoch = lambda: self.lifecycle.epoch
        self.replica_manager.on_disk_failure = self._on_fault
        self._tolerate_lost_directories()
        self.replica_manager.names_replicas_by_rack = selects_by_rack(config.value)
        self.replica_manager.make_replicated = self._make_replicated
        self._membership.replicate(self.replica_manager, placement, lambda: self.lifecycle.epoch, self._quorum)
        remote = self._membership.other_brokers(lambda: self.image, self.channels)
        self.coordinators = Coordinators(
            config,
            self.replica_manager,
            image=lambda: self.image,
            resolver=self._resolver,
            loop=runtime.loop,
            now_ms=runtime.now_ms,
            random=runtime.random,
            producer_ids=ProducerIdManager(runtime.loop, lambda: self.lifecycle.allocate_producer_ids(self.controller)),
            remote=remote,
        )
        self._share = ShareServices(
            self.coordinators.share, self.coordinators.group_configs, lambda: self.services, remote
        )
        self.services = BrokerServices(
            node_id=config.node_id,
            cluster_id=meta.cluster_id,
            config=config,
            config_schema=config_schema(),
            config_resolver=self._resolver,
            replica_manager=self.replica_manager,
            group_coordinator=self.coordinators.group,
            transaction_coordinator=self.coordinators.transaction,
            controller=self.controller,
            image=lambda: self.image,
            now_ms=runtime.now_ms,
            loop=runtime.loop,
            random=runtime.random,
            producer_ids=self.coordinators.producer_ids,
            fetch_sessions=FetchSessionCache(config.max_incremental_fetch_session_cache_slots, runtime.random),
            share=self._share,
            quotas=self.quotas,
            client_metrics=self._make_client_metrics,
            monotonic_ns=runtime.monotonic_ns,
            recent_deletions=RecentDeletions(runtime.now_ms),
            authorizer=self._authorizer,
            why_not_settings=self._why_not_settings,
        )

    def _tolerate_lost_directories(self) -> None:
        """Let this broker go on without a directory that fails, if it has several."""
        if isinstance(self.log_manager, LogDirectories):
            self.directory_failures = DirectoryFailures(
                self.replica_manager,
                self.log_manager,
                self.config.metadata_dir,
                lambda: self.lifecycle.beat_soon(),
                self.config.int_value("log.dir.failure.timeout.ms"),
                self._runtime.loop,
            )
            self._move_quota = move_quota(self.config, self._runtime.now_ms)
            replicas = self.replica_manager
            replicas.moves = DirectoryMoves(
                replicas.node_id,
                self.log_manager,
                self._move_quota,
                self._runtime.loop,
                replicas.hosted_partition,
                replicas.registration_of,
                replicas.notify_changed,
            )

    def _offline_directories(self) -> list[bytes]:
        return [] if self.directory_failures is None else self.directory_failures.offline_ids

    def _cordoned_directories(self) -> list[bytes] | None:
        if (self.image.features.metadata_version or 0) < CORDONED_DIRECTORIES_SINCE:
            return None
        online = [each for each in self.log_manager.directories if isinstance(each, LogManager)]
        return [id for id, each in zip(self._placement.ids, online, strict=False) if each.is_cordoned]

    def _cordon(self, configs: ConfigurationsImage) -> None:
        """Let new replicas go where the settings allow; the controller learns of it."""
        value = value_in_force(self.config, CORDONED, configs)
        cordoned = cordoned_among(value, self.config.log_dirs)
        changed = [each for each in self.log_manager.directories if each.is_cordoned != (each.root_dir in cordoned)]
        for each in changed:
            each.is_cordoned = not each.is_cordoned
            what = "gets no new replica" if each.is_cordoned else "gets new replicas again"
            logger.info("The data directory %s %s (%s)", each.root_dir, what, CORDONED)
        if changed:
            self.lifecycle.beat_soon()
            if why := why_not_cordoned(value, self.config.log_dirs):
                logger.warning("%s", why)

    async def _why_not_settings(self, dynamic: Mapping[str, str]) -> str:
        """Return Kafka's answer to settings of this node in the metadata that it cannot honour; empty if it can."""
        value = effective_broker_value(self.config, CORDONED, {}, dynamic)
        if why := why_not_cordoned(value, self.config.log_dirs):
            return f"requirement failed: {why}"
        return await self.stores.why_not(dynamic)

    def log_config_of(self, topic: str) -> LogConfig:
        """Return a topic's settings as of now."""
        return self._log_config(topic, self.image)

    def _log_config(self, topic: str, image: MetadataImage) -> LogConfig:
        configs = image.configs
        return log_config(
            self.config,
            configs.for_resource(ConfigResourceType.TOPIC, topic),
            configs.for_resource(ConfigResourceType.BROKER, ""),
            configs.for_resource(ConfigResourceType.BROKER, str(self.config.node_id)),
        )

    # Metadata

    async def _on_metadata(self, delta: MetadataDelta, image: MetadataImage) -> None:
        """Apply a commit: to the replicas first, then to the coordinators that live on them."""
        is_first = self.image.provenance.offset < 0
        self.image = image
        if self._channels is not None and delta.cluster is not None:
            self._channels.drop_outdated()
        if is_first or delta.configs is not None:
            self._cordon(image.configs)
            await self.stores.apply(image.configs)
        self.services.recent_deletions.apply(delta)
        self._membership.apply_settings(delta, image)
        await apply_delta(self.replica_manager, delta, image)
        await self._membership.apply_replicas(delta)
        if self.replica_manager.is_closed:
            return  # This broker has stopped meanwhile.
        if self._leaderless.have_changed():
            self.lifecycle.beat_soon()
        self.coordinators.apply_delta(delta)
        self._share.apply_delta(delta, image)
        if delta.client_quotas is not None:
            self.quotas.apply(delta.client_quotas.changed)
        if delta.configs is not None:
            self.log_manager.cleaner.config = cleaner_config(self.config, image.configs)
            if self._move_quota is not None:
                self._move_quota.limit = moved_bytes_per_second(self.config, image.configs)
        self.connections.apply_delta(delta, image)
        if self.client_metrics is not None and delta.configs is not None:
            self.client_metrics.apply(delta.configs.changed.keys(), image.configs)
        if is_first:
            # Not before the first image: it has everything that the quorum had committed.
            await self.replica_manager.set_strays_aside()
            if self.replica_manager.moves is not None:
                self.replica_manager.moves.resume()
        if not self._has_seen_itself.done() and not self.not_ready():
            self._has_seen_itself.set_result(None)

    # Timers

    def _expire_quota_sensors(self) -> None:
        self.quotas.expire(self._runtime.now_ms())
        self.connections.quotas.expire(self._runtime.now_ms())
        if self.client_metrics is not None:
            self.client_metrics.expire(self._runtime.now_ms())

    def _make_client_metrics(self) -> ClientMetricsManager:
        """Return the client telemetry; create it at the first client's request."""
        if self.client_metrics is None:
            # 20 ms of a start, which a broker without subscriptions does not pay.
            from barnabas.telemetry.client_metrics_manager import ClientMetricsManager

            self.client_metrics = ClientMetricsManager(
                self.config.int_value("telemetry.max.bytes"), self._runtime.random
            )
            self.client_metrics.configure(self.image.configs)
            for listener in self.listeners:
                listener.on_disconnected = self.client_metrics.disconnected
        return self.client_metrics

    # Other brokers

    def channels(self) -> InterBrokerChannels:
        """Return the connections to the other brokers; made at the first call."""
        if self._channels is None:
            # A node alone does not import it.
            from barnabas.node.inter_broker import InterBrokerChannels

            self._channels = InterBrokerChannels(lambda: self.image, self.config, self._runtime.loop, self.stores)
        return self._channels

    def _make_replicated(self, replicas: ReplicaManager) -> ReplicatedPartitions:
        # A node alone does not import it.
        from barnabas.node.replica_fetching import replicated_partitions

        controller = self._membership.controller_for("alter-partition", self._quorum)
        return replicated_partitions(
            replicas, self.config, self.channels(), controller, lambda: self.lifecycle.epoch, self._runtime.loop
        )

    # Reset

    async def reset(self) -> None:
        """Delete every topic, record, group, session and dynamic setting; connections stay open.

        For a broker inside a test. Durable state is deleted by requests to the controller, as a client would; what is only in
        memory is replaced.
        """
        # Only a test calls this: a start does not pay for the module.
        from barnabas.node.as_new import make_as_new

        await make_as_new(self.controller, lambda: self.image)
        self.forget_sessions()

    def forget_sessions(self) -> None:
        """Replace what is only in memory: the sessions of fetches and of share groups, and the topics that were just deleted."""
        self._share.reset()
        self.services.fetch_sessions = FetchSessionCache(
            self.config.max_incremental_fetch_session_cache_slots, self._runtime.random
        )
        self.services.recent_deletions = RecentDeletions(self._runtime.now_ms)

    # The end

    async def stop(self, *, is_in_order: bool) -> None:
        """Serve no more.

        Args:
            is_in_order: whether to hand the partitions over; not after a fault.
        """
        self.lifecycle.close()
        self._has_seen_itself.cancel()
        self._timers.cancel()
        if is_in_order:
            await self._membership.end_service(self._stop_listeners, self._hand_over)
        else:
            await self._stop_listeners()
        self._share.close()
        self.coordinators.close()
        self.replica_manager.close()
        if self.directory_failures is not None:
            self.directory_failures.close()
        self._leave_replication()

    def _leave_replication(self) -> None:
        self._membership.leave_replication()
        if self._channels is not None:
            self._channels.close()

    async def abandon(self) -> None:
        """Release what a start has made that failed part of the way."""
        self._leave_replication()
        await self._stop_listeners()

    async def _stop_listeners(self) -> None:
        for listener in self.listeners:
            await listener.stop()

    async def _hand_over(self) -> None:
        """Give up what this broker leads, so that another replica leads at once, or this one after the next start."""
        try:
            await asyncio.wait_for(self.lifecycle.shut_down(), _HAND_OVER_MS / 1000)
        except (KafkaError, TimeoutError) as error:
            reason = error.message if isinstance(error, KafkaError) else "it takes too long"
            logger.warning("This broker stops without handing over its partitions: %s", reason)
