"""One node: how its parts are assembled, the order of its start and its stop, its timers.

Start
 1. Check what can be checked without a change: the settings, and whether the data directory is this node's or free.
 2. Lock a directory that is formatted: a second broker over it hears that, and not that its port is taken.
 3. Bind the listeners: port 0 is resolved; early connections wait.
 4. Recover the logs, and format the directory if it is new.
 5. Start the controller: read the metadata log and its snapshot; the only voter elects itself.
 6. Register the broker: it receives the image, creates its replicas and coordinators, and is unfenced.
 7. Answer requests.

A start that fails, or is cancelled, leaves nothing behind in a directory that it found unformatted.

Stop: listeners, coordinators, controller, logs, the mark of a clean shutdown, the lock.

- Everything runs on the given loop, except blocking calls (fsync), which run in its executor.
- Clock, randomness and disk are arguments, so that the simulator runs this class unchanged.
- `CannotStart` carries one line for the user. A fault after the start (`wait_failed`) stops the node: if a committed record cannot
  be replayed, this node's state differs from its log.

Limits: one data directory; one voter, which is this node; process.roles is always broker and controller.

Source: Kafka's `KafkaRaftServer`, `ControllerServer`, `BrokerServer`, `BrokerLifecycleManager`.
"""

from __future__ import annotations

import asyncio
import logging
import random as random_module
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from barnabas.api.context import BrokerServices
from barnabas.api.dispatch import Dispatcher
from barnabas.clock import Clock
from barnabas.log.disk import Disk
from barnabas.log.errors import KafkaStorageError, in_words
from barnabas.log.log_config import LogConfig
from barnabas.log.log_manager import LogManager
from barnabas.log.meta_properties import MetaProperties
from barnabas.metadata.config_entries import ConfigResolver
from barnabas.metadata.config_schema import ConfigResourceType
from barnabas.metadata.delta import MetadataDelta
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.leaderless_partitions import LeaderlessPartitions
from barnabas.metadata.local_controller import LocalController
from barnabas.metadata.recent_deletions import RecentDeletions
from barnabas.protocol.errors import KafkaError
from barnabas.quota.client_quotas import ClientQuotas, QuotaWindows
from barnabas.raft.election_state import BadElectionState
from barnabas.raft.raft_node import QuorumNotSupported
from barnabas.replication.fetch_session import FetchSessionCache
from barnabas.replication.replica_manager import ReplicaManager
from barnabas.server.addresses import dialable, metrics_address, remedy_for, why_not
from barnabas.server.broker_lifecycle import BrokerLifecycle
from barnabas.server.cannot_start import CannotStart, remedies
from barnabas.server.config import BrokerConfig, log_config
from barnabas.server.config_table import EMBEDDED_DEFAULTS, config_schema
from barnabas.server.connections import Connections
from barnabas.server.coordinators import Coordinators
from barnabas.server.data_directory import DataDirectory
from barnabas.server.listener import Listener
from barnabas.server.log_cleaning import cleaner_config, cleaner_worker
from barnabas.server.metadata_quorum import MetadataQuorum
from barnabas.server.share_groups import ShareServices
from barnabas.server.start_report import warn_of_onlookers, warn_of_readers, warn_of_strangers
from barnabas.transaction.producer_id_manager import ProducerIdManager

if TYPE_CHECKING:
    from barnabas.server.metrics_endpoint import MetricsEndpoint
    from barnabas.telemetry.client_metrics_manager import ClientMetricsManager

__all__ = ["BrokerServer", "CannotStart"]

logger = logging.getLogger(__name__)

_HOUSEKEEPING_MS = 1_000
_EXPIRE_SENSORS_MS = 30_000
_HAND_OVER_MS = 30_000


class BrokerServer:
    """One node.

    Args:
        now_ms: wall clock, epoch milliseconds.
        random: the source of topic ids, member ids, session ids and the incarnation id.
        monotonic_ns: the clock for durations of requests.

    Attributes:
        failure: the error that ended a running node; None without one.
    """

    def __init__(
        self,
        config: BrokerConfig,
        *,
        loop: asyncio.AbstractEventLoop,
        disk: Disk,
        now_ms: Callable[[], int],
        random: random_module.Random,
        monotonic_ns: Callable[[], int] = time.perf_counter_ns,
    ) -> None:
        self.config = config
        self.failure: BaseException | None = None
        self.listeners: list[Listener] = []
        self.log_manager: LogManager
        self.controller: LocalController
        self._quorum: MetadataQuorum
        self.lifecycle: BrokerLifecycle
        self.replica_manager: ReplicaManager
        self.coordinators: Coordinators
        self.quotas: ClientQuotas
        self.metrics: MetricsEndpoint | None = None
        # Why the broker does not serve requests; empty if it does.
        self._phase = "starting"
        self.client_metrics: ClientMetricsManager | None = None
        self.services: BrokerServices
        self.connections = Connections(config, self.listeners, loop, disk.max_open_files())
        self._directory = DataDirectory(disk, config)
        self._metrics_address: tuple[str, int] | None = None
        self._loop = loop
        self._disk = disk
        self._now_ms = now_ms
        self._random = random
        self._monotonic_ns = monotonic_ns
        self._meta: MetaProperties
        self._image = MetadataImage()
        self._leaderless = LeaderlessPartitions()
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._failed = loop.create_future()
        # Blocking calls under way; a dict, because its order is the same in every run of a simulation.
        self._blocking: dict[asyncio.Future[None], None] = {}

    def __repr__(self) -> str:
        return f"<BrokerServer {self.config.node_id} on {', '.join(self.addresses)} {self._image!r}>"

    @property
    def addresses(self) -> list[str]:
        """HOST:PORT of each listener, as a client can dial it."""
        return [dialable(listener.host, listener.port) for listener in self.listeners]

    @property
    def port(self) -> int:
        """The first listener's port."""
        return self.listeners[0].port

    @property
    def cluster_id(self) -> str:
        return self._meta.cluster_id

    # Start

    async def start(self) -> None:
        """Start and answer requests.

        Raises:
            CannotStart: the directory is locked, belongs to another node or cannot be read, or an address cannot be bound.
        """
        self._check()
        self.log_manager = self._make_log_manager()
        try:
            if self._directory.was_formatted:
                self._directory.lock(self.log_manager)
            await self._bind_http()
            await self._bind()
            self._meta = await self._directory.open(self.log_manager, self._random, self._now_ms(), self._monotonic_ns)
            self._read_metadata()
            self._make_services()
            await self._register()
            self._serve_metrics()
        except (Exception, asyncio.CancelledError):
            await self._abandon()
            raise
        for listener in self.listeners:
            warn_of_strangers(listener)
        if self.metrics is not None:
            warn_of_onlookers(self.metrics.http)
        warn_of_readers(self._directory)
        self._quorum.loader.add_publisher(self._on_metadata)
        await self.lifecycle.heartbeat()
        self._report_leaderless()
        dispatcher = Dispatcher(self.services, None if self.metrics is None else self.metrics.request_times)
        for listener in self.listeners:
            listener.serve(dispatcher)
        self._every(_HOUSEKEEPING_MS, self._housekeeping)
        self._every(_EXPIRE_SENSORS_MS, self._expire_quota_sensors)
        self._every(self.config.broker_heartbeat_interval_ms, self._beat)
        self._phase = ""

    async def _bind_http(self) -> None:
        """Answer health checks, also while the logs are being recovered."""
        if self._metrics_address is not None:
            # 14 ms of a start, which a broker without metrics does not pay.
            from barnabas.server.metrics_endpoint import MetricsEndpoint

            self.metrics = await MetricsEndpoint.bound(self._loop, *self._metrics_address, self._not_ready)

    def _serve_metrics(self) -> None:
        if self.metrics is None:
            return
        self.metrics.measure(
            services=self.services,
            share=self._share,
            controller=self.controller,
            listeners=self.listeners,
            connection_quotas=self.connections.quotas,
            client_metrics=lambda: self.client_metrics,
        )

    def _not_ready(self) -> str:
        """Return why this broker does not serve requests; empty if it does."""
        if self._phase:
            return self._phase
        broker = self._image.cluster.brokers.get(self.config.node_id)
        return "the broker is fenced" if broker is None or broker.fenced else ""

    def _close_http(self) -> None:
        if self.metrics is not None:
            self.metrics.http.close()

    def _check(self) -> None:
        """Find what would fail the start, as far as that needs no change of the disk.

        Raises:
            CannotStart: something would.
        """
        config = self.config
        self._metrics_address = metrics_address(config.str_value("barnabas.metrics.listen"))
        if len(config.log_dirs) > 1:
            raise CannotStart("log.dirs lists several directories (name one: a node has one data directory)")
        try:
            self.connections.configure()
        except ValueError as error:
            raise CannotStart(str(error)) from None
        self._directory.check()

    def _make_log_manager(self) -> LogManager:
        config = self.config
        return LogManager(
            self._disk,
            config.log_dirs[0],
            now_ms=self._now_ms,
            run_blocking=self._run_blocking,
            config_for=lambda topic: self._log_config(topic, self._image),
            retention_check_interval_ms=config.log_retention_check_interval_ms,
            producer_expiration_check_interval_ms=config.producer_id_expiration_check_interval_ms,
            checkpoint_interval_ms=config.log_flush_offset_checkpoint_interval_ms,
            make_cleaner_worker=cleaner_worker(self._disk),
            cleaner_config=cleaner_config(config, self._image.configs),
        )

    def _run_blocking(self, work: Callable[[], None]) -> asyncio.Future[None]:
        future: asyncio.Future[None] = asyncio.ensure_future(self._loop.run_in_executor(None, work), loop=self._loop)
        self._blocking[future] = None
        future.add_done_callback(self._blocking.pop)
        return future

    async def _bind(self) -> None:
        config = self.config
        for endpoint in config.listeners:
            listener = Listener(
                self._loop,
                name=endpoint.name,
                host=endpoint.host,
                port=endpoint.port,
                max_frame_bytes=config.socket_request_max_bytes,
                max_idle_ms=config.connections_max_idle_ms,
                quotas=self.connections.quotas,
                memory=self.connections.memory,
                now_ms=self._now_ms,
                backlog=config.socket_listen_backlog_size,
                send_buffer_bytes=config.socket_send_buffer_bytes,
                lines=self.connections.lines,
                descriptors=self.connections.descriptors,
            )
            try:
                await listener.bind()
            except OSError as error:
                where = f"{endpoint.host}:{endpoint.port}"
                remedy = remedy_for(error, remedies(config.embedded))
                raise CannotStart(f"cannot listen on {where}: {why_not(error)}{remedy}") from None
            self.listeners.append(listener)
            listener.on_room = self.connections.look_for_room

    def _read_metadata(self) -> None:
        root = self.config.log_dirs[0]
        defaults = EMBEDDED_DEFAULTS if self.config.embedded else {}
        self._resolver = ConfigResolver(config_schema(), self.config.node_id, dict(self.config.properties), defaults)
        try:
            self._quorum = MetadataQuorum(
                self.config,
                self._meta,
                self._resolver,
                disk=self._disk,
                loop=self._loop,
                clock=Clock(self._now_ms, lambda: int(self._loop.time() * 1000)),
                random=self._random,
                run_blocking=self._run_blocking,
                on_fault=self.fail,
            )
            self.controller = self._quorum.controller
            self._quorum.start()
        except (KafkaStorageError, OSError) as error:
            raise CannotStart(f"cannot open the metadata log in {root}: {in_words(error)}") from None
        except QuorumNotSupported as error:
            raise CannotStart(f"cannot serve the metadata in {root}: {error}") from None
        except (KafkaError, BadElectionState) as error:
            remedy = "a file is damaged: restore it from a copy"
            raise CannotStart(f"cannot read the metadata in {root}: {in_words(error)} ({remedy})") from None

    def _make_services(self) -> None:
        config = self.config
        self.lifecycle = BrokerLifecycle(
            config, self._meta, self.controller, lambda: self._image.provenance.offset, self._random
        )
        windows = QuotaWindows(
            config.int_value("quota.window.num"),
            config.int_value("quota.window.size.seconds"),
            config.int_value("controller.quota.window.num"),
            config.int_value("controller.quota.window.size.seconds"),
        )
        self.quotas = ClientQuotas(windows, self._now_ms)
        self.replica_manager = ReplicaManager(
            self.log_manager, self._loop, self._now_ms, config.node_id, self._log_config
        )
        self.coordinators = Coordinators(
            config,
            self.replica_manager,
            image=lambda: self._image,
            resolver=self._resolver,
            loop=self._loop,
            now_ms=self._now_ms,
            random=self._random,
            producer_ids=ProducerIdManager(self._loop, self.lifecycle.allocate_producer_ids),
        )
        self._share = ShareServices(self.coordinators.share, self.coordinators.group_configs, lambda: self.services)
        self.services = BrokerServices(
            node_id=config.node_id,
            cluster_id=self.cluster_id,
            config=config,
            config_schema=config_schema(),
            config_resolver=self._resolver,
            replica_manager=self.replica_manager,
            group_coordinator=self.coordinators.group,
            transaction_coordinator=self.coordinators.transaction,
            controller=self.controller,
            image=lambda: self._image,
            now_ms=self._now_ms,
            loop=self._loop,
            random=self._random,
            producer_ids=self.coordinators.producer_ids,
            fetch_sessions=FetchSessionCache(config.max_incremental_fetch_session_cache_slots, self._random),
            share=self._share,
            quotas=self.quotas,
            client_metrics=self._make_client_metrics,
            monotonic_ns=self._monotonic_ns,
            recent_deletions=RecentDeletions(self._now_ms),
        )

    def _log_config(self, topic: str, image: MetadataImage) -> LogConfig:
        configs = image.configs
        return log_config(
            self.config,
            configs.for_resource(ConfigResourceType.TOPIC, topic),
            configs.for_resource(ConfigResourceType.BROKER, ""),
            configs.for_resource(ConfigResourceType.BROKER, str(self.config.node_id)),
        )

    async def _register(self) -> None:
        try:
            await self.lifecycle.register(self.listeners, self.log_manager.broker_epoch)
        except KafkaError as error:
            raise CannotStart(f"the controller rejects this broker: {error.message}") from None
        self.log_manager.broker_epoch = self.lifecycle.epoch

    # Metadata

    def _on_metadata(self, delta: MetadataDelta, image: MetadataImage) -> None:
        """Apply a commit: to the replicas first, then to the coordinators that live on them."""
        is_first = self._image.provenance.offset < 0
        self._image = image
        self.services.recent_deletions.apply(delta)
        self.replica_manager.apply_delta(delta, image)
        self.coordinators.apply_delta(delta)
        self._share.apply_delta(delta, image)
        if delta.client_quotas is not None:
            self.quotas.apply(delta.client_quotas.changed)
        if delta.configs is not None:
            self.log_manager.cleaner.config = cleaner_config(self.config, image.configs)
        self.connections.apply_delta(delta, image)
        if self.client_metrics is not None and delta.configs is not None:
            self.client_metrics.apply(delta.configs.changed.keys(), image.configs)
        if is_first:
            # Not before the first image: it has everything that the quorum had committed.
            self.replica_manager.delete_strays()

    # Timers

    def _every(self, period_ms: int, work: Callable[[], None]) -> None:
        name = work.__name__

        def again() -> None:
            self._timers[name] = self._loop.call_later(period_ms / 1000, again)
            work()

        self._timers[name] = self._loop.call_later(period_ms / 1000, again)

    def _beat(self) -> None:
        self.lifecycle.beat()
        self.controller.tick()
        self._report_leaderless()

    def _report_leaderless(self) -> None:
        if self.controller.is_active:
            for line in self._leaderless.report(self._image):
                logger.warning("%s", line)

    def _housekeeping(self) -> None:
        self.log_manager.housekeeping()

    def _expire_quota_sensors(self) -> None:
        self.quotas.expire(self._now_ms())
        self.connections.quotas.expire(self._now_ms())
        if self.client_metrics is not None:
            self.client_metrics.expire(self._now_ms())

    def _make_client_metrics(self) -> ClientMetricsManager:
        """Return the client telemetry; create it at the first client's request."""
        if self.client_metrics is None:
            # 20 ms of a start, which a broker without subscriptions does not pay.
            from barnabas.telemetry.client_metrics_manager import ClientMetricsManager

            self.client_metrics = ClientMetricsManager(self.config.int_value("telemetry.max.bytes"), self._random)
            self.client_metrics.configure(self._image.configs)
            for listener in self.listeners:
                listener.on_disconnected = self.client_metrics.disconnected
        return self.client_metrics

    # Reset

    async def reset(self) -> None:
        """Delete every topic, record, group, session and dynamic setting; connections stay open.

        For a broker inside a test. Durable state is deleted by requests to the controller, as a client would; what is only in
        memory is replaced.
        """
        # Only a test calls this: a start does not pay for the module.
        from barnabas.server.as_new import make_as_new

        await make_as_new(self.controller, lambda: self._image)
        self._share.reset()
        self.services.fetch_sessions = FetchSessionCache(
            self.config.max_incremental_fetch_session_cache_slots, self._random
        )
        self.services.recent_deletions = RecentDeletions(self._now_ms)

    # The end

    def fail(self, error: BaseException) -> None:
        """Record a fault after which this node must stop; `wait_failed` returns."""
        # What the disk did is said by its words; any other fault is a bug, which its traceback explains.
        is_of_the_disk = isinstance(error, (OSError, KafkaStorageError))
        logger.critical("Stopping after a fault: %s", in_words(error), exc_info=None if is_of_the_disk else error)
        self.failure = error
        if not self._failed.done():
            self._failed.set_result(None)

    async def wait_failed(self) -> None:
        """Return when the node fails; without a fault, wait for ever."""
        await asyncio.shield(self._failed)

    async def stop(self) -> None:
        """Stop cleanly; after a fault, leave the directory as a crash would."""
        self._phase = "stopping"
        began = self._monotonic_ns()
        self.lifecycle.close()
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
        for listener in self.listeners:
            await listener.stop()
        await self._hand_over()
        self._share.close()
        self.coordinators.close()
        self._quorum.stop()
        self.log_manager.cleaner.close()
        if self.failure is None:
            await self._flush_logs()
        self._quorum.close(clean=self.failure is None)
        self.log_manager.close(clean=self.failure is None)
        self._close_http()
        logger.info("Stopped in %.1f s", (self._monotonic_ns() - began) / 1e9)

    async def _hand_over(self) -> None:
        """Give up what this broker leads, so that another replica leads at once, or this one after the next start."""
        if self.failure is not None:
            return
        try:
            await asyncio.wait_for(self.lifecycle.shut_down(), _HAND_OVER_MS / 1000)
        except (KafkaError, TimeoutError) as error:
            reason = error.message if isinstance(error, KafkaError) else "it takes too long"
            logger.warning("This broker stops without handing over its partitions: %s", reason)

    async def _flush_logs(self) -> None:
        """Flush all logs concurrently: a file system commits many syncs together in about the time of one.

        Closing flushes the logs one after the other; a log that is already flushed costs nothing then.
        """
        for _, partition_log in self.log_manager:
            partition_log.flush_elsewhere()
        while self._blocking:
            await asyncio.wait(list(self._blocking))

    async def _abandon(self) -> None:
        """Release everything after a start that failed part of the way."""
        self._close_http()
        for listener in self.listeners:
            await listener.stop()
        self._directory.undo(is_locked=self.log_manager.is_locked)
        self.log_manager.close(clean=self.log_manager.had_clean_shutdown)
