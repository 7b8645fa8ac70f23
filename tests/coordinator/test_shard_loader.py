"""Reading shards from their logs."""

from __future__ import annotations

import pytest

from barnabas.coordinator.coordinator_log import RecordSerde
from barnabas.coordinator.shard_context import ContextState
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.records.builder import build_batch
from barnabas.records.control import build_end_transaction_marker
from barnabas.turns import ELEMENT, READ, TURN, new_budget
from tests.coordinator.sums import Hosted, Sum, code, number

IN_A_TURN = TURN // ELEMENT


def test_loading_lets_the_loop_turn() -> None:
    host = Hosted()
    host.elect()
    for _ in range(3):
        host.add(*([1] * IN_A_TURN))
    host.loop.run_ready()
    host.runtime.on_resigned(0)
    host.runtime.on_elected(0, 1)
    turns = 0
    new_budget()
    while host.runtime.state(0) is ContextState.LOADING:
        host.loop.run_one()
        turns += 1
    assert turns == 4
    assert host.total().result() == 3 * IN_A_TURN


def test_resignation_while_loading() -> None:
    host = Hosted()
    host.elect()
    host.add(*([1] * IN_A_TURN * 2))
    host.runtime.on_resigned(0)
    host.runtime.on_elected(0, 1)
    new_budget()
    host.loop.run_one_turn()
    assert 0 < len(host.shards[1].replayed) <= IN_A_TURN
    host.runtime.on_resigned(0, 1)
    host.elect(epoch=2)
    assert host.shards[1].events == [], "never loaded, so never unloaded"
    assert host.total().result() == 2 * IN_A_TURN


def test_many_shards_without_records_give_the_loop_turns() -> None:
    host = Hosted()
    for partition in range(300):
        host.runtime.on_elected(partition, 0)
    new_budget()
    loaded = []
    while len(host.runtime.active_partitions()) < 300:
        host.loop.run_one_turn()
        loaded.append(len(host.runtime.active_partitions()))
    assert loaded == [TURN // READ, 2 * (TURN // READ), 300]


def test_a_shard_that_fails_when_it_is_loaded_holds_up_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    host = Hosted()
    on_loaded = Sum.on_loaded

    def fails(shard: Sum) -> None:
        if shard is host.shards[0]:
            raise ValueError("a bug")
        on_loaded(shard)

    monkeypatch.setattr(Sum, "on_loaded", fails)
    host.runtime.on_elected(0, 0)
    host.runtime.on_elected(1, 0)
    host.elect(2)
    assert host.runtime.active_partitions() == [1, 2]
    assert code(host.total()) is ErrorCode.NOT_COORDINATOR
    host.elect(3)
    assert host.runtime.active_partitions() == [1, 2, 3]


def test_offsets_go_on_after_a_load() -> None:
    host = Hosted()
    host.elect()
    host.add(1, 2)
    host.load_again()
    host.add(3)
    assert [offset for offset, _ in host.shards[1].replayed] == [0, 1, 2]


def marker(producer_id: int, *, commit: bool) -> bytearray:
    return build_end_transaction_marker(
        commit=commit, coordinator_epoch=0, producer_id=producer_id, producer_epoch=0, timestamp=0
    )


def test_transactions_in_the_log() -> None:
    host = Hosted()
    serde = RecordSerde("group")
    fields = [(0, *serde.encode(number(7)), [])]
    host.log.append(0, build_batch(fields, producer_id=5, producer_epoch=0, base_sequence=0, transactional=True))
    host.log.append(0, marker(5, commit=True))
    host.log.append(0, marker(6, commit=False))
    # An idempotent producer's id is no transaction.
    host.log.append(0, build_batch(fields, producer_id=9, producer_epoch=0, base_sequence=0))
    host.elect()
    assert host.shards[0].replayed == [(0, 5), (3, -1)]
    assert host.shards[0].events == ["commit 5", "abort 6", "loaded"]


def test_records_of_unknown_types_are_passed_over() -> None:
    host = Hosted()
    host.log.append(0, build_batch([(0, b"\x7f\xff??", b"??", []), (0, None, b"no key", [])]))
    host.log.append(0, build_batch([(0, *RecordSerde("group").encode(number(1)), [])]))
    host.elect()
    assert host.total().result() == 1


def test_a_log_that_cannot_be_read() -> None:
    host = Hosted()
    host.log.append(0, build_batch([(0, b"\x00\x01garbage", b"\x00\x04garbage", [])]))
    host.elect()
    assert host.runtime.state(0) is ContextState.FAILED
    assert code(host.total()) is ErrorCode.NOT_COORDINATOR
    host.log.batches[0] = []
    host.elect(epoch=0)
    assert host.total().result() == 0, "a failed shard may be elected again"


class TestUncommittedRecords:
    """After an election the high watermark may be below the log end."""

    def elected(self) -> Hosted:
        """A shard whose log has a record below the high watermark and one above it."""
        host = Hosted()
        serde = RecordSerde("group")
        for value in (1, 2):
            host.log.append(0, build_batch([(0, *serde.encode(number(value)), [])])).cancel()
            host.log.hold_commits = True
        host.elect()
        return host

    def test_a_shard_answers_when_all_that_it_has_read_is_committed(self) -> None:
        host = self.elected()
        assert [offset for offset, _ in host.shards[0].replayed] == [0, 1]
        host.loop.advance(20_000)
        assert code(host.total()) is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        assert code(host.add(4)) is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        assert host.shards[0].events == []
        host.log.commit(0, 2)
        host.loop.run_ready()
        assert host.shards[0].events == ["loaded"]
        assert host.total().result() == 3
        assert len(host.shards) == 1

    def test_a_shard_whose_records_are_lost_never_answers(self) -> None:
        host = self.elected()
        host.log.lose(0, ErrorCode.NOT_LEADER_OR_FOLLOWER)
        host.loop.run_ready()
        assert host.runtime.state(0) is ContextState.FAILED
        assert code(host.total()) is ErrorCode.NOT_COORDINATOR
        assert host.shards[0].events == []
        host.elect(epoch=1)
        assert host.total().result() == 1

    def test_a_resignation_ends_the_wait(self) -> None:
        host = self.elected()
        host.runtime.on_resigned(0)
        host.log.commit(0, 2)
        host.loop.run_ready()
        assert host.shards[0].events == []
        host.elect(epoch=1)
        assert host.total().result() == 3

    def test_a_shard_that_waits_holds_up_no_other(self) -> None:
        host = self.elected()
        host.elect(1)
        assert host.runtime.active_partitions() == [1]

    def test_a_partition_that_is_gone_when_it_has_been_read(self) -> None:
        host = self.elected()
        host.runtime.on_resigned(0)

        def gone(partition: int) -> int:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)

        host.log.committed_offset = gone  # type: ignore[method-assign]
        host.elect(epoch=1)
        assert host.runtime.state(0) is ContextState.FAILED
