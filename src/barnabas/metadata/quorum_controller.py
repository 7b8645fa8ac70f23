"""The active controller: requests in, metadata records to the log, responses when they are committed. Control plane.

`handle` asks a control manager for a `ControllerResult`, appends its records through the quorum as one atomic batch,
and answers when the high watermark has passed them. The managers see the state after everything appended so far, also
what is not committed yet, so two requests in a row cannot both create one topic; readers and listeners see only what is
committed. Both states are images, so giving up the uncommitted one costs nothing.

Invariants
- State moves only by replaying records, in the order of their offsets.
- A response with records is given after their commit, a response without records after the commit of whatever was
  appended before it, so no client learns of a change that could still be lost.
- Listeners hear of each commit once and in order, with the delta and the image it led to.
- A failure while replaying is not survived: the exception goes to `on_fault`, and the process has to stop, because a
  replica that skips a record has another state than the log.

Limits: no metadata transaction is ever begun (every change fits one batch, at most 10,000 records); the other voters'
and brokers' requests (Vote, Fetch, AlterPartition, …) come with replication. No NoOpRecord is written while idle.

Sources: KIP-500, KIP-631; Kafka's `QuorumController`, `MetadataPublisher`.
"""

from __future__ import annotations

import logging
import random
from collections import deque
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

from barnabas.metadata import cluster_control
from barnabas.metadata.bootstrap import activation_records
from barnabas.metadata.config_entries import ConfigResolver
from barnabas.metadata.config_schema import ConfigResourceType
from barnabas.metadata.controller_view import ControllerResult, ControllerSettings, ControllerView, PartitionQuota
from barnabas.metadata.delta import MetadataDelta
from barnabas.metadata.image import MetadataImage, MetadataProvenance
from barnabas.metadata.metadata_loader import MetadataLoader, load_snapshot
from barnabas.metadata.record_codec import MetadataRecord, encode_record
from barnabas.metadata.snapshots import SnapshotPolicy, build_snapshot
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.raft.raft_driver import AppendFailed, RaftDriver
from barnabas.raft.raft_node import BatchTooLarge
from barnabas.raft.seams import SnapshotId

if TYPE_CHECKING:
    import asyncio

log = logging.getLogger(__name__)

Listener = Callable[[MetadataDelta, MetadataImage], None]
Manager = Callable[["QuorumController", ControllerView, Any, int], ControllerResult[Any]]


class _Pending(NamedTuple):
    """Something appended that is not committed: it ends at `last_offset` and leads from one image to the next."""

    last_offset: int
    delta: MetadataDelta
    image: MetadataImage
    response: Any
    future: asyncio.Future[Any] | None


def _named(module: str, function: str) -> Any:
    """A manager's function; its module is imported by the first request that needs it, so that a start does not pay."""
    return getattr(import_module(f"barnabas.metadata.{module}"), function)


# Which function answers which request, and how it is called; the others are answered with UNSUPPORTED_VERSION.
MANAGERS: dict[int, Manager] = {
    ApiKey.CREATE_TOPICS: lambda c, view, r, v: _named("create_topics", "create_topics")(view, r),
    ApiKey.DELETE_TOPICS: lambda c, view, r, v: _named("delete_topics", "delete_topics")(view, r, v),
    ApiKey.CREATE_PARTITIONS: lambda c, view, r, v: _named("create_partitions", "create_partitions")(view, r),
    ApiKey.ALTER_CONFIGS: lambda c, view, r, v: _named("configuration_control", "alter_configs")(view, r),
    ApiKey.INCREMENTAL_ALTER_CONFIGS: lambda c, view, r, v: _named("configuration_control", "incremental_alter")(
        view, r
    ),
    ApiKey.ALTER_CLIENT_QUOTAS: lambda c, view, r, v: _named("client_quota_control", "alter_client_quotas")(view, r),
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: lambda c, view, r, v: _named("scram_control", "alter_credentials")(view, r),
    ApiKey.ELECT_LEADERS: lambda c, view, r, v: _named("elect_leaders", "elect_leaders")(view, r, v),
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: lambda c, view, r, v: _named("reassignments", "alter_reassignments")(view, r),
    ApiKey.LIST_PARTITION_REASSIGNMENTS: lambda c, view, r, v: _named("reassignments", "list_reassignments")(view, r),
    ApiKey.UPDATE_FEATURES: lambda c, view, r, v: _named("feature_control", "update_features")(view, r, v),
    ApiKey.DESCRIBE_QUORUM: lambda c, view, r, v: _named("describe_quorum", "describe_quorum")(view, c.driver, r, v),
    ApiKey.BROKER_REGISTRATION: lambda c, view, r, v: cluster_control.register_broker(view, r, c.sessions),
    ApiKey.BROKER_HEARTBEAT: lambda c, view, r, v: cluster_control.heartbeat(view, r, c.sessions),
    ApiKey.UNREGISTER_BROKER: lambda c, view, r, v: cluster_control.unregister_broker(view, r),
    ApiKey.CONTROLLER_REGISTRATION: lambda c, view, r, v: cluster_control.register_controller(view, r),
    ApiKey.ALLOCATE_PRODUCER_IDS: lambda c, view, r, v: _named("producer_ids_control", "allocate_producer_ids")(
        view, r
    ),
}


class QuorumController:
    """The controller of one node. It is `RaftDriver`'s listener; `attach` ties the two together.

    Args:
        settings, configs: the node's configuration.
        create_future: the loop's; the only thing the controller wants of a loop.
        random: topic ids and replica placement are drawn from it.
        snapshots: when to write a snapshot.
        bootstrap: the records that a fresh log begins with; Kafka's defaults when None.
        on_fault: told when a committed record cannot be replayed, or a listener fails.

    Attributes:
        commits, commit_ms: how many of its own appends were committed, and the sum of the time that took.
    """

    sessions: cluster_control.BrokerSessions
    driver: RaftDriver

    def __init__(
        self,
        settings: ControllerSettings,
        configs: ConfigResolver,
        *,
        create_future: Callable[[], asyncio.Future[Any]],
        now_ms: Callable[[], int],
        random: random.Random,
        snapshots: SnapshotPolicy | None = None,
        bootstrap: list[MetadataRecord] | None = None,
        on_fault: Callable[[BaseException], None] | None = None,
    ) -> None:
        self.settings = settings
        self.configs = configs
        self.image = MetadataImage()
        self.sessions = cluster_control.BrokerSessions(settings.broker_session_timeout_ms)
        self.is_active = False
        self.commits = 0
        self.commit_ms = 0
        self._latest = self.image
        self._loaded_to = 0
        self._loader = MetadataLoader()
        self._pending: deque[_Pending] = deque()
        self._early: list[Callable[[], None]] = []
        self._closed = False
        # Why this node does not answer, for those who ask while it does not.
        self._reason = "This node is not the active controller."
        self._listeners: list[Listener] = []
        self._create_future = create_future
        self._now_ms = now_ms
        self._random = random
        self._snapshots = snapshots or SnapshotPolicy()
        self._bootstrap = bootstrap
        self._on_fault = on_fault

    def attach(self, driver: RaftDriver) -> None:
        """Call once, before `driver.start()`."""
        self.driver = driver
        features = self.image.features._replace(kraft_version=driver.node.kraft_version)
        self.image = self._latest = self.image._replace(features=features)

    def add_listener(self, listener: Listener) -> None:
        """Have each commit told; one that comes late is told everything so far at once."""
        self._listeners.append(listener)
        if self.image.provenance.offset >= 0:
            delta = MetadataDelta(MetadataImage())
            for record in self.image.records():
                delta.replay(record)
            listener(delta, self.image)

    def handle(
        self,
        api_key: int,
        version: int,
        request: Any,
        *,
        principal: str = "User:ANONYMOUS",
        deadline_ms: int | None = None,
        mutation_quota: PartitionQuota | None = None,
    ) -> asyncio.Future[Any]:
        """Answer a request.

        Args:
            mutation_quota: counts the partitions that the request creates or deletes, and may refuse them.

        Returns:
            A future of the response. It fails with a `KafkaError` when the whole request does: NOT_CONTROLLER on a node
            that does not lead, REQUEST_TIMED_OUT when `deadline_ms` has passed, or what the API's manager raises.
        """
        future = self._create_future()
        if not self.is_active and not self._closed and self.driver.node.is_leader:
            # Elected, but the epoch's first record is not committed yet: the answer waits for that.
            self._early.append(lambda: self._handle(api_key, version, request, deadline_ms, mutation_quota, future))
        else:
            self._handle(api_key, version, request, deadline_ms, mutation_quota, future)
        return future

    def _handle(
        self,
        api_key: int,
        version: int,
        request: Any,
        deadline_ms: int | None,
        mutation_quota: PartitionQuota | None,
        future: asyncio.Future[Any],
    ) -> None:
        try:
            if not self.is_active:
                raise KafkaError(ErrorCode.NOT_CONTROLLER, self._reason)
            if deadline_ms is not None and deadline_ms < self._now_ms():
                raise KafkaError(ErrorCode.REQUEST_TIMED_OUT, "The request's time was over before it was handled.")
            manager = MANAGERS.get(api_key)
            if manager is None:
                raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, f"The controller does not serve API key {api_key}.")
            result = manager(self, self._view(mutation_quota), request, version)
            self._carry_out(result, future)
        except KafkaError as error:
            future.set_exception(error)
        except BatchTooLarge as error:
            future.set_exception(KafkaError(ErrorCode.POLICY_VIOLATION, str(error)))

    def _view(self, mutation_quota: PartitionQuota | None = None) -> ControllerView:
        return ControllerView(
            self._latest,
            self.settings,
            self.configs,
            self._now_ms(),
            self.driver.node.end_offset,
            self._random,
            mutation_quota,
        )

    def _carry_out(self, result: ControllerResult[Any], future: asyncio.Future[Any] | None) -> None:
        if result.records:
            self._append(result.records, result.response, future)
        elif future is not None:
            if self._pending:
                last = self._pending[-1]
                delta = MetadataDelta(last.image)
                self._pending.append(_Pending(last.last_offset, delta, last.image, result.response, future))
            else:
                future.set_result(result.response)

    def _append(self, records: list[MetadataRecord], response: Any, future: asyncio.Future[Any] | None) -> None:
        delta = MetadataDelta(self._latest)
        for record in records:
            delta.replay(record)
        last_offset = self.driver.node.end_offset + len(records) - 1
        provenance = MetadataProvenance(last_offset, self.driver.node.epoch, self._now_ms())
        image = delta.apply(provenance)
        metadata_version = image.features.metadata_version
        assert metadata_version is not None, "the first record of a log finalizes metadata.version"
        values = [encode_record(record, metadata_version) for record in records]
        before = self._latest
        pending = _Pending(last_offset, delta, image, response, future)
        # In the queue before the append, because the commit may come before the append returns.
        self._latest = image
        self._pending.append(pending)
        self._snapshots.appended(sum(map(len, values)))
        try:
            self.driver.append(values)
        except (BatchTooLarge, AppendFailed) as error:
            self._latest = before
            self._pending.remove(pending)
            if isinstance(error, AppendFailed):
                raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, str(error)) from error
            raise

    def on_high_watermark(self, offset: int) -> None:
        if not self.is_active and not self._closed:
            try:
                self._load(offset)
            except Exception as error:
                # Whatever the reason, the next replica that reads this log must not come to another state than this one.
                self._stop_on(error)
                return
        while self._pending and self._pending[0].last_offset < offset:
            committed = self._pending.popleft()
            if committed.image is not self.image:
                self.commits += 1
                self.commit_ms += self._now_ms() - committed.image.provenance.last_contained_log_time_ms
            self._publish(committed.delta, committed.image)
            if committed.future is not None and not committed.future.done():
                committed.future.set_result(committed.response)
        if not self._pending:
            self._maybe_snapshot()

    def on_leader(self, epoch: int) -> None:
        if self._closed:
            return
        self.is_active = True
        if self.image.features.metadata_version is None:
            self._append(activation_records(self._bootstrap, self._min_insync_replicas()), None, None)
        early, self._early = self._early, []
        for handle in early:
            handle()

    def _min_insync_replicas(self) -> int:
        key = self.configs.schema.of(ConfigResourceType.TOPIC)["min.insync.replicas"]
        value = self.configs.topic_default(self.image.configs, key)[0]
        assert isinstance(value, int)
        return value

    def _load(self, to_offset: int) -> None:
        """Take in what the log holds but this controller did not append: everything, at the start."""
        delta = MetadataDelta(self.image)
        provenance = self.image.provenance
        metadata_log = self.driver.log
        snapshot = metadata_log.latest_snapshot()
        if snapshot is not None and snapshot.end_offset > self._loaded_to:
            for record in load_snapshot(metadata_log.read_snapshot(snapshot)):
                delta.replay(record)
            provenance = MetadataProvenance(snapshot.end_offset - 1, snapshot.epoch, -1)
            self._loaded_to = snapshot.end_offset
        loaded_bytes = 0
        for batch in metadata_log.read(self._loaded_to, to_offset):
            loaded_bytes += len(batch)
            for loaded in self._loader.load((batch,)):
                for record in loaded.records:
                    delta.replay(record)
                provenance = MetadataProvenance(loaded.last_offset, loaded.epoch, loaded.append_time_ms)
        self._loaded_to = to_offset
        self._snapshots.appended(loaded_bytes)
        image = delta.apply(provenance)
        self._latest = image
        self._publish(delta, image)

    def _publish(self, delta: MetadataDelta, image: MetadataImage) -> None:
        if image is self.image:
            return
        self.image = image
        for listener in self._listeners:
            try:
                listener(delta, image)
            except Exception as error:
                self._stop_on(error)
                return

    def _stop_on(self, error: Exception) -> None:
        """Replaying failed: serve nothing more, and tell the host, which has to end the process."""
        self._reason = f"The controller has stopped: {error}"
        log.critical("A committed record cannot be replayed, this node stops: %s", error, exc_info=error)
        self.close()
        if self._on_fault is None:
            raise error
        self._on_fault(error)

    def _maybe_snapshot(self) -> None:
        if not self._snapshots.is_due(self._now_ms()):
            return
        try:
            self.write_snapshot()
        except (KafkaError, OSError) as error:
            # The log still holds everything, so a snapshot that fails costs space and nothing else.
            log.warning("Cannot write a snapshot of the metadata, the log goes on without: %s", error)
            self._snapshots.written(self._now_ms())

    def write_snapshot(self) -> SnapshotId:
        """Write the committed image down and let the log drop what it covers."""
        provenance = self.image.provenance
        snapshot = SnapshotId(provenance.offset + 1, provenance.epoch)
        node = self.driver.node
        data = build_snapshot(
            self.image,
            node.voters,
            kraft_version=node.kraft_version,
            append_time_ms=provenance.last_contained_log_time_ms,
        )
        self.driver.log.write_snapshot(snapshot, data)
        self.driver.log.trim()
        self._snapshots.written(self._now_ms())
        return snapshot

    def fence_stale_brokers(self) -> None:
        """Fence brokers whose session has run out; the server calls this on a timer."""
        while self.is_active:
            records = cluster_control.fence_stale(self._view(), self.sessions)
            if not records:
                return
            self._append(records, None, None)

    def close(self) -> None:
        """Fail what waits; nothing is appended after this."""
        self.is_active = False
        self._closed = True
        self.driver.close()
        early, self._early = self._early, []
        for handle in early:
            handle()
        while self._pending:
            future = self._pending.popleft().future
            if future is not None and not future.done():
                future.set_exception(KafkaError(ErrorCode.NOT_CONTROLLER, self._reason))

    def __repr__(self) -> str:
        role = "active" if self.is_active else "standby"
        return f"QuorumController({self.settings.node_id}, {role}, {self.image!r}, pending={len(self._pending)})"
