"""ShareCoordinatorShard: the delivery state of the share partitions that live in one partition of `__share_group_state` (control plane).

    initialize   a snapshot with nothing delivered                 start offset may be unknown (-1)
    read         the state, for a new leader; notes its leader epoch
    write        an update, or a snapshot after so many updates    refused to an older leader or an older state epoch
    summary      start offset and counts, for those who watch
    delete       a tombstone

The leader of a share partition reads once and then writes what changes; the coordinator only keeps it. Two epochs fence writers: the
leader epoch (a leader that lost the partition) and the state epoch (a leader that read before the state was begun anew).

Snapshots also bound the log: everything before the oldest snapshot still needed is redundant, and `redundant_offset` says how far.
A share partition that is never written would hold that back, so `snapshot_cold_partitions` writes it again.

Limits: one share partition for each operation; the requests that name several are taken apart before.

Sources: KIP-932; Kafka classes `ShareCoordinatorShard`, `ShareCoordinatorOffsetsManager`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from typing import Generic, NamedTuple, TypeVar

from barnabas.coordinator.result import CoordinatorRecord, CoordinatorResult
from barnabas.protocol.errors import ErrorCode
from barnabas.share.state_batches import StateBatch, combine
from barnabas.share.state_records import (
    SHARE_SNAPSHOT,
    SHARE_UPDATE,
    UNINITIALIZED_DELIVERY_COMPLETE_COUNT,
    UNINITIALIZED_START_OFFSET,
    ShareGroupOffset,
    SharePartitionKey,
    share_snapshot_record,
    share_state_tombstone,
    share_update_record,
    state_batches,
)

logger = logging.getLogger(__name__)

T = TypeVar("T")

NEGATIVE_PARTITION = "The partition id cannot be a negative number."
NEGATIVE_LEADER_EPOCH = "The leader epoch cannot be a negative number."
NEGATIVE_STATE_EPOCH = "The state epoch cannot be a negative number."
WRITE_UNINITIALIZED = "Write operation on uninitialized share partition not allowed."
READ_UNINITIALIZED = "Read operation on uninitialized share partition not allowed."


@dataclass(frozen=True, slots=True)
class StateOutcome(Generic[T]):
    """What became of one share partition's part of a request; a refusal is an answer, not a failure of the coordinator."""

    value: T | None = None
    error: ErrorCode = ErrorCode.NONE
    message: str | None = None

    @classmethod
    def refused(cls, error: ErrorCode, message: str | None = None) -> StateOutcome[T]:
        return cls(None, error, error.default_message if message is None else message)


class StateWrite(NamedTuple):
    """What a leader writes down. Offsets of -1 leave the start where it is."""

    state_epoch: int
    leader_epoch: int
    start_offset: int
    delivery_complete_count: int
    batches: tuple[StateBatch, ...]


class StateSummary(NamedTuple):
    """What is told to those who watch a share partition; -1 where nothing is known yet."""

    state_epoch: int
    leader_epoch: int
    start_offset: int
    delivery_complete_count: int


NO_STATE = StateSummary(0, 0, UNINITIALIZED_START_OFFSET, UNINITIALIZED_DELIVERY_COMPLETE_COUNT)


class ShareCoordinatorShard:
    """One partition's state machine.

    Args:
        partition_count: how many partitions the topic of an id has; None when there is no such topic.
        updates_per_snapshot: share.coordinator.snapshot.update.records.per.snapshot.
        cold_interval_ms: share.coordinator.cold.partition.snapshot.interval.ms.
    """

    def __init__(
        self,
        *,
        now_ms: Callable[[], int],
        partition_count: Callable[[bytes], int | None],
        updates_per_snapshot: int,
        cold_interval_ms: int,
    ) -> None:
        self._now_ms = now_ms
        self._partition_count = partition_count
        self._updates_per_snapshot = updates_per_snapshot
        self._cold_interval_ms = cold_interval_ms
        self._states: dict[SharePartitionKey, ShareGroupOffset] = {}
        # The largest epochs seen; records of a state that was begun anew carry leader epoch 0.
        self._leader_epochs: dict[SharePartitionKey, int] = {}
        self._state_epochs: dict[SharePartitionKey, int] = {}
        self._updates: dict[SharePartitionKey, int] = {}
        self._snapshot_offsets: dict[SharePartitionKey, int] = {}
        self._last_snapshot_offset = -1

    def __repr__(self) -> str:
        return f"<ShareCoordinatorShard {len(self._states)} share partitions>"

    # -- what the runtime calls --------------------------------------------------------------------------------------

    def replay(self, record: CoordinatorRecord, offset: int, producer_id: int) -> None:
        """Move the state by one record."""
        key = SharePartitionKey(record.key.group_id, bytes(record.key.topic_id), record.key.partition)
        if record.type_id == SHARE_SNAPSHOT:
            self._replay_snapshot(key, record.value, offset)
        elif record.type_id == SHARE_UPDATE and record.value is not None:
            self._replay_update(key, record.value)

    def _replay_snapshot(self, key: SharePartitionKey, value: object, offset: int) -> None:
        self._last_snapshot_offset = offset
        if value is None:
            for known in (
                self._states,
                self._leader_epochs,
                self._state_epochs,
                self._updates,
                self._snapshot_offsets,
            ):
                known.pop(key, None)
            return
        state = ShareGroupOffset.from_snapshot(value)  # type: ignore[arg-type]
        self._states[key] = state
        self._leader_epochs[key] = max(state.leader_epoch, self._leader_epochs.get(key, 0))
        self._state_epochs[key] = max(state.state_epoch, self._state_epochs.get(key, 0))
        self._snapshot_offsets[key] = offset
        if self._updates.get(key, 0) >= self._updates_per_snapshot:
            self._updates[key] = 0

    def _replay_update(self, key: SharePartitionKey, value: object) -> None:
        update = ShareGroupOffset.from_update(value)  # type: ignore[arg-type]
        self._leader_epochs[key] = max(update.leader_epoch, self._leader_epochs.get(key, 0))
        self._updates[key] = self._updates.get(key, 0) + 1
        current = self._states.get(key)
        if current is None:
            self._states[key] = update
            return
        start_offset = current.start_offset if update.start_offset == -1 else update.start_offset
        self._states[key] = replace(
            current,
            leader_epoch=current.leader_epoch if update.leader_epoch == -1 else update.leader_epoch,
            start_offset=start_offset,
            delivery_complete_count=update.delivery_complete_count,
            state_batches=combine((*current.state_batches, *update.state_batches), start_offset),
        )

    def replay_end_transaction_marker(self, producer_id: int, committed: bool) -> None:
        """Nobody writes here within a transaction."""

    def on_loaded(self) -> None:
        """There are no timers."""

    def on_unloaded(self) -> None:
        """Nobody waits inside."""

    # -- operations --------------------------------------------------------------------------------------------------

    def initialize(
        self, key: SharePartitionKey, state_epoch: int, start_offset: int
    ) -> CoordinatorResult[StateOutcome[None]]:
        """Begin anew: nothing delivered from `start_offset` on (-1: the leader will decide)."""
        if key.partition < 0:
            return _refuse(ErrorCode.INVALID_REQUEST, NEGATIVE_PARTITION)
        if state_epoch < 0:
            return _refuse(ErrorCode.INVALID_REQUEST, NEGATIVE_STATE_EPOCH)
        if self._state_epochs.get(key, 0) > state_epoch:
            return _refuse(ErrorCode.FENCED_STATE_EPOCH)
        if not self._exists(key):
            return _refuse(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        known = self._states.get(key)
        unknown_start = start_offset == UNINITIALIZED_START_OFFSET
        now = self._now_ms()
        state = ShareGroupOffset(
            snapshot_epoch=0 if known is None else known.snapshot_epoch + 1,
            state_epoch=state_epoch,
            leader_epoch=0,
            start_offset=start_offset,
            # Without a start there is no lag to tell; from a given one on nothing is finished.
            delivery_complete_count=UNINITIALIZED_DELIVERY_COMPLETE_COUNT if unknown_start else 0,
            create_timestamp=now,
            write_timestamp=now,
        )
        return CoordinatorResult(StateOutcome(), [share_snapshot_record(key, state)])

    def read(self, key: SharePartitionKey, leader_epoch: int) -> CoordinatorResult[StateOutcome[ShareGroupOffset]]:
        """The state for a leader; a leader epoch that is new is written down, so that older leaders are fenced."""
        if key.partition < 0:
            return _refuse(ErrorCode.INVALID_REQUEST, NEGATIVE_PARTITION)
        if leader_epoch < 0:
            return _refuse(ErrorCode.INVALID_REQUEST, NEGATIVE_LEADER_EPOCH)
        state = self._states.get(key)
        if state is None:
            return _refuse(ErrorCode.INVALID_REQUEST, READ_UNINITIALIZED)
        if self._leader_epochs[key] > leader_epoch:
            return _refuse(ErrorCode.FENCED_LEADER_EPOCH)
        if not self._exists(key):
            return _refuse(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        outcome = StateOutcome(state)
        if self._leader_epochs[key] == leader_epoch:
            return CoordinatorResult(outcome)
        write = StateWrite(state.state_epoch, leader_epoch, state.start_offset, state.delivery_complete_count, ())
        return CoordinatorResult(outcome, [self._state_record(key, state, write, leader_epoch)])

    def write(self, key: SharePartitionKey, write: StateWrite) -> CoordinatorResult[StateOutcome[None]]:
        """Write down what a leader has done."""
        if key.partition < 0:
            return _refuse(ErrorCode.INVALID_REQUEST, NEGATIVE_PARTITION)
        if write.leader_epoch < 0:
            return _refuse(ErrorCode.INVALID_REQUEST, NEGATIVE_LEADER_EPOCH)
        if write.state_epoch < 0:
            return _refuse(ErrorCode.INVALID_REQUEST, NEGATIVE_STATE_EPOCH)
        state = self._states.get(key)
        if state is None:
            return _refuse(ErrorCode.INVALID_REQUEST, WRITE_UNINITIALIZED)
        if self._leader_epochs[key] > write.leader_epoch:
            return _refuse(ErrorCode.FENCED_LEADER_EPOCH)
        if self._state_epochs.get(key, 0) > write.state_epoch:
            return _refuse(ErrorCode.FENCED_STATE_EPOCH)
        if not self._exists(key):
            return _refuse(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        return CoordinatorResult(StateOutcome(), [self._state_record(key, state, write, state.leader_epoch)])

    def summary(self, key: SharePartitionKey) -> CoordinatorResult[StateOutcome[StateSummary]]:
        """Start offset and counts, also of a share partition without state."""
        if key.partition < 0:
            return _refuse(ErrorCode.INVALID_REQUEST, NEGATIVE_PARTITION)
        if not self._exists(key):
            return _refuse(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        state = self._states.get(key)
        if state is None:
            return CoordinatorResult(StateOutcome(NO_STATE))
        summary = StateSummary(state.state_epoch, state.leader_epoch, state.start_offset, state.delivery_complete_count)
        return CoordinatorResult(StateOutcome(summary))

    def delete(self, key: SharePartitionKey) -> CoordinatorResult[StateOutcome[None]]:
        """Forget a share partition; one that is not known is forgotten already."""
        if key.partition < 0:
            return _refuse(ErrorCode.INVALID_REQUEST, NEGATIVE_PARTITION)
        if not self._exists(key):
            return _refuse(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        records = [share_state_tombstone(key)] if key in self._states else []
        return CoordinatorResult(StateOutcome(), records)

    def delete_topics(self, topic_ids: Collection[bytes]) -> CoordinatorResult[None]:
        """Forget every share partition of topics that are gone."""
        gone = [share_state_tombstone(key) for key in self._states if key.topic_id in topic_ids]
        return CoordinatorResult(None, gone, atomic=False)

    # -- keeping the log short ---------------------------------------------------------------------------------------

    def snapshot_cold_partitions(self) -> CoordinatorResult[None]:
        """Snapshots of what has not had one for long, unless all that there is has been written for that reason already."""
        if all(state.create_timestamp != state.write_timestamp for state in self._states.values()):
            return CoordinatorResult(None)
        now = self._now_ms()
        records = [
            share_snapshot_record(key, replace(state, snapshot_epoch=state.snapshot_epoch + 1, write_timestamp=now))
            for key, state in self._states.items()
            if now - state.write_timestamp >= self._cold_interval_ms
        ]
        return CoordinatorResult(None, records, atomic=False)

    def redundant_offset(self) -> int | None:
        """The first offset still needed; what lies before it may be deleted. None when nothing may."""
        needed = min(self._snapshot_offsets.values(), default=self._last_snapshot_offset)
        return needed if needed > 0 else None

    # -- helpers -----------------------------------------------------------------------------------------------------

    def _exists(self, key: SharePartitionKey) -> bool:
        count = self._partition_count(key.topic_id)
        return count is not None and key.partition < count

    def _state_record(
        self, key: SharePartitionKey, current: ShareGroupOffset, write: StateWrite, leader_epoch: int
    ) -> CoordinatorRecord:
        """An update or, after enough of them, a snapshot. A start offset never goes back."""
        start_offset = max(write.start_offset, current.start_offset)
        complete = write.delivery_complete_count
        if write.start_offset == current.start_offset:
            complete = max(complete, current.delivery_complete_count)
        elif write.start_offset < current.start_offset:
            complete = current.delivery_complete_count
        if self._updates.get(key, 0) >= self._updates_per_snapshot:
            now = self._now_ms()
            return share_snapshot_record(
                key,
                ShareGroupOffset(
                    current.snapshot_epoch + 1,
                    current.state_epoch,
                    leader_epoch,
                    start_offset,
                    complete,
                    combine((*current.state_batches, *write.batches), start_offset),
                    now,
                    now,
                ),
            )
        return share_update_record(
            key,
            ShareGroupOffset(
                current.snapshot_epoch,
                current.state_epoch,
                leader_epoch,
                start_offset,
                complete,
                combine(write.batches, start_offset),
            ),
        )


def _refuse(error: ErrorCode, message: str | None = None) -> CoordinatorResult[StateOutcome[T]]:
    return CoordinatorResult(StateOutcome.refused(error, message))


__all__ = ["ShareCoordinatorShard", "StateOutcome", "StateSummary", "StateWrite", "state_batches"]
