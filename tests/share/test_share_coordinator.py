"""The share coordinator: states initialized, read, written, fenced, deleted; after a restart; and a topic that stays short."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any

import pytest

from barnabas.coordinator.coordinator_log import RecordSerde
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.partition_for import share_coordinator_key
from barnabas.protocol.state_batches import StateBatch
from barnabas.records.record import iter_records
from barnabas.share.share_coordinator import ShareCoordinator, ShareCoordinatorConfig
from barnabas.share.share_coordinator_shard import ShareCoordinatorShard, StateSummary, StateWrite
from barnabas.share.state_records import SHARE_SNAPSHOT, SHARE_UPDATE, ShareGroupOffset, SharePartitionKey
from barnabas.steps import start
from tests.coordinator.internal_topic import InternalTopic
from tests.coordinator.virtual_loop import VirtualLoop

TOPIC = bytes(15) + b"\1"
KEY = SharePartitionKey("g", TOPIC, 0)
PARTITIONS = {TOPIC: 2}


class Host:
    """One coordinator on a topic of one partition."""

    def __init__(self, **config: int) -> None:
        self.loop = VirtualLoop()
        self.log = InternalTopic(self.loop)
        self.updates_per_snapshot = config.pop("updates_per_snapshot", 500)
        self.config = ShareCoordinatorConfig(**config)
        self.deleted: list[tuple[int, int]] = []
        self.epoch = 0
        self.fail_over()

    def fail_over(self) -> None:
        self.epoch += 1
        self.coordinator = ShareCoordinator(
            self.config,
            self.log,
            loop=self.loop,
            now_ms=lambda: self.loop.now_ms,
            partition_count=lambda: 1,
            new_shard=self.new_shard,
            delete_records=lambda partition, offset: self.deleted.append((partition, offset)),
        )
        self.coordinator.on_elected(0, self.epoch)
        self.loop.run_ready()

    def new_shard(self) -> ShareCoordinatorShard:
        return ShareCoordinatorShard(
            now_ms=lambda: self.loop.now_ms,
            partition_count=PARTITIONS.get,
            updates_per_snapshot=self.updates_per_snapshot,
            cold_interval_ms=self.config.cold_partition_snapshot_interval_ms,
        )

    def records(self) -> list[Any]:
        serde = RecordSerde("share")
        return [
            serde.decode(record.key or b"", record.value)
            for batch in self.log.batches.get(0, [])
            for record in iter_records(batch)
        ]

    def begin(self, state_epoch: int = 1, start_offset: int = -1, key: SharePartitionKey = KEY) -> ErrorCode:
        return self.code(self.coordinator.initialize(key, state_epoch, start_offset))

    def write(
        self, *batches: tuple[int, int, int, int], state: int = 1, leader: int = 0, start: int = 0, complete: int = 0
    ) -> ErrorCode:
        write = StateWrite(state, leader, start, complete, tuple(StateBatch(*batch) for batch in batches))
        return self.code(self.coordinator.write(KEY, write))

    def read(self, leader: int = 0) -> ShareGroupOffset:
        return start(self.coordinator.read(KEY, leader), self.loop).result()

    def summary(self) -> StateSummary:
        return start(self.coordinator.summary(KEY), self.loop).result()

    def code(self, call: Coroutine[Any, Any, object]) -> ErrorCode:
        error = start(call, self.loop).exception()
        assert error is None or isinstance(error, KafkaError)
        return ErrorCode.NONE if error is None else error.code

    def read_code(self, leader: int = 0) -> ErrorCode:
        return self.code(self.coordinator.read(KEY, leader))


def test_the_coordinator_key_is_kafkas() -> None:
    assert share_coordinator_key("g", TOPIC, 3) == "g:AAAAAAAAAAAAAAAAAAAAAQ:3"


def test_an_initialized_state_is_read() -> None:
    host = Host()
    assert host.begin() is ErrorCode.NONE
    state = host.read()
    assert (state.start_offset, state.state_epoch, state.state_batches) == (-1, 1, ())
    assert host.summary() == StateSummary(1, 0, -1, -1)


def test_writes_add_up_and_survive_a_failover() -> None:
    host = Host()
    host.begin()
    assert host.write((0, 9, 2, 1), start=0, complete=10) is ErrorCode.NONE
    assert host.write((10, 19, 0, 1), start=10, complete=0) is ErrorCode.NONE
    before = host.read()
    assert before.state_batches == (StateBatch(10, 19, 0, 1),)
    assert host.summary() == StateSummary(1, 0, 10, 0)
    host.fail_over()
    assert host.read() == before


def test_a_start_offset_never_decreases() -> None:
    host = Host()
    host.begin()
    host.write(start=10, complete=3)
    host.write(start=5, complete=9)
    assert host.summary() == StateSummary(1, 0, 10, 3)
    host.write(start=10, complete=1)
    assert host.summary().delivery_complete_count == 3, "nor does a count at the same start"


def test_a_new_leader_fences_the_old_one() -> None:
    host = Host()
    host.begin()
    assert host.read_code(leader=5) is ErrorCode.NONE
    assert host.summary().leader_epoch == 5
    assert host.write(leader=4) is ErrorCode.FENCED_LEADER_EPOCH
    assert host.read_code(leader=4) is ErrorCode.FENCED_LEADER_EPOCH
    host.fail_over()
    assert host.write(leader=4) is ErrorCode.FENCED_LEADER_EPOCH


def test_a_new_initialization_forgets_the_state_and_fences_earlier_readers() -> None:
    host = Host()
    host.begin(1)
    host.write((0, 9, 2, 1), complete=10)
    assert host.begin(3, start_offset=7) is ErrorCode.NONE
    assert host.summary() == StateSummary(3, 0, 7, 0)
    assert host.write(state=1) is ErrorCode.FENCED_STATE_EPOCH
    assert host.begin(2) is ErrorCode.FENCED_STATE_EPOCH
    assert host.read().snapshot_epoch == 1


@pytest.mark.parametrize(
    ("error", "ask"),
    [
        (ErrorCode.INVALID_REQUEST, lambda h: h.read_code()),
        (ErrorCode.INVALID_REQUEST, lambda h: h.write()),
        (ErrorCode.INVALID_REQUEST, lambda h: h.read_code(leader=-1)),
        (ErrorCode.INVALID_REQUEST, lambda h: h.write(leader=-1)),
        (ErrorCode.INVALID_REQUEST, lambda h: h.write(state=-1)),
        (ErrorCode.INVALID_REQUEST, lambda h: h.begin(-1)),
        (ErrorCode.INVALID_REQUEST, lambda h: h.begin(key=KEY._replace(partition=-1))),
        (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, lambda h: h.begin(key=KEY._replace(partition=2))),
        (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, lambda h: h.begin(key=KEY._replace(topic_id=bytes(16)))),
        (
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            lambda h: h.code(h.coordinator.summary(KEY._replace(partition=9))),
        ),
        (ErrorCode.NONE, lambda h: h.code(h.coordinator.delete(KEY))),
    ],
)
def test_requests_that_are_rejected_without_a_state(error: ErrorCode, ask: Any) -> None:
    host = Host()
    assert ask(host) is error
    assert host.records() == []


def test_a_deleted_state_is_gone_after_a_failover_too() -> None:
    host = Host()
    host.begin(5)
    assert host.code(host.coordinator.delete(KEY)) is ErrorCode.NONE
    for _ in range(2):
        assert host.summary() == StateSummary(0, 0, -1, -1)
        assert host.read_code() is ErrorCode.INVALID_REQUEST
        host.fail_over()
    assert host.begin(1) is ErrorCode.NONE, "its epochs are forgotten too"


def test_the_states_of_deleted_topics_are_deleted() -> None:
    host = Host()
    host.begin()
    host.coordinator.on_topics_deleted([TOPIC])
    assert host.records()[-1].value is None


def test_a_snapshot_follows_after_the_configured_number_of_updates() -> None:
    host = Host(updates_per_snapshot=3)
    host.begin()
    for offset in range(8):
        host.write((offset, offset, 2, 1))
    kinds = [record.type_id for record in host.records()]
    updates = [SHARE_UPDATE] * 3
    assert kinds == [SHARE_SNAPSHOT, *updates, SHARE_SNAPSHOT, *updates, SHARE_SNAPSHOT]
    assert [record.value.snapshot_epoch for record in host.records()] == [0, 0, 0, 0, 1, 1, 1, 1, 2]
    state = host.read()
    assert state.state_batches == (StateBatch(0, 7, 2, 1),)
    host.fail_over()
    assert host.read() == state
    host.write((8, 8, 2, 1))
    assert host.records()[-1].type_id == SHARE_UPDATE, "the count is known after a restart too"


def test_redundant_records_are_deleted_once() -> None:
    host = Host(updates_per_snapshot=2, state_topic_prune_interval_ms=1_000)
    host.begin()
    for _ in range(3):
        host.write()
    assert host.records()[-1].type_id == SHARE_SNAPSHOT
    host.loop.advance(1_000)
    assert host.deleted == [(0, 3)]
    host.loop.advance(1_000)
    assert host.deleted == [(0, 3)], "nothing new"


def test_a_cold_state_is_written_again() -> None:
    host = Host(
        updates_per_snapshot=2,
        state_topic_prune_interval_ms=10_000_000,
        cold_partition_snapshot_interval_ms=60_000,
    )
    cold = KEY._replace(partition=1)
    host.begin(key=cold)
    host.begin()
    host.loop.advance(60_000)
    written = host.records()[2:]
    assert sorted(record.key.partition for record in written) == [0, 1]
    assert all(record.value.snapshot_epoch == 1 for record in written)
    assert all(record.value.write_timestamp > record.value.create_timestamp for record in written)
    host.loop.advance(60_000)
    assert len(host.records()) == 4, "when all is quiet nothing is written"


def test_a_crash_after_any_record_keeps_the_state_that_was_answered() -> None:
    """Every prefix of the log is what some crash leaves: replayed, it gives the state that had been answered last."""
    host = Host(updates_per_snapshot=3)
    host.begin()
    known = [host.read()]
    for step in range(12):
        host.write((step * 2, step * 2, 2, 1), (step * 2 + 1, step * 2 + 1, 0, 1), start=step, complete=1)
        known.append(host.read())
    batches = list(host.log.batches[0])
    assert len(batches) == len(known)
    for length, expected in enumerate(known, start=1):
        host.log.batches[0] = batches[:length]
        host.fail_over()
        assert host.read() == expected


def test_a_coordinator_without_the_partition_returns_not_coordinator() -> None:
    host = Host()
    host.coordinator.on_resigned(0)
    assert host.begin() is ErrorCode.NOT_COORDINATOR
    idle = ShareCoordinator(
        ShareCoordinatorConfig(),
        host.log,
        loop=host.loop,
        now_ms=lambda: 0,
        partition_count=lambda: 1,
        new_shard=host.new_shard,
        delete_records=lambda partition, offset: None,
    )
    assert host.code(idle.read(KEY, 0)) is ErrorCode.NOT_COORDINATOR


@pytest.mark.parametrize(
    ("refusal", "returned"),
    [
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NOT_COORDINATOR),
        (ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.COORDINATOR_NOT_AVAILABLE),
    ],
)
def test_a_log_that_rejects_an_append_changes_nothing(refusal: ErrorCode, returned: ErrorCode) -> None:
    host = Host()
    host.log.refuse = refusal
    assert host.begin() is returned
    host.log.refuse = None
    assert host.read_code() is ErrorCode.INVALID_REQUEST, "nothing has changed"
