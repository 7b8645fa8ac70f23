"""One node: what its broker and its controller share, the order of its start and its stop, its timers.

    Node ─┬─► MetadataQuorum     the metadata log, its loader, and on a controller the controller
          ├─► ControllerServer   the listeners for the other nodes of the quorum; only with `controller.listener.names`
          └─► BrokerServer       replicas, coordinators, and the listeners for clients; only with the role broker

Start
 1. Check what can be checked without a change: the settings, and whether the data directory is this node's or free.
 2. Lock a directory that is formatted: a second broker over it hears that, and not that its port is taken.
 3. Bind the listeners: port 0 is resolved; early connections wait. A port that is open to strangers ends the start (`open_ports`).
 4. Format the directory if it is new.
 5. Join the quorum: read the metadata log and its snapshot; the only voter elects itself, others are asked. Recover the logs. `membership`
    has the order of the two, and whatever else depends on other nodes.
 6. Start the broker: it registers, receives the image, creates its replicas and coordinators, is unfenced, and answers requests.

A start that fails, or is cancelled, leaves nothing behind in a directory that it found unformatted.

Stop: the broker (its partitions are handed over, listeners, coordinators), the controller, logs, the mark of a clean shutdown, the lock.

- Everything runs on the given loop, except blocking calls (fsync), which run in its executor.
- Clock, randomness and disk are arguments, so that the simulator runs this class unchanged.
- `CannotStart` carries one line for the user. A fault after the start (`wait_failed`) stops the node: if a committed record cannot
  be replayed, this node's state differs from its log.

Source: Kafka's `KafkaRaftServer`, `SharedServer`.
"""

from __future__ import annotations

import asyncio
import importlib
import logging
import random as random_module
import time
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

from barnabas.api.authorization.audit import ChangeAudit
from barnabas.api.authorization.guard import ControllerGuard
from barnabas.config.authorizer_settings import authorizer_of
from barnabas.config.cannot_start import CannotStart
from barnabas.config.config import BrokerConfig
from barnabas.config.config_table import EMBEDDED_DEFAULTS, config_schema
from barnabas.config.runtime import Runtime
from barnabas.config.timers import Timers
from barnabas.directory.data_directories import DataDirectories
from barnabas.directory.start_report import warn_of_readers
from barnabas.log.disk import Disk
from barnabas.log.errors import KafkaStorageError, in_words
from barnabas.log.log_config import LogConfig
from barnabas.log.log_directories import LogDirectories, Logs
from barnabas.log.log_manager import LogManager
from barnabas.log.meta_properties import META_PROPERTIES
from barnabas.log.open_files import OpenFiles
from barnabas.metadata.acl_publisher import AclPublisher
from barnabas.metadata.config_entries import ConfigResolver
from barnabas.metadata.config_schema import ConfigResourceType
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.leaderless_partitions import LeaderlessPartitions
from barnabas.net.addresses import dialable, metrics_address
from barnabas.net.renewed_stores import LOOK_MS, RenewedStores
from barnabas.node.broker import BrokerServer
from barnabas.node.log_cleaning import cleaner_config, cleaner_worker
from barnabas.node.membership import membership_of
from barnabas.node.open_ports import open_ports, refuse_open_ports, warn_of_open_ports
from barnabas.protocol.errors import KafkaError
from barnabas.quorum.metadata_quorum import MetadataQuorum
from barnabas.raft.election_state import BadElectionState
from barnabas.raft.raft_node import QuorumNotSupported
from barnabas.steps import in_background
from barnabas.turns import WRITE, pace

if TYPE_CHECKING:
    from barnabas.log.meta_properties import MetaProperties
    from barnabas.net.listener import Listener
    from barnabas.node.metrics_endpoint import MetricsEndpoint
    from barnabas.quorum.controller_server import ControllerServer
    from barnabas.security.authorizer import StandardAuthorizer

__all__ = ["CannotStart", "Node"]

logger = logging.getLogger(__name__)

_HOUSEKEEPING_MS = 1_000

_LATE = 8
"""A controller that looks after its sessions this part of a session too late has stood still."""


class Node:
    """One node.

    Args:
        now_ms: wall clock, epoch milliseconds.
        random: the source of topic ids, member ids, session ids and the incarnation id.
        monotonic_ns: the clock for durations of requests.

    Attributes:
        quorum: this node's part of the metadata quorum, after the start.
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
        self.metrics: MetricsEndpoint | None = None
        self.quorum: MetadataQuorum
        self._runtime = Runtime(loop, disk, now_ms, random, monotonic_ns, self._run_blocking)
        self._meta: MetaProperties
        # Why the node does not serve requests; empty if it does.
        self._phase = "starting"
        self._directory = DataDirectories(disk, config)
        self._metrics_address: tuple[str, int] | None = None
        self._loop = loop
        self._leaderless = LeaderlessPartitions()
        self._authorizer = authorizer_of(config.properties)
        self._timers = Timers(loop)
        self._failed = loop.create_future()
        self._has_joined = False
        # Blocking calls under way; a dict, because its order is the same in every run of a simulation.
        self._blocking: dict[asyncio.Future[None], None] = {}
        self._keeping_house: asyncio.Future[None] | None = None
        defaults = EMBEDDED_DEFAULTS if config.embedded else {}
        self._resolver = ConfigResolver(config_schema(), config.node_id, dict(config.properties), defaults)
        self._ticked_ms: int | None = None
        self._stores = RenewedStores(loop, config.node_id)
        self._membership = membership_of(config, self._runtime, self._stores)
        self._broker: BrokerServer | None = None
        if config.is_broker:
            self._broker = BrokerServer(
                config, self._runtime, self._resolver, self._membership, self.fail, self._stores, self._authorizer
            )
        self._controllers = self._make_controller_server() if config.controller_listeners else None
        self.log_manager: Logs

    def __repr__(self) -> str:
        parts = [part for part in (self._broker, self._controllers) if part is not None]
        return f"<Node {self.config.node_id} {' '.join(map(repr, parts))}>"

    @property
    def broker(self) -> BrokerServer:
        """The broker of a node that has this role."""
        assert self._broker is not None, f"node {self.config.node_id} is no broker"
        return self._broker

    @property
    def addresses(self) -> list[str]:
        """HOST:PORT of each listener for clients, as they can dial it; on a node that is no broker, of those for controllers."""
        return [dialable(listener.host, listener.port) for listener in self._listeners()]

    @property
    def port(self) -> int:
        """The first listener's port."""
        return self._listeners()[0].port

    def _listeners(self) -> list[Listener]:
        if self._broker is not None:
            return self._broker.listeners
        assert self._controllers is not None, "a node is a broker, or has listeners for controllers"
        return self._controllers.listeners

    @property
    def cluster_id(self) -> str:
        return self._meta.cluster_id

    # Start

    async def start(self) -> None:
        """Start and answer requests.

        Raises:
            CannotStart: the directory is locked, belongs to another node or cannot be read, or an address cannot be bound.
        """
        self.check()
        self.log_manager = self._make_logs()
        try:
            if self._directory.was_formatted:
                self._directory.lock(self.log_manager)
            await self._bind_http()
            if self._controllers is not None:
                await self._controllers.bind()
            if self._broker is not None:
                await self._broker.bind()
            open_to_others = self._open_ports()
            refuse_open_ports(self.config, open_to_others)
            runtime = self._runtime
            self._meta = self._directory.open(self.log_manager, runtime.random, runtime.now_ms())
            await self._membership.open(self._join_quorum, self._recover)
            if self._broker is not None:
                await self._unless_failed(self._broker.register(self._meta, self.quorum, self.log_manager))
            self._serve_metrics()
        except (Exception, asyncio.CancelledError):
            await self._abandon()
            raise
        warn_of_open_ports(open_to_others)
        for root in self._directory.roots:
            warn_of_readers(self._runtime.disk, root, [META_PROPERTIES], "its records and credentials")
        await self._enter_service()
        self._report_leaderless()
        self._timers.every(_HOUSEKEEPING_MS, self._housekeeping)
        if self._stores:
            self._timers.every(LOOK_MS, self._stores.look)
        self._phase = ""

    def _open_ports(self) -> list[str]:
        servers = [each for each in (self._broker, self._controllers) if each is not None]
        listeners = [listener for server in servers for listener in server.listeners]
        http = None if self.metrics is None else self.metrics.http
        return open_ports(self.config, listeners, http, has_authorizer=self._authorizer is not None)

    async def _enter_service(self) -> None:
        if self._broker is None:
            return
        try:
            observer = None if self.metrics is None else self.metrics.request_times
            await self._unless_failed(self._broker.enter_service(observer))
        except (CannotStart, asyncio.CancelledError):
            # A member may wait long to be unfenced.
            await self.stop()
            raise

    async def _unless_failed(self, part: Coroutine[Any, Any, None]) -> None:
        """Await a part of the start.

        Raises:
            CannotStart: this node has failed, and the part would never end.
        """
        if not await self._membership.unless_failed(part, self._failed):
            assert self.failure is not None, "a node that has failed says why"
            raise CannotStart(f"this node has failed while it started: {in_words(self.failure)}")

    async def _bind_http(self) -> None:
        """Answer health checks, also while the logs are being recovered."""
        if self._metrics_address is not None:
            # 14 ms of a start, which a broker without metrics does not pay.
            from barnabas.node.metrics_endpoint import MetricsEndpoint

            self.metrics = await MetricsEndpoint.bound(
                self._loop, *self._metrics_address, self._not_ready, self.config.properties
            )

    def _serve_metrics(self) -> None:
        if self.metrics is not None and self._broker is not None:
            self._broker.measured_by(self.metrics)

    def _not_ready(self) -> str:
        """Return why this node does not serve requests; empty if it does."""
        return self._phase or ("" if self._broker is None else self._broker.not_ready())

    def _close_http(self) -> None:
        if self.metrics is not None:
            self.metrics.close()

    def check(self) -> None:
        """Find what would fail the start, as far as that needs no change of the disk.

        Raises:
            CannotStart: something would.
        """
        config = self.config
        self._metrics_address = metrics_address(config.str_value("barnabas.metrics.listen"))
        if self._broker is not None:
            self._broker.check()
        self._directory.check()
        if self._authorizer is not None:
            # A node without an authorizer does not import what reads key stores.
            principals = importlib.import_module("barnabas.net.node_principals")
            for line in principals.check_super_users(config, self._authorizer.super_users):
                logger.warning("%s", line)

    def _make_logs(self) -> Logs:
        roots = self.config.log_dirs
        if len(roots) == 1:
            return self._make_log_manager(roots[0])
        open_files = OpenFiles(self._runtime.disk.max_open_files())
        return LogDirectories([self._make_log_manager(root, open_files) for root in roots])

    def _make_log_manager(self, root: str, open_files: OpenFiles | None = None) -> LogManager:
        config, runtime = self.config, self._runtime
        return LogManager(
            runtime.disk,
            root,
            now_ms=runtime.now_ms,
            run_blocking=runtime.run_blocking,
            config_for=self._log_config,
            retention_check_interval_ms=config.log_retention_check_interval_ms,
            producer_expiration_check_interval_ms=config.producer_id_expiration_check_interval_ms,
            checkpoint_interval_ms=config.log_flush_offset_checkpoint_interval_ms,
            high_watermark_interval_ms=config.replica_high_watermark_checkpoint_interval_ms,
            make_cleaner_worker=cleaner_worker(runtime.disk),
            cleaner_config=cleaner_config(config, MetadataImage().configs),
            open_files=open_files,
        )

    def _log_config(self, topic: str) -> LogConfig:
        return LogConfig() if self._broker is None else self._broker.log_config_of(topic)

    def _run_blocking(self, work: Callable[[], None]) -> asyncio.Future[None]:
        future: asyncio.Future[None] = asyncio.ensure_future(self._loop.run_in_executor(None, work), loop=self._loop)
        self._blocking[future] = None
        future.add_done_callback(self._blocking.pop)
        return future

    async def _recover(self) -> None:
        await self._directory.recover(self.log_manager, self._runtime.monotonic_ns)

    def _join_quorum(self) -> None:
        root = self.config.metadata_dir
        runtime = self._runtime
        try:
            self.quorum = MetadataQuorum(
                self.config,
                self._meta,
                self._resolver,
                disk=runtime.disk,
                loop=runtime.loop,
                clock=runtime.clock,
                random=runtime.random,
                run_blocking=runtime.run_blocking,
                on_fault=self.fail,
                stores=self._stores,
            )
            self._has_joined = True
            server = self._broker or self._controllers
            assert server is not None, "a node is a broker, a controller, or both"
            if self.quorum.local_controller is not None:
                audit = ChangeAudit(config_schema().of(ConfigResourceType.BROKER))
                self.quorum.local_controller.audits = dict.fromkeys(audit.apis, audit.write)
            if self._authorizer is not None:
                self._authorize(self._authorizer)
            self._membership.report_changes(self.quorum, self._has_active_controller, server.connections, self._timers)
            self._serve_controllers()
            self.quorum.start()
            if self.quorum.local_controller is not None:
                # Brokers of other nodes may need this controller before the broker of this node is registered.
                self._timers.every(self._membership.tick_ms, self._tick)
        except (KafkaStorageError, OSError) as error:
            raise CannotStart(f"cannot open the metadata log in {root}: {in_words(error)}") from None
        except QuorumNotSupported as error:
            raise CannotStart(f"cannot serve the metadata in {root}: {error}") from None
        except (KafkaError, BadElectionState) as error:
            remedy = "a file is damaged: restore it from a copy"
            raise CannotStart(f"cannot read the metadata in {root}: {in_words(error)} ({remedy})") from None

    def _authorize(self, authorizer: StandardAuthorizer) -> None:
        """Let the authorizer learn the access control lists, and the controller of this node ask it."""
        # First, so that the other publishers find the rights of the commit in force.
        self.quorum.loader.add_publisher(AclPublisher(authorizer).publish)
        controller = self.quorum.local_controller
        if controller is not None:
            controller.guard = ControllerGuard(authorizer, lambda: self.quorum.loader.image).answer

    def _make_controller_server(self) -> ControllerServer:
        from barnabas.quorum.controller_server import ControllerServer

        beside = None if self._broker is None else self._broker.connections
        return ControllerServer(self.config, self._runtime, self._stores, beside=beside)

    def _serve_controllers(self) -> None:
        if self._controllers is not None:
            controller = self._membership.controller_for("controller-registration", self.quorum)
            self._controllers.serve(
                self.quorum, self._meta.cluster_id, self._resolver, controller=controller, authorizer=self._authorizer
            )

    # Timers

    def _tick(self) -> None:
        """Let the controller do what is due."""
        now_ms = self._runtime.monotonic_ns() // 1_000_000
        late_ms = 0 if self._ticked_ms is None else now_ms - self._ticked_ms - self._membership.tick_ms
        self._ticked_ms = now_ms
        controller = self.quorum.local_controller
        if (
            late_ms > self.config.broker_session_timeout_ms // _LATE
            and controller is not None
            and controller.active is not None
        ):
            # The process was stopped, or got no processor. Heartbeats that came meanwhile are read after this turn of the loop.
            logger.warning("This node stood still for %d ms; the sessions of brokers last longer by that", late_ms)
            controller.active.sessions.stood_still(late_ms)
        self.quorum.controller.tick()
        self._report_leaderless()

    def _has_active_controller(self) -> bool:
        controller = self.quorum.local_controller
        return controller is not None and controller.is_active

    def _report_leaderless(self) -> None:
        if self._has_active_controller():
            for line in self._leaderless.report(self.quorum.controller.image):
                logger.warning("%s", line)

    def _housekeeping(self) -> None:
        if self._keeping_house is None or self._keeping_house.done():
            self._keeping_house = in_background(self.log_manager.housekeeping(), self._loop)

    # The end

    def fail(self, error: BaseException) -> None:
        """Record a fault after which this node must stop; `wait_failed` returns."""
        # The message of a disk's fault says enough; any other fault is a bug, and needs its traceback.
        is_of_the_disk = isinstance(error, (OSError, KafkaStorageError))
        logger.critical("Stopping after a fault: %s", in_words(error), exc_info=None if is_of_the_disk else error)
        self.failure = error
        if not self._failed.done():
            self._failed.set_result(None)

    async def wait_failed(self) -> None:
        """Return when the node fails; without a fault, wait for ever."""
        await asyncio.shield(self._failed)

    async def stop(self, *, hands_over: bool = True, with_others: Coroutine[Any, Any, None] | None = None) -> None:
        """Stop cleanly; after a fault, leave the directory as a crash would.

        Args:
            hands_over: whether this node gives up what it leads.
            with_others: awaited before the controller stops, if all nodes stop: it ends when every broker has left, because each
                needs a controller for that.
        """
        self._phase = "stopping"
        began = self._runtime.monotonic_ns()
        if self.failure is not None:
            self._timers.cancel()
        try:
            if self._broker is not None:
                # This node's controller goes on meanwhile: its broker may have to wait until the controller fences a silent one.
                await self._broker.stop(is_in_order=self.failure is None and hands_over)
        finally:
            self._timers.cancel()
        if with_others is not None:
            await with_others
        self.quorum.stop()
        await self._stop_controllers()
        self.log_manager.cleaner.close()
        if self.failure is None:
            await self._flush_logs()
        self.quorum.close(clean=self.failure is None)
        await self.log_manager.close(clean=self.failure is None)
        self._directory.release()
        self._close_http()
        logger.info("Stopped in %.1f s", (self._runtime.monotonic_ns() - began) / 1e9)

    async def _stop_controllers(self) -> None:
        self._membership.close()
        if self._controllers is not None:
            await self._controllers.stop()

    async def _flush_logs(self) -> None:
        """Flush all logs concurrently: a file system commits many syncs together in about the time of one.

        Closing flushes the logs one after the other; a log that is already flushed costs nothing then.
        """
        for _, partition_log in list(self.log_manager):
            await pace(WRITE)
            partition_log.flush_elsewhere()
        while self._blocking:
            await asyncio.wait(list(self._blocking))

    async def _abandon(self) -> None:
        """Release everything after a start that failed part of the way."""
        self._timers.cancel()
        self._close_http()
        if self._broker is not None:
            await self._broker.abandon()
        if self._has_joined:
            self.quorum.stop()
        await self._stop_controllers()
        self._directory.undo(self.log_manager)
        # A broker that never served has appended nothing: the next start finds its logs as they were, or as this one has recovered them.
        is_clean = self._directory.was_formatted and self.log_manager.is_recovered
        await self.log_manager.close(clean=is_clean)
        self._directory.release()
