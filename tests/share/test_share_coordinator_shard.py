"""ShareCoordinatorShard: what each operation rejects, epochs, snapshots, and the offset below which records are redundant."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import pytest

from barnabas.coordinator.result import CoordinatorRecord, CoordinatorResult
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.state_batches import StateBatch
from barnabas.share.share_coordinator_shard import ShareCoordinatorShard, StateSummary, StateWrite
from barnabas.share.state_records import (
    SHARE_SNAPSHOT,
    SHARE_UPDATE,
    ShareGroupOffset,
    SharePartitionKey,
    share_update_record,
)

T = TypeVar("T")
TOPIC = bytes(15) + b"\1"
KEY = SharePartitionKey("g", TOPIC, 0)
OTHER = KEY._replace(partition=1)
COLD_MS = 1_000


class Host:
    """A shard whose records are replayed at once."""

    def __init__(self, updates_per_snapshot: int = 500) -> None:
        self.now_ms = 5_000
        self.partitions = {TOPIC: 2}
        self.shard = ShareCoordinatorShard(
            now_ms=lambda: self.now_ms,
            partition_count=self.partitions.get,
            updates_per_snapshot=updates_per_snapshot,
            cold_interval_ms=COLD_MS,
        )
        self.records: list[CoordinatorRecord] = []

    def apply(self, result: CoordinatorResult[T]) -> T:
        for record in result.records:
            self.replay(record)
        return result.response

    def replay(self, record: CoordinatorRecord) -> None:
        self.shard.replay(record, len(self.records), -1)
        self.records.append(record)

    def initialize(self, key: SharePartitionKey = KEY, state_epoch: int = 1, start_offset: int = 0) -> None:
        self.apply(self.shard.initialize(key, state_epoch, start_offset))

    def write(self, key: SharePartitionKey = KEY, **fields: Any) -> None:
        self.apply(self.shard.write(key, write(**fields)))

    def summary(self, key: SharePartitionKey = KEY) -> StateSummary:
        return self.apply(self.shard.summary(key))


def write(
    state_epoch: int = 1, leader_epoch: int = 0, start_offset: int = 0, complete: int = 0, *batches: StateBatch
) -> StateWrite:
    return StateWrite(state_epoch, leader_epoch, start_offset, complete, batches)


def rejection(call: Callable[[], object]) -> KafkaError:
    with pytest.raises(KafkaError) as raised:
        call()
    return raised.value


@pytest.mark.parametrize(
    ("words", "call"),
    [
        ("partition id", lambda shard: shard.initialize(KEY._replace(partition=-1), 1, 0)),
        ("partition id", lambda shard: shard.read(KEY._replace(partition=-1), 0)),
        ("partition id", lambda shard: shard.write(KEY._replace(partition=-1), write())),
        ("partition id", lambda shard: shard.summary(KEY._replace(partition=-1))),
        ("partition id", lambda shard: shard.delete(KEY._replace(partition=-1))),
        ("state epoch", lambda shard: shard.initialize(KEY, -1, 0)),
        ("state epoch", lambda shard: shard.write(KEY, write(state_epoch=-1))),
        ("leader epoch", lambda shard: shard.read(KEY, -1)),
        ("leader epoch", lambda shard: shard.write(KEY, write(leader_epoch=-1))),
        ("Read operation on uninitialized", lambda shard: shard.read(OTHER, 0)),
        ("Write operation on uninitialized", lambda shard: shard.write(OTHER, write())),
    ],
)
def test_an_invalid_request_is_rejected_with_its_reason(
    words: str, call: Callable[[ShareCoordinatorShard], object]
) -> None:
    host = Host()
    host.initialize()
    error = rejection(lambda: call(host.shard))
    assert error.code is ErrorCode.INVALID_REQUEST
    assert words in error.message


@pytest.mark.parametrize("count", [None, 0])
@pytest.mark.parametrize(
    "call",
    [
        lambda shard: shard.initialize(KEY, 1, 0),
        lambda shard: shard.read(KEY, 0),
        lambda shard: shard.write(KEY, write()),
        lambda shard: shard.summary(KEY),
        lambda shard: shard.delete(KEY),
    ],
)
def test_a_partition_that_no_longer_exists_is_rejected(
    count: int | None, call: Callable[[ShareCoordinatorShard], object]
) -> None:
    host = Host()
    host.initialize()
    if count is None:
        del host.partitions[TOPIC]
    else:
        host.partitions[TOPIC] = count
    assert rejection(lambda: call(host.shard)).code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_the_last_partition_exists_and_the_next_does_not() -> None:
    host = Host()
    host.initialize(OTHER)
    assert rejection(lambda: host.initialize(KEY._replace(partition=2))).code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_an_older_epoch_is_fenced_and_the_same_or_a_newer_one_is_not() -> None:
    host = Host()
    host.initialize(state_epoch=3)
    host.initialize(state_epoch=3)
    assert rejection(lambda: host.initialize(state_epoch=2)).code is ErrorCode.FENCED_STATE_EPOCH
    host.apply(host.shard.read(KEY, 5))
    host.write(state_epoch=3, leader_epoch=5)
    host.write(state_epoch=4, leader_epoch=6)
    assert rejection(lambda: host.write(state_epoch=3, leader_epoch=4)).code is ErrorCode.FENCED_LEADER_EPOCH
    assert rejection(lambda: host.apply(host.shard.read(KEY, 4))).code is ErrorCode.FENCED_LEADER_EPOCH
    assert rejection(lambda: host.write(state_epoch=2, leader_epoch=5)).code is ErrorCode.FENCED_STATE_EPOCH


def test_an_initialization_does_not_readmit_an_older_leader() -> None:
    host = Host()
    host.initialize()
    host.apply(host.shard.read(KEY, 5))
    host.initialize(state_epoch=2)
    assert host.summary().leader_epoch == 0
    assert rejection(lambda: host.apply(host.shard.read(KEY, 4))).code is ErrorCode.FENCED_LEADER_EPOCH


def test_a_read_writes_only_a_new_leader_epoch() -> None:
    host = Host()
    host.initialize(start_offset=7)
    before = len(host.records)
    host.apply(host.shard.read(KEY, 0))
    assert len(host.records) == before
    state = host.apply(host.shard.read(KEY, 2))
    assert (state.start_offset, len(host.records)) == (7, before + 1)
    host.apply(host.shard.read(KEY, 2))
    assert len(host.records) == before + 1
    assert host.summary() == StateSummary(1, 2, 7, 0)


@pytest.mark.parametrize("state_epoch", [1, 4])
def test_a_late_initialization_leaves_what_is_delivered(state_epoch: int) -> None:
    """The group asks again when an answer is late, and both requests may arrive: the second one after the first deliveries."""
    host = Host()
    host.initialize(start_offset=-1)
    host.write(start_offset=7, complete=2)
    before = host.summary()
    host.initialize(state_epoch=state_epoch, start_offset=-1)
    assert host.summary() == before
    host.write(start_offset=8, complete=1)
    # An operator's new start offset counts.
    host.initialize(state_epoch=state_epoch, start_offset=3)
    assert host.summary().start_offset == 3


def test_a_state_without_a_start_offset_has_no_count() -> None:
    host = Host()
    assert host.summary() == StateSummary(0, 0, -1, -1)
    host.initialize(start_offset=-1)
    assert host.records[0].value.snapshot_epoch == 0
    assert host.summary() == StateSummary(1, 0, -1, -1)
    host.initialize(start_offset=0)
    assert host.summary() == StateSummary(1, 0, 0, 0)


def test_a_write_without_a_start_offset_leaves_start_and_count() -> None:
    host = Host()
    host.initialize(start_offset=7)
    host.write(start_offset=7, complete=3)
    host.write(start_offset=-1, complete=9)
    assert host.summary() == StateSummary(1, 0, 7, 3)


def test_a_count_grows_at_one_start_offset_and_is_new_at_the_next() -> None:
    host = Host()
    host.initialize()
    host.write(start_offset=4, complete=3)
    host.write(start_offset=4, complete=2)
    assert host.summary().delivery_complete_count == 3
    host.write(start_offset=4, complete=5)
    assert host.summary().delivery_complete_count == 5
    host.write(start_offset=5, complete=1)
    assert host.summary() == StateSummary(1, 0, 5, 1)


def test_an_update_without_a_snapshot_is_a_state() -> None:
    host = Host()
    update = ShareGroupOffset(2, 0, 4, 7, 1, (StateBatch(8, 9, 2, 1),))
    host.replay(share_update_record(KEY, update))
    assert host.apply(host.shard.read(KEY, 4)) == update


def test_an_update_with_minus_one_leaves_start_offset_and_leader_epoch() -> None:
    host = Host()
    host.initialize(start_offset=3)
    host.apply(host.shard.read(KEY, 2))
    host.replay(share_update_record(KEY, ShareGroupOffset(0, 0, -1, -1, 5, (StateBatch(2, 4, 2, 1),))))
    assert host.summary() == StateSummary(1, 2, 3, 5)
    assert host.apply(host.shard.read(KEY, 2)).state_batches == (StateBatch(3, 4, 2, 1),)


def kinds(host: Host) -> list[int]:
    return [record.type_id for record in host.records]


def test_an_initialization_does_not_put_off_the_snapshot() -> None:
    host = Host(updates_per_snapshot=2)
    host.initialize()
    host.write()
    host.initialize(state_epoch=2)
    host.write(state_epoch=2)
    host.write(state_epoch=2)
    host.write(state_epoch=2)
    snapshot, update = SHARE_SNAPSHOT, SHARE_UPDATE
    assert kinds(host) == [snapshot, update, snapshot, update, snapshot, update]


def test_a_snapshot_carries_on_the_epochs_and_the_joined_batches() -> None:
    host = Host(updates_per_snapshot=1)
    host.initialize(state_epoch=3, start_offset=1)
    host.apply(host.shard.read(KEY, 2))
    host.now_ms = 6_000
    host.apply(host.shard.write(KEY, StateWrite(3, 2, 1, 4, (StateBatch(0, 4, 2, 1),))))
    value = host.records[-1].value
    assert (value.snapshot_epoch, value.state_epoch, value.leader_epoch, value.start_offset) == (1, 3, 2, 1)
    assert (value.create_timestamp, value.write_timestamp, value.delivery_complete_count) == (6_000, 6_000, 4)
    assert host.apply(host.shard.read(KEY, 2)).state_batches == (StateBatch(1, 4, 2, 1),)


def test_the_records_before_the_oldest_snapshot_are_redundant() -> None:
    host = Host(updates_per_snapshot=1)
    assert host.shard.redundant_offset() is None
    host.initialize()  # 0
    assert host.shard.redundant_offset() is None
    host.initialize(OTHER)  # 1
    assert host.shard.redundant_offset() is None
    host.write()  # 2
    host.write()  # 3, a snapshot
    assert host.shard.redundant_offset() == 1
    host.write(OTHER)  # 4
    host.write(OTHER)  # 5, a snapshot
    assert host.shard.redundant_offset() == 3


def test_the_records_before_the_last_tombstone_are_redundant_when_no_state_is_left() -> None:
    host = Host()
    host.initialize()
    host.initialize(OTHER)
    host.apply(host.shard.delete(KEY))  # 2
    assert host.shard.redundant_offset() == 1
    host.apply(host.shard.delete(OTHER))  # 3
    assert host.shard.redundant_offset() == 3


def test_a_state_that_is_deleted_leaves_nothing_behind() -> None:
    host = Host(updates_per_snapshot=1)
    host.initialize(state_epoch=5)
    host.apply(host.shard.read(KEY, 5))
    host.apply(host.shard.delete(KEY))
    assert host.apply(host.shard.delete(KEY)) is None
    assert len(host.records) == 3, "the second delete has nothing to write"
    host.initialize(state_epoch=1)
    host.write()
    assert host.records[-1].type_id == SHARE_UPDATE, "its updates are counted from the beginning"
    assert host.records[-2].value.snapshot_epoch == 0


def test_deleted_topics_take_only_their_own_states_along() -> None:
    host = Host()
    host.partitions[bytes(16)] = 1
    other = KEY._replace(topic_id=bytes(16))
    host.initialize()
    host.initialize(OTHER)
    host.initialize(other)
    result = host.shard.delete_topics([TOPIC])
    assert not result.atomic
    host.apply(result)
    assert host.summary() == host.summary(OTHER) == StateSummary(0, 0, -1, -1)
    assert host.summary(other).start_offset == 0


def test_cold_states_are_written_again_unless_all_are_cold_already() -> None:
    host = Host()
    host.initialize()
    host.now_ms += 1
    host.initialize(OTHER)
    host.now_ms += COLD_MS - 1
    result = host.shard.snapshot_cold_partitions()
    assert not result.atomic
    host.apply(result)
    assert [record.key.partition for record in host.records[2:]] == [0], "the other has a millisecond left"
    assert host.records[-1].value.snapshot_epoch == 1
    assert host.records[-1].value.write_timestamp == host.now_ms
    host.now_ms += COLD_MS
    host.apply(host.shard.snapshot_cold_partitions())
    assert sorted(record.key.partition for record in host.records[3:]) == [0, 1]
    host.now_ms += COLD_MS
    host.apply(host.shard.snapshot_cold_partitions())
    assert len(host.records) == 5


def test_an_update_without_a_value_changes_nothing() -> None:
    host = Host()
    host.initialize(start_offset=3)
    host.replay(host.records[0]._replace(type_id=SHARE_UPDATE, value=None))
    assert host.summary() == StateSummary(1, 0, 3, 0)
