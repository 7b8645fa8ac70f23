"""SharePartition: one partition as a share group sees it, at the partition's leader.

    EMPTY ──initialize──► INITIALIZING ──► ACTIVE ──► FENCED     another leader or state, or no member left
                               └─────────► FAILED ──►  ┘

The window (`ShareWindow`) is in memory. The persister writes each change, and the answer to an acknowledgement waits for that write.
If another leader has taken over the state, or the state was started again, the persister rejects the write and the share partition is
fenced: the next fetch makes a new one, which reads the state again.

One timer, set for the earliest lock, ends locks.

Acquisitions are not persisted: after a crash the records are delivered again, with the delivery count of their last persisted release.
A finished record whose acknowledgement was answered is persisted and is never delivered again.

Sources: KIP-932; Kafka's `SharePartition`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence
from enum import Enum

from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.state_batches import StateBatch
from barnabas.records.record_batch import BatchHeader
from barnabas.replication.fetch_reader import READ_UNCOMMITTED
from barnabas.replication.offset_lookup import find_offset, lookup_offset
from barnabas.replication.partition import Partition
from barnabas.share.aborted import aborted_ranges, without
from barnabas.share.acknowledgement import Acknowledgement, Change, acknowledge, expire, release, settle
from barnabas.share.acquisition import Reading, acquire
from barnabas.share.in_flight import RecordState
from barnabas.share.persister import ShareStates
from barnabas.share.settings import ShareSettings
from barnabas.share.share_coordinator_shard import StateWrite
from barnabas.share.state_records import SharePartitionKey
from barnabas.share.window import Acquired, Limits, ShareWindow
from barnabas.steps import in_background, sleep

__all__ = ["ENDS_SHARE_PARTITION", "SharePartition", "SharePartitionState"]

logger = logging.getLogger(__name__)

ENDS_SHARE_PARTITION = frozenset(
    {
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.FENCED_STATE_EPOCH,
        ErrorCode.GROUP_ID_NOT_FOUND,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
)
"""After these errors the state in memory is no longer the group's state."""
HIGH_WATERMARK_RETRY_MS = 20
_FOR_CLIENTS = {
    ErrorCode.NOT_COORDINATOR: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_NOT_AVAILABLE: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.FENCED_LEADER_EPOCH: ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.FENCED_STATE_EPOCH: ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.GROUP_ID_NOT_FOUND: ErrorCode.GROUP_ID_NOT_FOUND,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
}
"""The error that a client gets for the share coordinator's; UNKNOWN_SERVER_ERROR for any other."""


class SharePartitionState(Enum):
    EMPTY = "empty"
    INITIALIZING = "initializing"
    ACTIVE = "active"
    FAILED = "failed"
    FENCED = "fenced"


class SharePartition:
    """A group's share of one partition.

    Args:
        on_change: called when a waiting fetch may find records now.

    Attributes:
        leader_epoch: the partition's when this was made; with another one this is stale.
        window: the records in flight; None until the state has been read.
    """

    def __init__(
        self,
        key: SharePartitionKey,
        partition: Partition,
        *,
        persister: ShareStates,
        settings: ShareSettings,
        loop: asyncio.AbstractEventLoop,
        now_ms: Callable[[], int],
        on_change: Callable[[SharePartition], None],
    ) -> None:
        self.key = key
        self.partition = partition
        self.leader_epoch = partition.leader_epoch
        self.state = SharePartitionState.EMPTY
        self.window: ShareWindow | None = None
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
            f"<SharePartition {self.key.group_id} {self.partition.topic.name}-{self.partition.index} "
            f"{self.state.value} {self.window!r}>"
        )

    @property
    def is_active(self) -> bool:
        return self.state is SharePartitionState.ACTIVE

    @property
    def is_stale(self) -> bool:
        """Whether the replica was deleted, or its partition has had an election."""
        partition = self.partition
        return partition.is_deleted or not partition.is_leader or partition.leader_epoch != self.leader_epoch

    def fence(self) -> None:
        """Stop: nothing is delivered, acknowledged or written from now on."""
        self.state = SharePartitionState.FENCED
        self._cancel_timer()

    def needs_state(self) -> bool:
        """Return whether `initialize` is to be called: the first fetch does.

        Raises:
            KafkaError: NOT_LEADER_OR_FOLLOWER once fenced, UNKNOWN_SERVER_ERROR if the state could not be read.
        """
        if self.state is SharePartitionState.FENCED:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        if self.state is SharePartitionState.FAILED:
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, f"{self!r} could not be read")
        return self.state is SharePartitionState.EMPTY

    async def initialize(self) -> None:
        """Read the state.

        Raises:
            KafkaError: the error for the client.
        """
        assert self.state is SharePartitionState.EMPTY, self
        self.state = SharePartitionState.INITIALIZING
        try:
            persisted = await self._persister.read(self.key, self.leader_epoch)
            start_offset = persisted.start_offset if persisted.start_offset >= 0 else await self._first_offset()
            if self.state is not SharePartitionState.INITIALIZING:
                raise KafkaError(ErrorCode.FENCED_LEADER_EPOCH)
            self.window = ShareWindow.restored(start_offset, persisted.state_batches)
        except Exception as error:
            if self.state is SharePartitionState.INITIALIZING:
                self.state = SharePartitionState.FAILED
            raise self._for_client(error) from error
        self.state_epoch = persisted.state_epoch
        self.state = SharePartitionState.ACTIVE
        max_delivery_count = self._limits().max_delivery_count
        for run in self.window.archiving():
            # The state does not tell whether a record was rejected; its delivery count does.
            rejected = run.delivery_count < max_delivery_count
            in_background(self._bury(run.first, run.last, run.delivery_count, rejected=rejected), self._loop)

    async def _first_offset(self) -> int:
        """Return where a group without state starts, by its share.auto.offset.reset.

        A new leader may not know yet how much is committed; then this waits until it does.

        Raises:
            KafkaError: FENCED_LEADER_EPOCH if the partition gets another leader meanwhile.
        """
        while True:
            try:
                return await self._find_first_offset()
            except KafkaError as error:
                if error.code is not ErrorCode.OFFSET_NOT_AVAILABLE:
                    raise
            await sleep(HIGH_WATERMARK_RETRY_MS / 1000, self._loop)
            if self.is_stale or self.state is not SharePartitionState.INITIALIZING:
                raise KafkaError(ErrorCode.FENCED_LEADER_EPOCH)

    async def _find_first_offset(self) -> int:
        timestamp = self._settings.reset_timestamp(self.key.group_id, self._now_ms())
        found = await find_offset(self.partition, timestamp, READ_UNCOMMITTED, self._loop.run_in_executor)
        if found.offset >= 0:
            return found.offset
        return lookup_offset(self.partition, -1, READ_UNCOMMITTED).offset

    def _limits(self) -> Limits:
        return self._settings.limits(self.key.group_id, self._loop.time())

    def next_fetch_offset(self) -> int | None:
        """Return where to read for a member; None if there is nothing to acquire now."""
        if not self.is_active or self.window is None:
            return None
        if not self.window.can_acquire(self._limits().max_record_locks):
            return None
        return self.window.next_fetch_offset()

    def acquire(
        self,
        member_id: str,
        batches: Sequence[BatchHeader],
        *,
        fetch_offset: int,
        max_records: int,
        batch_size: int,
        strict: bool,
        aborted: Iterable[tuple[int, int]] = (),
        abort_markers: Iterable[tuple[int, int]] = (),
    ) -> list[Acquired]:
        """Give what was read to a member, as `acquisition` describes.

        Args:
            batches: headers of the record batches read.
            aborted: producer id and first offset of the range's aborted transactions, for read_committed.
            abort_markers: producer id and offset of the abort markers among the batches.
        """
        if not self.is_active or self.window is None:
            return []
        limits = self._limits()
        offsets = [(header.base_offset, header.last_offset) for header in batches]
        read = Reading(member_id, offsets, fetch_offset, batch_size, strict, limits)
        acquired = acquire(self.window, read, max_records)
        for first, last in aborted_ranges(batches, aborted, abort_markers) if acquired else ():
            self.window.archive(first, last, RecordState.ACQUIRED)
            acquired = without(acquired, first, last)
        if acquired:
            self._watch_locks(limits.lock_until)
        else:
            # If aborted records fill the window, no acknowledgement is left that would move its start.
            self.window.advance()
        return acquired

    def move_start(self, log_start_offset: int) -> None:
        """Move the start offset to the log's, which is beyond it."""
        if self.window is not None:
            self.window.move_start(log_start_offset)
            self._on_change(self)

    async def acknowledge(self, member_id: str, acknowledgements: Iterable[Acknowledgement]) -> None:
        """Apply a member's acknowledgements and write them.

        The caller must not cancel this: records whose change is not settled can be neither delivered nor finished.

        Raises:
            KafkaError: the error for the client.
        """
        if self.window is None or not self.is_active:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        limits = self._limits()
        changes = acknowledge(self.window, member_id, acknowledgements, limits)
        if limits.renew_enabled:
            self._watch_locks(limits.lock_until)
        await self._write(changes)

    async def release(self, member_id: str) -> None:
        """Release all records that a member holds; cancellation and errors as in `acknowledge`."""
        if self.window is not None and self.is_active:
            await self._write(release(self.window, member_id, self._limits()))

    async def _write(self, changes: list[Change]) -> None:
        if not changes:
            return
        assert self.window is not None
        error: Exception | None = None
        try:
            await self._persist(changes)
        except Exception as failure:
            error = failure
        moved = settle(self.window, changes, committed=error is None, now=self._loop.time())
        if error is None:
            self._bury_all(changes)
        else:
            # The timer may have ended during the write, when these records were not acquired.
            self._watch_earliest_lock()
        if moved or error is not None or any(change.state is RecordState.AVAILABLE for change in changes):
            self._on_change(self)
        if error is not None:
            raise self._for_client(error) from error

    async def _persist(self, changes: Iterable[Change]) -> None:
        assert self.window is not None
        batches = tuple(
            StateBatch(change.first, change.last, int(change.state), change.delivery_count) for change in changes
        )
        await self._persister.write(
            self.key,
            StateWrite(
                self.state_epoch,
                self.leader_epoch,
                self.window.start_offset,
                self.window.delivery_complete_count,
                batches,
            ),
        )

    def _for_client(self, error: Exception) -> KafkaError:
        """Return the error for the client; log one that is a bug."""
        if isinstance(error, KafkaError):
            return KafkaError(_FOR_CLIENTS.get(error.code, ErrorCode.UNKNOWN_SERVER_ERROR), error.message)
        logger.error("%r failed", self, exc_info=error)
        return KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)

    async def _write_anyway(self, changes: Iterable[Change]) -> None:
        """Write changes that hold even if the write fails, then advance the start offset."""
        try:
            await self._persist(changes)
        except KafkaError as error:
            logger.info("%r: a change was not persisted: %s", self, error)
        if self.window is not None and self.window.advance():
            self._on_change(self)

    def _bury_all(self, changes: Iterable[Change]) -> None:
        for change in changes:
            if change.state is RecordState.ARCHIVING:
                in_background(
                    self._bury(change.first, change.last, change.delivery_count, rejected=change.rejected), self._loop
                )

    async def _bury(self, first: int, last: int, delivery_count: int, *, rejected: bool) -> None:
        """Write dead letters, then archive the records even if there are no letters."""
        letters = self._settings.dead_letters
        if letters is not None:
            await letters.write(self.key.group_id, self.partition, first, last, delivery_count, rejected=rejected)
        if self.is_active and self.window is not None:
            self.window.finish_archiving(first, last)
            await self._write_anyway([Change(first, last, RecordState.ARCHIVED, delivery_count, None)])

    def _watch_locks(self, until: float) -> None:
        if self._timer is None or until < self._timer_at:
            self._cancel_timer()
            self._timer_at = until
            self._timer = self._loop.call_at(until, self._expire)

    def _watch_earliest_lock(self) -> None:
        if self.is_active and self.window is not None and (earliest := self.window.earliest_lock) is not None:
            self._watch_locks(earliest)

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _expire(self) -> None:
        self._timer = None
        if not self.is_active or self.window is None:
            return
        now = max(self._loop.time(), self._timer_at)
        changes = expire(self.window, now, self._settings.limits(self.key.group_id, now))
        self._watch_earliest_lock()
        if changes:
            in_background(self._write_expired(changes), self._loop)
            self._on_change(self)

    async def _write_expired(self, changes: Sequence[Change]) -> None:
        await self._write_anyway(changes)
        self._bury_all(changes)
