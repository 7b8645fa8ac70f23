"""One partition as a share group sees it, at the partition's leader. Data plane.

    EMPTY ──initialize──► INITIALIZING ──► ACTIVE ──► FENCED        another leader, another state, or nobody left
                               └─────────► FAILED ──►  ┘

The window (`ShareRecords`) is in memory; each change is given to the persister, and an answer waits for that. When the state has been
lost to another leader or begun anew, the persister refuses, and the share partition is fenced: whoever comes next reads afresh.

Locks end on one timer, set for the earliest of them.

Acquisitions are not persisted: after a crash the records are delivered again, with the count of their last persisted release.
A finished record whose acknowledgement was answered is persisted and never comes back.

Sources: KIP-932; Kafka's `SharePartition`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence
from enum import Enum
from typing import Any

from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.replication.offset_lookup import lookup_offset
from barnabas.replication.partition import Partition
from barnabas.share.aborted import aborted_ranges, without
from barnabas.share.acquisition import Reading
from barnabas.share.in_flight import RecordState
from barnabas.share.records import Acknowledgement, Acquired, Change, ShareRecords
from barnabas.share.settings import PersistedState, Persister, ShareSettings

__all__ = ["SharePartition", "SharePartitionState"]

logger = logging.getLogger(__name__)

_FENCED = frozenset({ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.FENCED_STATE_EPOCH})
_COORDINATOR = frozenset(
    {ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS}
)
_AS_THEY_ARE = frozenset({ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION})
ENDS_SHARE_PARTITION = frozenset(
    {
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.FENCED_STATE_EPOCH,
        ErrorCode.GROUP_ID_NOT_FOUND,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
)
"""After these the state in memory is not the state of the group any more."""
READ_UNCOMMITTED = 0


class SharePartitionState(Enum):
    EMPTY = "empty"
    INITIALIZING = "initializing"
    ACTIVE = "active"
    FAILED = "failed"
    FENCED = "fenced"


class SharePartition:
    """A group's share of one partition.

    Args:
        on_change: called when a fetch that waits may find something now.

    Attributes:
        leader_epoch: the partition's, when this was made; with another one this is fenced.
        records: the window; None until it has been read.
    """

    def __init__(
        self,
        group_id: str,
        partition: Partition,
        *,
        persister: Persister,
        settings: ShareSettings,
        loop: asyncio.AbstractEventLoop,
        now_ms: Callable[[], int],
        on_change: Callable[[SharePartition], None],
    ) -> None:
        self.group_id = group_id
        self.partition = partition
        self.leader_epoch = partition.leader_epoch
        self.state = SharePartitionState.EMPTY
        self.records: ShareRecords | None = None
        self.state_epoch = 0
        self._persister = persister
        self._settings = settings
        self._loop = loop
        self._now_ms = now_ms
        self._on_change = on_change
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = 0.0

    def __repr__(self) -> str:
        return (
            f"<SharePartition {self.group_id} {self.partition.topic.name}-{self.partition.index} "
            f"{self.state.value} {self.records!r}>"
        )

    @property
    def is_active(self) -> bool:
        return self.state is SharePartitionState.ACTIVE

    @property
    def is_stale(self) -> bool:
        """The replica is gone, led elsewhere, or led anew."""
        partition = self.partition
        return partition.is_deleted or not partition.is_leader or partition.leader_epoch != self.leader_epoch

    def fence(self) -> None:
        """Do nothing any more."""
        self.state = SharePartitionState.FENCED
        self._cancel_timer()

    # -- beginning ---------------------------------------------------------------------------------------------------

    def initialize(self, on_active: Callable[[SharePartition], None]) -> asyncio.Future[None] | None:
        """Read the state unless that has been begun; None when there is nothing to wait for.

        Args:
            on_active: called as soon as the state has been read, before another share partition's can be looked at.

        Raises:
            KafkaError: NOT_LEADER_OR_FOLLOWER once fenced, UNKNOWN_SERVER_ERROR when it has failed.
        """
        if self.state in (SharePartitionState.ACTIVE, SharePartitionState.INITIALIZING):
            return None
        if self.state is SharePartitionState.FENCED:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        if self.state is SharePartitionState.FAILED:
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, f"{self!r} could not be read")
        self.state = SharePartitionState.INITIALIZING
        future: asyncio.Future[None] = self._loop.create_future()
        read = self._persister.read_state(
            self.group_id, self.partition.topic.topic_id, self.partition.index, self.leader_epoch
        )

        def done(result: asyncio.Future[PersistedState]) -> None:
            error = self._begin(result)
            if error is None:
                on_active(self)
            if not future.done():
                if error is None:
                    future.set_result(None)
                else:
                    future.set_exception(error)

        _when_done(read, done)
        return future

    def _begin(self, read: asyncio.Future[PersistedState]) -> KafkaError | None:
        if self.state is not SharePartitionState.INITIALIZING:
            _observe(read)
            return KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        try:
            persisted = read.result()
            start_offset = persisted.start_offset
            if start_offset < 0:
                start_offset = self._first_offset()
            self.records = ShareRecords.restored(start_offset, persisted.batches)
        except KafkaError as error:
            self.state = SharePartitionState.FAILED
            return _persister_error(error)
        except ValueError as error:
            logger.error("%r: %s", self, error)
            self.state = SharePartitionState.FAILED
            return KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
        self.state_epoch = persisted.state_epoch
        self.state = SharePartitionState.ACTIVE
        max_delivery_count = self._settings.limits(self.group_id, 0.0).max_delivery_count
        for run in self.records.archiving():
            # Whether it was rejected is not persisted: the count tells.
            self._bury(run.first, run.last, run.delivery_count, rejected=run.delivery_count < max_delivery_count)
        return None

    def _first_offset(self) -> int:
        """Where a group begins that has no state, by its share.auto.offset.reset."""
        timestamp = self._settings.reset_timestamp(self.group_id, self._now_ms())
        found = lookup_offset(self.partition, timestamp, READ_UNCOMMITTED)
        if found.offset >= 0:
            return found.offset
        return lookup_offset(self.partition, -1, READ_UNCOMMITTED).offset

    # -- what fetches ask --------------------------------------------------------------------------------------------

    def next_fetch_offset(self) -> int | None:
        """Where to read for a member, or None when there is nothing to acquire now."""
        if not self.is_active or self.records is None:
            return None
        limits = self._settings.limits(self.group_id, 0.0)
        if not self.records.can_acquire(limits.max_record_locks):
            return None
        return self.records.next_fetch_offset()

    def acquire(
        self,
        member_id: str,
        batches: Sequence[Any],
        *,
        fetch_offset: int,
        max_records: int,
        batch_size: int,
        strict: bool,
        aborted: Iterable[tuple[int, int]] = (),
        abort_markers: Iterable[tuple[int, int]] = (),
    ) -> list[Acquired]:
        """Give what was read to a member; see `acquisition`.

        Args:
            batches: headers of the record batches read.
            aborted: producer id and first offset of the aborted transactions of the range, with read_committed.
            abort_markers: producer id and offset of the markers among the batches that end such a transaction.
        """
        if not self.is_active or self.records is None:
            return []
        limits = self._settings.limits(self.group_id, self._loop.time())
        offsets = [(header.base_offset, header.last_offset) for header in batches]
        read = Reading(member_id, offsets, fetch_offset, batch_size, strict, limits)
        acquired = self.records.acquire(read, max_records)
        for first, last in aborted_ranges(batches, aborted, abort_markers) if acquired else ():
            self.records.archive(first, last, RecordState.ACQUIRED)
            acquired = without(acquired, first, last)
        if acquired:
            self._watch_locks(limits.lock_until)
        return acquired

    def move_start(self, log_start_offset: int) -> None:
        """The log begins later than the group does."""
        if self.records is not None:
            self.records.move_start(log_start_offset)
            self._on_change(self)

    # -- what members say --------------------------------------------------------------------------------------------

    def acknowledge(self, member_id: str, acknowledgements: Iterable[Acknowledgement]) -> asyncio.Future[None]:
        """Take a member's word; the future is done when it is written down, and fails with a KafkaError."""
        future: asyncio.Future[None] = self._loop.create_future()
        if self.records is None or not self.is_active:
            future.set_exception(KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER))
            return future
        limits = self._settings.limits(self.group_id, self._loop.time())
        try:
            changes = self.records.acknowledge(member_id, acknowledgements, limits)
        except KafkaError as error:
            future.set_exception(error)
            return future
        if limits.renew_enabled:
            self._watch_locks(limits.lock_until)
        return self._write(changes, future)

    def release(self, member_id: str) -> asyncio.Future[None]:
        """Take back all that a member holds; as `acknowledge`."""
        future: asyncio.Future[None] = self._loop.create_future()
        if self.records is None or not self.is_active:
            future.set_result(None)
            return future
        return self._write(
            self.records.release(member_id, self._settings.limits(self.group_id, self._loop.time())), future
        )

    def _write(self, changes: list[Change], future: asyncio.Future[None]) -> asyncio.Future[None]:
        if not changes:
            future.set_result(None)
            return future

        def written(result: asyncio.Future[None]) -> None:
            error = _persister_failure(result)
            records = self.records
            assert records is not None
            moved = records.settle(changes, committed=error is None, now=self._loop.time())
            if not future.done():
                if error is None:
                    future.set_result(None)
                else:
                    future.set_exception(error)
            if error is None:
                self._bury_all(changes)
            available = any(change.state is RecordState.AVAILABLE for change in changes)
            if moved or available or error is not None:
                self._on_change(self)

        _when_done(self._persist(changes), written)
        return future

    def _persist(self, changes: Iterable[Change]) -> asyncio.Future[None]:
        assert self.records is not None
        return self._persister.write_state(
            self.group_id,
            self.partition.topic.topic_id,
            self.partition.index,
            state_epoch=self.state_epoch,
            leader_epoch=self.leader_epoch,
            start_offset=self.records.start_offset,
            delivery_complete_count=self.records.delivery_complete_count,
            batches=[(change.first, change.last, int(change.state), change.delivery_count) for change in changes],
        )

    # -- dead letters ------------------------------------------------------------------------------------------------

    def _bury_all(self, changes: Iterable[Change]) -> None:
        for change in changes:
            if change.state is RecordState.ARCHIVING:
                self._bury(change.first, change.last, change.delivery_count, rejected=change.rejected)

    def _bury(self, first: int, last: int, delivery_count: int, *, rejected: bool) -> None:
        """Write dead letters, then archive the records, whatever became of the letters."""
        letters = self._settings.dead_letters
        if letters is None:
            self._archived(first, last, delivery_count)
            return
        done = letters.write(self.group_id, self.partition, first, last, delivery_count, rejected=rejected)

        def written(result: asyncio.Future[None]) -> None:
            _observe(result)
            self._archived(first, last, delivery_count)

        _when_done(done, written)

    def _archived(self, first: int, last: int, delivery_count: int) -> None:
        if not self.is_active or self.records is None:
            return
        self.records.finish_archiving(first, last)
        change = Change(first, last, RecordState.ARCHIVED, delivery_count, None)
        _when_done(self._persist([change]), self._advance_after)

    def _advance_after(self, result: asyncio.Future[None]) -> None:
        """A change that stands anyway has been written, or has not."""
        error = _persister_failure(result)
        if error is not None:
            logger.info("%r: a change was not persisted: %s", self, error)
        if self.records is not None and self.records.advance():
            self._on_change(self)

    # -- locks -------------------------------------------------------------------------------------------------------

    def _watch_locks(self, until: float) -> None:
        if self._timer is None or until < self._timer_at:
            self._cancel_timer()
            self._timer_at = until
            self._timer = self._loop.call_at(until, self._expire)

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _expire(self) -> None:
        self._timer = None
        if not self.is_active or self.records is None:
            return
        now = max(self._loop.time(), self._timer_at)
        changes = self.records.expire(now, self._settings.limits(self.group_id, now))
        earliest = self.records.earliest_lock
        if earliest is not None:
            self._watch_locks(earliest)
        if changes:

            def written(result: asyncio.Future[None]) -> None:
                self._advance_after(result)
                self._bury_all(changes)

            _when_done(self._persist(changes), written)
            self._on_change(self)


def _when_done(future: asyncio.Future[Any], callback: Callable[[asyncio.Future[Any]], None]) -> None:
    if future.done():
        callback(future)
    else:
        future.add_done_callback(callback)


def _observe(future: asyncio.Future[Any]) -> None:
    if not future.cancelled():
        future.exception()


def _persister_failure(result: asyncio.Future[None]) -> KafkaError | None:
    error = result.exception()
    if error is None:
        return None
    if isinstance(error, KafkaError):
        return _persister_error(error)
    raise error


def _persister_error(error: KafkaError) -> KafkaError:
    """What a client is told about the coordinator's answer."""
    if error.code in _COORDINATOR:
        return KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, error.message)
    if error.code in _FENCED:
        return KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, error.message)
    if error.code in _AS_THEY_ARE:
        return error
    return KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, error.message)
