"""The active controller: it turns requests into metadata records, and answers when they are committed.

`handle` asks a manager for a `ControllerResult`, appends its records through the quorum as one atomic batch,
and answers when the high watermark has passed them. A change of any size is appended batch by batch, in as many turns of
the loop. The managers see the state after everything appended so far, also
what is not committed yet, so two requests in a row cannot both create one topic; readers and listeners see only what is
committed. Both states are images, so giving up the uncommitted one costs nothing.

Invariants
- State moves only by replaying records, in the order of their offsets.
- A response with records is given after their commit. A response without records is given after the commit of what was
  appended before it. So no client learns of a change that could still be lost.
- One request is answered at a time. A long one is computed in the executor, from an image that nobody changes. Until its last batch is
  appended, other requests and the controller's own changes wait; a heartbeat that waits counts for its session.
- Every request is answered: by its manager, with the exception that its manager raises, with REQUEST_TIMED_OUT by the
  first `tick` after its time is over, or with NOT_CONTROLLER when the controller closes.
- Listeners receive each commit once and in order, with the delta and the image it led to.
- The controller does not survive a failure to replay, nor one that leaves the end of the log unknown: `on_fault` is
  called and the process has to stop, because a replica that skips a record has another state than the log.

Limits: no metadata transaction is ever begun (what has to be atomic fits one batch, at most 10,000 records); the other voters' requests
(Vote, Fetch, …) come with replication. No NoOpRecord is written while idle.

Sources: KIP-500, KIP-631; Kafka's `QuorumController`, `MetadataPublisher`.
"""

from __future__ import annotations

import logging
import random
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from barnabas.log.errors import in_words
from barnabas.metadata import cluster_control
from barnabas.metadata.batches import Batches, append_batches, run
from barnabas.metadata.bootstrap import activation_records
from barnabas.metadata.broker_sessions import BrokerSessions
from barnabas.metadata.config_entries import ConfigResolver
from barnabas.metadata.config_schema import ConfigResourceType
from barnabas.metadata.controller_view import (
    MAX_RECORDS_PER_REQUEST,
    ControllerResult,
    ControllerSettings,
    ControllerView,
    PartitionQuota,
)
from barnabas.metadata.delta import MetadataDelta
from barnabas.metadata.image import MetadataImage, MetadataProvenance
from barnabas.metadata.managers import Manager, manager_of
from barnabas.metadata.metadata_loader import MetadataLoader, load_snapshot
from barnabas.metadata.periodic_elections import PeriodicElections
from barnabas.metadata.record_codec import MetadataRecord, encode_record
from barnabas.metadata.snapshots import SnapshotPolicy, build_snapshot
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.message import Message
from barnabas.raft.raft_driver import AppendFailed, RaftDriver
from barnabas.raft.raft_node import BatchTooLarge
from barnabas.raft.seams import SnapshotId
from barnabas.steps import in_background, turn

if TYPE_CHECKING:
    import asyncio

    from barnabas.protocol.messages import BrokerHeartbeatRequest

logger = logging.getLogger(__name__)

# How long a request may wait for its commit: as long as Kafka's brokers wait for the controller.
FORWARDING_TIMEOUT_MS = 60_000
RECORDS_PER_TURN = 1_000
"""The executor replays and encodes the records of a change with more of them."""
LATE = "The request's time was over before it was handled."
UNCOMMITTED = "The change was not committed in time; it may still be."

Listener = Callable[[MetadataDelta, MetadataImage], None]


class _Request(NamedTuple):
    """A request and the future of its response."""

    api_key: int
    version: int
    body: Message
    deadline_ms: int | None
    expires_ms: int
    mutation_quota: PartitionQuota | None
    is_long: bool
    future: asyncio.Future[Any]

    def is_late(self, now_ms: int) -> bool:
        """Return whether it is too late to begin."""
        return self.expires_ms < now_ms or (self.deadline_ms is not None and self.deadline_ms < now_ms)

    def fail(self, error: BaseException) -> None:
        if not self.future.done():
            self.future.set_exception(error)


class _Pending(NamedTuple):
    """An appended change that is not committed. It ends at `last_offset`; `request` is None for the controller's own."""

    last_offset: int
    delta: MetadataDelta
    image: MetadataImage
    response: Message | None
    request: _Request | None


class _Change(NamedTuple):
    """What a request does: its records replayed into an image, which has no provenance yet, and encoded."""

    result: ControllerResult[Any]
    delta: MetadataDelta
    image: MetadataImage
    values: list[bytes]


def _change(view: ControllerView, result: ControllerResult[Any]) -> _Change:
    """Replay and encode the records of a result."""
    delta = MetadataDelta(view.image)
    for record in result.records:
        delta.replay(record)
    if not result.records:
        return _Change(result, delta, view.image, [])
    image = delta.apply()
    metadata_version = image.features.metadata_version
    assert metadata_version is not None, "the first record of a log finalizes metadata.version"
    return _Change(result, delta, image, [encode_record(record, metadata_version) for record in result.records])


def _bounded(result: ControllerResult[Any]) -> ControllerResult[Any]:
    """Return the result of a request.

    Raises:
        KafkaError: POLICY_VIOLATION, it has too many records.
    """
    if len(result.records) > MAX_RECORDS_PER_REQUEST:
        raise KafkaError(ErrorCode.POLICY_VIOLATION, "Unable to perform excessively large batch operation.")
    return result


class QuorumController:
    """The controller of one node. It is `RaftDriver`'s listener; `attach` ties the two together.

    Args:
        settings, configs: the node's configuration.
        create_future: the loop's; the controller needs nothing else of a loop.
        now_ms: the wall clock.
        random: topic ids and replica placement are drawn from it.
        on_fault: called with the error when the node must stop.
        loop: its executor runs the managers of long requests; None runs them on the spot.
        snapshots: when to write a snapshot.
        bootstrap: the records that a fresh log begins with; Kafka's defaults when None.

    Attributes:
        commits, commit_ms: how many of its own appends were committed, and the sum of the time that took.
        unclean_elections: how many leaders those appends elected that may lack records.
    """

    driver: RaftDriver

    def __init__(
        self,
        settings: ControllerSettings,
        configs: ConfigResolver,
        *,
        create_future: Callable[[], asyncio.Future[Any]],
        now_ms: Callable[[], int],
        random: random.Random,
        on_fault: Callable[[BaseException], None],
        loop: asyncio.AbstractEventLoop | None = None,
        snapshots: SnapshotPolicy | None = None,
        bootstrap: list[MetadataRecord] | None = None,
    ) -> None:
        self.settings = settings
        self.configs = configs
        self.image = MetadataImage()
        self.sessions = BrokerSessions(settings.broker_session_timeout_ms)
        self._elections = PeriodicElections()
        self.is_active = False
        self.commits = 0
        self.commit_ms = 0
        self.unclean_elections = 0
        self._latest = self.image
        self._loaded_to = 0
        self._loader = MetadataLoader()
        self._pending: deque[_Pending] = deque()
        # Requests that wait for the epoch's first record, or for the answer to a long request before them.
        self._early: list[_Request] = []
        self._is_computing = False
        self._loop = loop
        self._closed = False
        # The message of NOT_CONTROLLER.
        self._reason = "This node is not the active controller."
        self._listeners: list[Listener] = []
        self._create_future = create_future
        self._now_ms = now_ms
        self._random = random
        self._snapshots = snapshots or SnapshotPolicy()
        self._bootstrap = bootstrap
        self._on_fault = on_fault

    def attach(self, driver: RaftDriver) -> None:
        """Set the driver; call it once, before `driver.start()`."""
        self.driver = driver
        features = self.image.features._replace(kraft_version=driver.node.kraft_version)
        self.image = self._latest = self.image._replace(features=features)

    def add_listener(self, listener: Listener) -> None:
        """Register a listener for commits; a late listener first receives the whole current image."""
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
        request: Message,
        *,
        principal: str = "User:ANONYMOUS",
        deadline_ms: int | None = None,
        mutation_quota: PartitionQuota | None = None,
        is_long: bool = False,
    ) -> asyncio.Future[Any]:
        """Answer a request.

        Args:
            deadline_ms: until when the request may begin; None for no limit but the minute in which it must end.
            mutation_quota: counts the partitions that the request creates or deletes, and may refuse them.
            is_long: the request takes too long for one turn of the loop.

        Returns:
            A future of the response; it also carries every exception. It fails with a `KafkaError` when the whole
            request does: NOT_CONTROLLER on a node that does not lead, REQUEST_TIMED_OUT when its time is over (a change
            may then still be committed), or what the API's manager raises.
        """
        expires_ms = self._now_ms() + FORWARDING_TIMEOUT_MS
        future = self._create_future()
        asked = _Request(api_key, version, request, deadline_ms, expires_ms, mutation_quota, is_long, future)
        if not self.is_active and not self._closed and self.driver.node.is_leader:
            # Elected, but the epoch's first record is not committed yet: the answer waits for that.
            self._early.append(asked)
        else:
            self._answer(asked)
        return asked.future

    def _answer(self, request: _Request) -> None:
        if request.future.done():
            return
        if self._is_computing and not self._closed:
            if request.api_key == ApiKey.BROKER_HEARTBEAT:
                cluster_control.keep_session(self._view(), cast("BrokerHeartbeatRequest", request.body))
            self._early.append(request)
            return
        try:
            if not self.is_active:
                raise KafkaError(ErrorCode.NOT_CONTROLLER, self._reason)
            if request.is_late(self._now_ms()):
                raise KafkaError(ErrorCode.REQUEST_TIMED_OUT, LATE)
            manager = manager_of(request.api_key)
            if manager is None:
                message = f"The controller does not serve API key {request.api_key}."
                raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, message)
            if request.is_long and self._loop is not None:
                in_background(self._answer_apart(request, manager, self._loop), self._loop)
                return
            view = self._view(request.version, request.mutation_quota)
            result = _bounded(manager(view, request.body))
            if result.batches is not None:
                run(self._answer_in_batches(request, result.response, result.batches), self._loop)
            elif len(result.records) > RECORDS_PER_TURN and self._loop is not None:
                in_background(self._answer_apart(request, lambda *_: result, self._loop), self._loop)
            else:
                self._finish(request, _change(view, result))
        except Exception as error:
            request.fail(error)

    async def _answer_apart(self, request: _Request, manager: Manager, loop: asyncio.AbstractEventLoop) -> None:
        """Answer a long request, whose change is computed in the executor; later requests wait until it is."""

        def compute(view: ControllerView) -> _Change:
            return _change(view, _bounded(manager(view, request.body)))

        self._is_computing = True
        try:
            view = self._view(request.version, request.mutation_quota)
            change = await loop.run_in_executor(None, compute, view)
            if not self.is_active:
                raise KafkaError(ErrorCode.NOT_CONTROLLER, self._reason)
            if request.future.done():
                return
            if change.result.batches is not None:
                await self._finish_in_batches(request, change.result.response, change.result.batches)
            else:
                self._finish(request, change)
        except Exception as error:
            request.fail(error)
        finally:
            self._is_computing = False
            self._answer_early()

    async def _answer_in_batches(self, request: _Request, response: Message, batches: Batches) -> None:
        """Answer a request whose change has any size; later requests wait until it is appended."""
        self._is_computing = True
        try:
            await self._finish_in_batches(request, response, batches)
        except Exception as error:
            # What was to settle a broker may be missing.
            self.sessions.settled.clear()
            request.fail(error)
        finally:
            self._is_computing = False
            self._answer_early()

    async def _finish_in_batches(self, request: _Request, response: Message, batches: Batches) -> None:
        records = await self._append_batches(batches)
        self._finish(request, _change(self._view(), ControllerResult(response, records)))

    async def _append_batches(self, batches: Batches) -> list[MetadataRecord]:
        """As `append_batches`, for as long as this controller leads the epoch of now."""
        epoch = self.driver.node.epoch

        def append(records: list[MetadataRecord]) -> None:
            self._append(_change(self._view(), ControllerResult(None, records)), None)

        def may_go_on() -> bool:
            return self.is_active and self.driver.node.epoch == epoch

        return await append_batches(batches, append, may_go_on, self._loop)

    def _finish(self, request: _Request, change: _Change) -> None:
        """Append the records of a change and give its response, or the response alone when all before it is committed.

        Raises:
            KafkaError: POLICY_VIOLATION for too many bytes, KAFKA_STORAGE_ERROR; nothing was appended.
        """
        result = change.result
        if result.records:
            try:
                self._append(change, request)
            except BatchTooLarge as error:
                raise KafkaError(ErrorCode.POLICY_VIOLATION, str(error)) from None
        elif self._pending:
            last = self._pending[-1]
            delta = MetadataDelta(last.image)
            self._pending.append(_Pending(last.last_offset, delta, last.image, result.response, request))
        else:
            request.future.set_result(result.response)

    def _view(self, version: int = 0, mutation_quota: PartitionQuota | None = None) -> ControllerView:
        return ControllerView(
            self._latest,
            self.settings,
            self.configs,
            self._now_ms(),
            self._random,
            self.driver.node,
            self.sessions,
            version,
            mutation_quota,
        )

    def _append(self, change: _Change, request: _Request | None) -> None:
        """Append records; the request is answered after their commit.

        Raises:
            BatchTooLarge: nothing was appended.
            KafkaError: KAFKA_STORAGE_ERROR; nothing was appended.
        """
        result, delta, image, values = change
        last_offset = self.driver.node.end_offset + len(result.records) - 1
        image = image._replace(provenance=MetadataProvenance(last_offset, self.driver.node.epoch, self._now_ms()))
        before = self._latest
        # In the queue before the append, because the commit may come before the append returns.
        self._latest = image
        self._pending.append(_Pending(last_offset, delta, image, result.response, request))
        self._snapshots.appended(sum(map(len, values)))
        try:
            self.driver.append(values)
        except (BatchTooLarge, AppendFailed) as error:
            self._latest = before
            self._pending.pop()
            if isinstance(error, AppendFailed):
                raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, str(error)) from error
            raise
        except Exception as error:
            self._stop_on(error)

    def on_high_watermark(self, offset: int) -> None:
        if not self.is_active and not self._closed:
            try:
                self._load(offset)
            except Exception as error:
                # For any reason: two replicas that read one log must not reach different states.
                self._stop_on(error)
                return
        while self._pending and self._pending[0].last_offset < offset:
            committed = self._pending.popleft()
            if committed.image is not self.image:
                self.commits += 1
                self.commit_ms += self._now_ms() - committed.image.provenance.last_contained_log_time_ms
                if committed.delta.topics is not None:
                    self.unclean_elections += committed.delta.topics.unclean_elections
            self._publish(committed.delta, committed.image)
            if committed.request is not None and not committed.request.future.done():
                committed.request.future.set_result(committed.response)
        if not self._pending and not self._closed:
            self._maybe_snapshot()

    def on_leader(self, epoch: int) -> None:
        if self._closed:
            return
        self.is_active = True
        if self.image.features.metadata_version is None:
            try:
                records = activation_records(self._bootstrap, self._min_insync_replicas())
                self._append(_change(self._view(), ControllerResult(None, records)), None)
            except Exception as error:
                self._stop_on(error)
        self._answer_early()

    def _answer_early(self) -> None:
        early, self._early = self._early, []
        for request in early:
            self._answer(request)

    def _min_insync_replicas(self) -> int:
        key = self.configs.schema.of(ConfigResourceType.TOPIC)["min.insync.replicas"]
        value = self.configs.topic_default(self.image.configs, key)[0]
        assert isinstance(value, int)
        return value

    def _load(self, to_offset: int) -> None:
        """Replay what the log holds and this controller did not append: everything, at the start."""
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
        """Close the controller and tell the host, which has to end the process."""
        self._reason = f"The controller has stopped: {error}"
        logger.critical("The state of the metadata log is unknown, this node stops: %s", error, exc_info=error)
        self.close()
        self._on_fault(error)

    def _maybe_snapshot(self) -> None:
        if not self._snapshots.is_due(self._now_ms()):
            return
        try:
            self.write_snapshot()
        except Exception as error:
            # The log still holds everything, so a snapshot that fails costs space and nothing else.
            logger.warning(
                "Cannot write a snapshot of the metadata, the log goes on without: %s",
                in_words(error),
                exc_info=None if isinstance(error, OSError) else error,
            )
            self._snapshots.written(self._now_ms())

    def write_snapshot(self) -> SnapshotId:
        """Write a snapshot of the committed image, and let the log drop what it covers."""
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

    def tick(self) -> None:
        """Time out requests, fence brokers whose session has expired, hold elections; the server calls this on a timer."""
        now_ms = self._now_ms()
        for request in self._early:
            if request.is_late(now_ms):
                request.fail(KafkaError(ErrorCode.REQUEST_TIMED_OUT, LATE))
        for pending in self._pending:
            if pending.request is not None and pending.request.expires_ms < now_ms:
                pending.request.fail(KafkaError(ErrorCode.REQUEST_TIMED_OUT, UNCOMMITTED))
        if self.is_active:
            run(self._write_due(), self._loop)

    async def _write_due(self) -> None:
        while self.is_active and not self._is_computing and (batches := self._due(self._view())) is not None:
            self._is_computing = True
            try:
                records = await self._append_batches(batches)
                if records:
                    self._append(_change(self._view(), ControllerResult(None, records)), None)
            except (KafkaError, BatchTooLarge) as error:
                if self.is_active:
                    logger.warning("Cannot write what is due, fenced brokers or elections: %s", error)
                return
            finally:
                self._is_computing = False
                self._answer_early()
            if self._loop is not None:
                await turn()

    def _due(self, view: ControllerView) -> Batches | None:
        return cluster_control.fence_stale(view) or self._elections.due(view)

    def close(self) -> None:
        """Fail what waits; nothing is appended after this."""
        self.is_active = False
        self._closed = True
        self.driver.close()
        self._answer_early()
        while self._pending:
            request = self._pending.popleft().request
            if request is not None:
                request.fail(KafkaError(ErrorCode.NOT_CONTROLLER, self._reason))

    def __repr__(self) -> str:
        role = "active" if self.is_active else "standby"
        return f"<QuorumController id={self.settings.node_id} {role} {self.image!r} pending={len(self._pending)}>"
