"""ShareCoordinatorShard: the delivery state of the share partitions that live in one partition of `__share_group_state`.

    initialize   a snapshot with nothing delivered             the start offset may be unknown (-1)
    read         the state, for a new leader                   records the leader epoch
    write        an update, or a snapshot after many updates   rejects an older leader epoch or state epoch
    summary      start offset and counts, for tools
    delete       a tombstone

The leader of a share partition reads the state once and then writes each change; the coordinator only keeps it. Two epochs fence
writers: the leader epoch (a leader that lost the partition) and the state epoch (a leader that read an earlier state).

Snapshots also bound the log: no record before the oldest snapshot that is still needed is needed, and `redundant_offset` returns that
snapshot's offset. A share partition without writes would hold it back, so `snapshot_cold_partitions` writes such partitions again.

Limits: an operation takes one share partition; the API handlers split requests that name several.

Sources: KIP-932; Kafka classes `ShareCoordinatorShard`, `ShareCoordinatorOffsetsManager`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
from typing import NamedTuple

from barnabas.coordinator.result import CoordinatorRecord, CoordinatorResult
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.state_batches import StateBatch, combine
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
)

__all__ = ["ShareCoordinatorShard", "StateSummary", "StateWrite"]

NEGATIVE_PARTITION = "The partition id cannot be a negative number."
NEGATIVE_LEADER_EPOCH = "The leader epoch cannot be a negative number."
NEGATIVE_STATE_EPOCH = "The state epoch cannot be a negative number."
WRITE_UNINITIALIZED = "Write operation on uninitialized share partition not allowed."
READ_UNINITIALIZED = "Read operation on uninitialized share partition not allowed."


class StateWrite(NamedTuple):
    """A change that a leader writes; start offset -1 leaves the start where it is."""

    state_epoch: int
    leader_epoch: int
    start_offset: int
    delivery_complete_count: int
    batches: tuple[StateBatch, ...]


class StateSummary(NamedTuple):
    """Epochs, start offset and count of a share partition; -1 where nothing is known yet."""

    state_epoch: int
    leader_epoch: int
    start_offset: int
    delivery_complete_count: int


NO_STATE = StateSummary(0, 0, UNINITIALIZED_START_OFFSET, UNINITIALIZED_DELIVERY_COMPLETE_COUNT)


class ShareCoordinatorShard:
    """One partition's state machine.

    Args:
        partition_count: the number of partitions of a topic id; None if the topic does not exist.
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
        # The largest epochs seen: after a new `initialize` the state itself carries leader epoch 0.
        self._leader_epochs: dict[SharePartitionKey, int] = {}
        self._state_epochs: dict[SharePartitionKey, int] = {}
        self._updates: dict[SharePartitionKey, int] = {}
        self._snapshot_offsets: dict[SharePartitionKey, int] = {}
        self._last_snapshot_offset = -1

    def __repr__(self) -> str:
        return f"<ShareCoordinatorShard {len(self._states)} share partitions>"

    def replay(self, record: CoordinatorRecord, offset: int, producer_id: int) -> None:
        """Apply one record to the state."""
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
        """Do nothing: no client writes here in a transaction."""

    def on_loaded(self) -> None:
        """Do nothing: there are no timers."""

    def on_unloaded(self) -> None:
        """Do nothing: no request waits inside."""

    def initialize(self, key: SharePartitionKey, state_epoch: int, start_offset: int) -> CoordinatorResult[None]:
        """Start a new state: nothing is delivered from `start_offset` on (-1: the leader decides).

        Without a start offset a state that exists stays as it is: the group sends the request again if an answer is late, and the partition
        may be read already. Deviation: Apache Kafka 4.3.1 starts a new state then.

        Raises:
            KafkaError: INVALID_REQUEST, FENCED_STATE_EPOCH, UNKNOWN_TOPIC_OR_PARTITION.
        """
        _check_not_negative(key.partition, NEGATIVE_PARTITION)
        _check_not_negative(state_epoch, NEGATIVE_STATE_EPOCH)
        if self._state_epochs.get(key, 0) > state_epoch:
            raise KafkaError(ErrorCode.FENCED_STATE_EPOCH)
        self._check_exists(key)
        known = self._states.get(key)
        unknown_start = start_offset == UNINITIALIZED_START_OFFSET
        if known is not None and unknown_start:
            return CoordinatorResult(None)
        now = self._now_ms()
        state = ShareGroupOffset(
            snapshot_epoch=0 if known is None else known.snapshot_epoch + 1,
            state_epoch=state_epoch,
            leader_epoch=0,
            start_offset=start_offset,
            # Without a start offset the lag is unknown. Behind a given one no delivery has ended yet.
            delivery_complete_count=UNINITIALIZED_DELIVERY_COMPLETE_COUNT if unknown_start else 0,
            create_timestamp=now,
            write_timestamp=now,
        )
        return CoordinatorResult(None, [share_snapshot_record(key, state)])

    def read(self, key: SharePartitionKey, leader_epoch: int) -> CoordinatorResult[ShareGroupOffset]:
        """Return the state to a leader; a new leader epoch is written, which fences older leaders.

        Raises:
            KafkaError: INVALID_REQUEST, also for a state that was not initialized; FENCED_LEADER_EPOCH, UNKNOWN_TOPIC_OR_PARTITION.
        """
        _check_not_negative(key.partition, NEGATIVE_PARTITION)
        _check_not_negative(leader_epoch, NEGATIVE_LEADER_EPOCH)
        state = self._states.get(key)
        if state is None:
            raise KafkaError(ErrorCode.INVALID_REQUEST, READ_UNINITIALIZED)
        if self._leader_epochs[key] > leader_epoch:
            raise KafkaError(ErrorCode.FENCED_LEADER_EPOCH)
        self._check_exists(key)
        if self._leader_epochs[key] == leader_epoch:
            return CoordinatorResult(state)
        write = StateWrite(state.state_epoch, leader_epoch, state.start_offset, state.delivery_complete_count, ())
        return CoordinatorResult(state, [self._state_record(key, state, write, leader_epoch)])

    def write(self, key: SharePartitionKey, write: StateWrite) -> CoordinatorResult[None]:
        """Write a leader's change.

        Raises:
            KafkaError: as `read`, and FENCED_STATE_EPOCH.
        """
        _check_not_negative(key.partition, NEGATIVE_PARTITION)
        _check_not_negative(write.leader_epoch, NEGATIVE_LEADER_EPOCH)
        _check_not_negative(write.state_epoch, NEGATIVE_STATE_EPOCH)
        state = self._states.get(key)
        if state is None:
            raise KafkaError(ErrorCode.INVALID_REQUEST, WRITE_UNINITIALIZED)
        if self._leader_epochs[key] > write.leader_epoch:
            raise KafkaError(ErrorCode.FENCED_LEADER_EPOCH)
        if self._state_epochs.get(key, 0) > write.state_epoch:
            raise KafkaError(ErrorCode.FENCED_STATE_EPOCH)
        self._check_exists(key)
        return CoordinatorResult(None, [self._state_record(key, state, write, state.leader_epoch)])

    def summary(self, key: SharePartitionKey) -> CoordinatorResult[StateSummary]:
        """Return start offset and counts; `NO_STATE` for a share partition without state.

        Raises:
            KafkaError: INVALID_REQUEST, UNKNOWN_TOPIC_OR_PARTITION.
        """
        _check_not_negative(key.partition, NEGATIVE_PARTITION)
        self._check_exists(key)
        state = self._states.get(key)
        if state is None:
            return CoordinatorResult(NO_STATE)
        summary = StateSummary(state.state_epoch, state.leader_epoch, state.start_offset, state.delivery_complete_count)
        return CoordinatorResult(summary)

    def delete(self, key: SharePartitionKey) -> CoordinatorResult[None]:
        """Delete the state of a share partition, if it has one.

        Raises:
            KafkaError: INVALID_REQUEST, UNKNOWN_TOPIC_OR_PARTITION.
        """
        _check_not_negative(key.partition, NEGATIVE_PARTITION)
        self._check_exists(key)
        records = [share_state_tombstone(key)] if key in self._states else []
        return CoordinatorResult(None, records)

    def delete_topics(self, topic_ids: Collection[bytes]) -> CoordinatorResult[None]:
        """Delete the states of deleted topics."""
        gone = [share_state_tombstone(key) for key in self._states if key.topic_id in topic_ids]
        return CoordinatorResult(None, gone, atomic=False)

    def snapshot_cold_partitions(self) -> CoordinatorResult[None]:
        """Write a snapshot of each state that had none for long; nothing if every state was last written for that reason."""
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
        """Return the first offset still needed, below which records may be deleted; None if none may be."""
        needed = min(self._snapshot_offsets.values(), default=self._last_snapshot_offset)
        return needed if needed > 0 else None

    def _check_exists(self, key: SharePartitionKey) -> None:
        count = self._partition_count(key.topic_id)
        if count is None or key.partition >= count:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)

    def _state_record(
        self, key: SharePartitionKey, current: ShareGroupOffset, write: StateWrite, leader_epoch: int
    ) -> CoordinatorRecord:
        """Return an update or, after enough of them, a snapshot. A start offset never decreases."""
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


def _check_not_negative(number: int, message: str) -> None:
    if number < 0:
        raise KafkaError(ErrorCode.INVALID_REQUEST, message)
