"""The active controller: it turns requests into metadata records, and answers when they are committed.

`answer` asks a manager for a `ControllerResult`, appends its records through the quorum as one atomic batch, and answers when the high
watermark has passed them. A change of unlimited size is appended batch by batch, one in each turn of the loop. The managers see the
state after everything appended so far, committed or not, so two requests in a row cannot both create one topic. The `MetadataLoader` has
the committed state: it gets each change with its append, and publishes it at its commit. All other state ends with the leadership of
this node, and the controller of a later epoch begins with the committed image; `LocalController` makes and ends the controllers.

Invariants
- State moves only by replaying records, in the order of their offsets.
- A response with records leaves after their commit. A response without records leaves after the commit of all records
  before it. So no client learns of a change that could still be lost.
- One request is answered at a time. A long one is computed in the executor, from an immutable image. Until its last batch is
  appended, other requests and the controller's own changes wait; a waiting heartbeat still prolongs its broker's session.
- Every request is answered: by its manager, with the exception that its manager raises, with REQUEST_TIMED_OUT by the
  first `tick` after its time is over, or with NOT_CONTROLLER when the controller resigns.
- Publishers know of a commit before the client does.
- The controller does not survive a failure that leaves the end of the log unknown: it calls `on_fault`, and the process has to stop.

Limit: it never begins a metadata transaction, because every atomic change fits one batch of at most 10,000 records.

Sources: KIP-500, KIP-631; Kafka's `QuorumController`.
"""

from __future__ import annotations

import logging
import random
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

from barnabas.clock import Clock
from barnabas.metadata import broker_fencing
from barnabas.metadata.batches import Batches, append_batches
from barnabas.metadata.bootstrap import activation_records
from barnabas.metadata.broker_sessions import BrokerSessions
from barnabas.metadata.config_entries import ConfigResolver
from barnabas.metadata.config_schema import ConfigResourceType
from barnabas.metadata.controller_request import LATE, NOT_ACTIVE, UNCOMMITTED, ControllerRequest
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
from barnabas.metadata.metadata_loader import MetadataLoader, OwnChange
from barnabas.metadata.no_op_records import NoOpRecords
from barnabas.metadata.periodic_elections import PeriodicElections
from barnabas.metadata.record_codec import MetadataRecord, encode_record
from barnabas.metadata.token_sweep import TokenSweep
from barnabas.protocol import messages
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.message import Message
from barnabas.raft.raft_driver import AppendFailed, RaftDriver
from barnabas.raft.raft_node import BatchTooLarge
from barnabas.security.principal import ANONYMOUS, Principal
from barnabas.steps import run_on_the_spot
from barnabas.turns import ELEMENT, is_long, next_turn

if TYPE_CHECKING:
    import asyncio

    from barnabas.protocol.messages import BrokerHeartbeatRequest

logger = logging.getLogger(__name__)

R = TypeVar("R")


class _Pending(NamedTuple):
    """A response that waits for the commit of `last_offset`; `request` is None for the controller's own change.

    `delta` is None if the response has no change of its own, and waits only for the changes before it.
    """

    appended_ms: int
    last_offset: int
    delta: MetadataDelta | None
    response: Message | None
    request: ControllerRequest | None


class ControllerCounts:
    """Counts of the active controller's work.

    Attributes:
        commits, commit_ms: how many of its own appends were committed, and how long that took, added up.
        unclean_elections: how many leaders that may lack records these appends elected.
    """

    def __init__(self) -> None:
        self.commits = 0
        self.commit_ms = 0
        self.unclean_elections = 0

    def __repr__(self) -> str:
        return f"<ControllerCounts commits={self.commits} unclean_elections={self.unclean_elections}>"


class _Change(NamedTuple):
    """The change of a request: its records replayed into an image, which has no provenance yet, and encoded."""

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


def _is_long(view: ControllerView, records: list[MetadataRecord]) -> bool:
    """Return whether the replay of a change looks at many records or partitions."""
    weight, topics = len(records), view.image.topics.by_id
    for record in records:
        if isinstance(record, messages.RemoveTopicRecord):
            weight += len(topics[record.topic_id].partitions)
        elif isinstance(record, messages.ClearElrRecord) and not record.topic_name:
            return True  # It is for every topic.
    return is_long(weight * ELEMENT)


def _bounded(result: ControllerResult[Any]) -> ControllerResult[Any]:
    """Return the result of a request.

    Raises:
        KafkaError: POLICY_VIOLATION, it has too many records.
    """
    if len(result.records) > MAX_RECORDS_PER_REQUEST:
        raise KafkaError(ErrorCode.POLICY_VIOLATION, "Unable to perform excessively large batch operation.")
    return result


class QuorumController:
    """The active controller of one epoch; it ends with the leadership of its node.

    Args:
        loader: publishes committed records, and calls `on_commit` through its listener.
        counts: continues the counts of the controllers before this one.
        on_fault: called with the error when the node must stop.
        loop: its executor runs the managers of long requests; None runs them on the spot.
    """

    def __init__(
        self,
        settings: ControllerSettings,
        configs: ConfigResolver,
        driver: RaftDriver,
        loader: MetadataLoader,
        *,
        clock: Clock,
        random: random.Random,
        counts: ControllerCounts,
        on_fault: Callable[[Exception], None],
        loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        self.settings = settings
        self.configs = configs
        self.driver = driver
        # A new controller gives each broker one full session first.
        self.sessions = BrokerSessions(settings.broker_session_timeout_ms)
        self.is_active = True
        self._elections = PeriodicElections()
        self._token_sweep = TokenSweep()
        self._no_ops = NoOpRecords()
        self._loader = loader
        # The state after everything that was appended.
        self._latest = loader.image
        self._pending: deque[_Pending] = deque()
        # Requests that wait for the answer to a long one before them.
        self._early: list[ControllerRequest] = []
        self._is_computing = False
        self._loop = loop
        self._clock = clock
        self._random = random
        self._counts = counts
        self._on_fault = on_fault
        self._reason = NOT_ACTIVE

    def __repr__(self) -> str:
        role = "active" if self.is_active else "resigned"
        return f"<QuorumController id={self.settings.node_id} {role} {self._latest!r} pending={len(self._pending)}>"

    def begin(self, bootstrap: list[MetadataRecord] | None) -> None:
        """Write the first records of a log that has none; call it once, before `answer`."""
        if self._latest.features.metadata_version is not None:
            return
        try:
            records = activation_records(bootstrap, self._min_insync_replicas())
            self._append(_change(self._view(), ControllerResult(None, records)), None)
        except Exception as error:
            self._on_fault(error)

    def resign(self, reason: str) -> None:
        """Fail all waiting requests; nothing is appended after this.

        Args:
            reason: the message of NOT_CONTROLLER.
        """
        self.is_active = False
        self._reason = reason
        self._answer_early()
        while self._pending:
            request = self._pending.popleft().request
            if request is not None:
                request.fail(KafkaError(ErrorCode.NOT_CONTROLLER, self._reason))

    def answer(self, request: ControllerRequest) -> None:
        """Answer a request, in this turn or when its change is committed."""
        if request.future.done():
            return
        if self._is_computing and self.is_active:
            if request.api_key == ApiKey.BROKER_HEARTBEAT:
                broker_fencing.keep_session(self._view(), cast("BrokerHeartbeatRequest", request.body))
            self._early.append(request)
            return
        run_on_the_spot(self._answer(request), self._loop)

    async def _answer(self, request: ControllerRequest) -> None:
        """Answer a request; later requests wait until its change is appended."""
        self._is_computing = True
        in_batches = False
        try:
            manager = self._manager_of(request)
            view = self._view(request.version, request.mutation_quota, request.principal)
            result = await self._compute(request.is_long, manager, view, request.body)
            if result.batches is not None:
                in_batches = True
                records = await self._append_batches(result.batches)
                view, result = self._view(), ControllerResult(result.response, records)
            is_long = request.is_long or _is_long(view, result.records)
            change = await self._compute(is_long, _change, view, _bounded(result))
            if not request.future.done():
                self._finish(request, change)
        except Exception as error:
            if in_batches:
                # The changes that were to settle a broker may be missing.
                self.sessions.settled.clear()
            request.fail(error)
        finally:
            self._is_computing = False
            self._answer_early()

    def _manager_of(self, request: ControllerRequest) -> Manager:
        if not self.is_active:
            raise KafkaError(ErrorCode.NOT_CONTROLLER, self._reason)
        if request.is_late(self._clock.monotonic_ms()):
            raise KafkaError(ErrorCode.REQUEST_TIMED_OUT, LATE)
        manager = manager_of(request.api_key)
        if manager is None:
            message = f"The controller does not serve API key {request.api_key}."
            raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, message)
        return manager

    async def _compute(self, is_long: bool, function: Callable[..., R], *args: Any) -> R:
        """Compute a part of a change from immutable objects; in the executor if it is long.

        Raises:
            KafkaError: NOT_CONTROLLER, this controller has resigned meanwhile; else what `function` raises.
        """
        if not is_long or self._loop is None:
            return function(*args)
        computed = await self._loop.run_in_executor(None, function, *args)
        if not self.is_active:
            raise KafkaError(ErrorCode.NOT_CONTROLLER, self._reason)
        return computed

    async def _append_batches(self, batches: Batches) -> list[MetadataRecord]:
        """As `append_batches`, for as long as this controller is active."""

        def append(records: list[MetadataRecord]) -> None:
            self._append(_change(self._view(), ControllerResult(None, records)), None)

        return await append_batches(batches, append, lambda: self.is_active, self._loop)

    def _finish(self, request: ControllerRequest, change: _Change) -> None:
        """Append the records of a change and give its response, or the response alone when all before it is committed.

        Raises:
            KafkaError: POLICY_VIOLATION for too many bytes, KAFKA_STORAGE_ERROR; nothing was appended.
        """
        result = change.result
        if result.upgrades_kraft_version:
            self.driver.upgrade_kraft_version()
        if result.records:
            try:
                self._append(change, request)
            except BatchTooLarge as error:
                raise KafkaError(ErrorCode.POLICY_VIOLATION, str(error)) from None
        elif self._pending:
            last = self._pending[-1]
            self._pending.append(_Pending(last.appended_ms, last.last_offset, None, result.response, request))
        else:
            request.future.set_result(result.response)

    def _view(
        self, version: int = 0, mutation_quota: PartitionQuota | None = None, principal: Principal = ANONYMOUS
    ) -> ControllerView:
        return ControllerView(
            self._latest,
            self.settings,
            self.configs,
            self._clock,
            self._random,
            self.driver.node,
            self.sessions,
            version,
            mutation_quota,
            principal,
        )

    def _append(self, change: _Change, request: ControllerRequest | None) -> None:
        """Append records; the request is answered after their commit.

        Raises:
            BatchTooLarge: nothing was appended.
            KafkaError: KAFKA_STORAGE_ERROR; nothing was appended.
        """
        result, delta, image, values = change
        base_offset = self.driver.node.end_offset
        last_offset = base_offset + len(result.records) - 1
        provenance = MetadataProvenance(last_offset, self.driver.node.epoch, self._clock.wall_ms())
        image = image._replace(provenance=provenance)
        before = self._latest
        # In the queues before the append, because the commit may come before the append returns.
        self._latest = image
        now_ms = self._clock.monotonic_ms()
        self._pending.append(_Pending(now_ms, last_offset, delta, result.response, request))
        self._loader.appended(OwnChange(base_offset, delta, image, sum(map(len, values))))
        try:
            self.driver.append(values)
        except (BatchTooLarge, AppendFailed) as error:
            self._latest = before
            self._pending.pop()
            self._loader.take_back()
            if isinstance(error, AppendFailed):
                if len(self.driver.node.voters.ids()) > 1:
                    # Another voter's disk may take records; a leader that cannot write them would keep the cluster as it is.
                    self._on_fault(error)
                raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, str(error)) from error
            raise
        except Exception as error:
            self._on_fault(error)

    def on_commit(self, image: MetadataImage) -> None:
        """Give the responses whose changes are committed now; publishers know these already."""
        while self._pending and self._pending[0].last_offset <= image.provenance.offset:
            committed = self._pending.popleft()
            if committed.delta is not None:
                self._counts.commits += 1
                self._counts.commit_ms += self._clock.monotonic_ms() - committed.appended_ms
                if committed.delta.topics is not None:
                    self._counts.unclean_elections += committed.delta.topics.unclean_elections
            if committed.request is not None and not committed.request.future.done():
                committed.request.future.set_result(committed.response)

    def _answer_early(self) -> None:
        early, self._early = self._early, []
        for request in early:
            self.answer(request)

    def _min_insync_replicas(self) -> int:
        key = self.configs.schema.of(ConfigResourceType.TOPIC)["min.insync.replicas"]
        value = self.configs.topic_default(self._latest.configs, key)[0]
        assert isinstance(value, int)
        return value

    def tick(self) -> None:
        """Time out requests, fence brokers whose session has expired, hold elections, remove expired tokens, show that the quorum works."""
        now_ms = self._clock.monotonic_ms()
        for request in self._early:
            request.fail_if_late(now_ms)
        for pending in self._pending:
            if pending.request is not None and pending.request.expires_ms < now_ms:
                pending.request.fail(KafkaError(ErrorCode.REQUEST_TIMED_OUT, UNCOMMITTED))
        if self.is_active:
            run_on_the_spot(self._write_due(), self._loop)

    def broker_disconnected(self, broker_id: int, broker_epoch: int) -> None:
        """Note that the connection of a registration's last heartbeat has ended."""
        if self._is_registered(broker_id, broker_epoch):
            self.sessions.disconnected.add(broker_id)

    def broker_has_died(self, broker_id: int, broker_epoch: int) -> None:
        """Fence a registration whose process has ended, without waiting for its session."""
        if self._is_registered(broker_id, broker_epoch):
            self.sessions.expire(broker_id, self._clock.monotonic_ms())
            self.tick()

    def _is_registered(self, broker_id: int, broker_epoch: int) -> bool:
        broker = self._latest.cluster.brokers.get(broker_id)
        return broker is not None and broker.epoch == broker_epoch

    async def _write_due(self) -> None:
        while self.is_active and not self._is_computing and (batches := self._due(self._view())) is not None:
            self._is_computing = True
            try:
                records = await self._append_batches(batches)
                if records:
                    self._append(_change(self._view(), ControllerResult(None, records)), None)
            except (KafkaError, BatchTooLarge) as error:
                if self.is_active:
                    logger.warning("Cannot write what is due, such as fenced brokers or elections: %s", error)
                return
            finally:
                self._is_computing = False
                self._answer_early()
            if self._loop is not None:
                await next_turn()

    def _due(self, view: ControllerView) -> Batches | None:
        return (
            broker_fencing.fence_stale(view)
            or self._elections.due(view)
            or self._token_sweep.due(view)
            or self._no_ops.due(view)
        )
