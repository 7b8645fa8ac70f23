"""The records of `__share_group_state`: a share partition's delivery state, complete or as an update.

    type 0  ShareSnapshotKey(group, topic id, partition) -> ShareSnapshotValue   the complete state; a tombstone ends it
    type 1  ShareUpdateKey(group, topic id, partition)   -> ShareUpdateValue     a change since the snapshot of that epoch

An update with start offset -1 leaves the start where it is. The topic is not compacted: a snapshot makes everything before it
redundant, and the coordinator deletes records from the front (`share_coordinator`).

Sources: KIP-932; Kafka classes `ShareCoordinatorRecordHelpers`, `ShareGroupOffset`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from barnabas.coordinator.result import CoordinatorRecord
from barnabas.protocol.messages import (
    ShareSnapshotKey,
    ShareSnapshotValue,
    ShareUpdateKey,
    ShareUpdateValue,
    WriteShareGroupStateRequest,
)
from barnabas.protocol.state_batches import StateBatch

SHARE_SNAPSHOT = 0
SHARE_UPDATE = 1

UNINITIALIZED_START_OFFSET = -1
UNINITIALIZED_DELIVERY_COMPLETE_COUNT = -1


class SharePartitionKey(NamedTuple):
    """A share group's view of one partition."""

    group_id: str
    topic_id: bytes
    partition: int


@dataclass(frozen=True, slots=True)
class ShareGroupOffset:
    """A share partition's delivery state.

    Attributes:
        snapshot_epoch: counts the snapshots.
        state_epoch: grows with each initialization; writes with an older one are rejected.
        leader_epoch: the epoch of the partition's leader that read the state last.
        start_offset: -1 until the leader has decided where the group starts.
        delivery_complete_count: finished records at or above the start offset; -1 if unknown.
        create_timestamp, write_timestamp: of the last snapshot; they differ if it was written because there was no change for long.
    """

    snapshot_epoch: int
    state_epoch: int
    leader_epoch: int
    start_offset: int
    delivery_complete_count: int
    state_batches: tuple[StateBatch, ...] = ()
    create_timestamp: int = 0
    write_timestamp: int = 0

    @classmethod
    def from_snapshot(cls, value: ShareSnapshotValue) -> ShareGroupOffset:
        return cls(
            value.snapshot_epoch,
            value.state_epoch,
            value.leader_epoch,
            value.start_offset,
            value.delivery_complete_count,
            state_batches(value.state_batches),
            value.create_timestamp,
            value.write_timestamp,
        )

    @classmethod
    def from_update(cls, value: ShareUpdateValue) -> ShareGroupOffset:
        """Return the state of an update without a snapshot."""
        return cls(
            value.snapshot_epoch,
            0,
            value.leader_epoch,
            value.start_offset,
            value.delivery_complete_count,
            state_batches(value.state_batches),
        )


def state_batches(
    batches: Iterable[
        ShareSnapshotValue.StateBatch | ShareUpdateValue.StateBatch | WriteShareGroupStateRequest.StateBatch
    ],
) -> tuple[StateBatch, ...]:
    """Return the batches of a message."""
    return tuple(StateBatch(b.first_offset, b.last_offset, b.delivery_state, b.delivery_count) for b in batches)


def share_snapshot_record(key: SharePartitionKey, state: ShareGroupOffset) -> CoordinatorRecord:
    """Return the record of a complete state."""
    value = ShareSnapshotValue(
        snapshot_epoch=state.snapshot_epoch,
        state_epoch=state.state_epoch,
        leader_epoch=state.leader_epoch,
        start_offset=state.start_offset,
        delivery_complete_count=state.delivery_complete_count,
        create_timestamp=state.create_timestamp,
        write_timestamp=state.write_timestamp,
        state_batches=[ShareSnapshotValue.StateBatch(**batch._asdict()) for batch in state.state_batches],
    )
    return CoordinatorRecord(SHARE_SNAPSHOT, _snapshot_key(key), value)


def share_update_record(key: SharePartitionKey, state: ShareGroupOffset) -> CoordinatorRecord:
    """Return the record of a change: the fields of the state that `ShareUpdateValue` has."""
    value = ShareUpdateValue(
        snapshot_epoch=state.snapshot_epoch,
        leader_epoch=state.leader_epoch,
        start_offset=state.start_offset,
        delivery_complete_count=state.delivery_complete_count,
        state_batches=[ShareUpdateValue.StateBatch(**batch._asdict()) for batch in state.state_batches],
    )
    return CoordinatorRecord(
        SHARE_UPDATE, ShareUpdateKey(group_id=key.group_id, topic_id=key.topic_id, partition=key.partition), value
    )


def share_state_tombstone(key: SharePartitionKey) -> CoordinatorRecord:
    """Return the record that deletes a share partition's state."""
    return CoordinatorRecord(SHARE_SNAPSHOT, _snapshot_key(key), None)


def _snapshot_key(key: SharePartitionKey) -> ShareSnapshotKey:
    return ShareSnapshotKey(group_id=key.group_id, topic_id=key.topic_id, partition=key.partition)
