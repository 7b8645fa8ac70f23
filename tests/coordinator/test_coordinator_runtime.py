"""The runtime, with a shard that adds up numbers, and with groups."""

from __future__ import annotations

import gc
from pathlib import Path
from typing import Any

import pytest

from barnabas.coordinator.coordinator_runtime import SHARED_FROM
from barnabas.coordinator.result import CoordinatorResult
from barnabas.coordinator.shard_context import ContextState
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.records.compression import Compression
from barnabas.records.control import build_end_transaction_marker
from barnabas.records.record_batch import check_batch
from tests.coordinator.sums import Hosted, Sum, code, number
from tests.group.scripts_of import name_of, play, scripts_of


def test_write_appends_then_replays_then_answers() -> None:
    host = Hosted()
    host.elect()
    assert host.add(3, 4).result() == 7
    assert host.total().result() == 7
    assert [offset for offset, _ in host.shards[0].replayed] == [0, 1]
    assert len(host.log.batches[0]) == 1
    host.add(5)
    host.add(6, 7)
    assert [offset for offset, _ in host.shards[0].replayed] == [0, 1, 2, 3, 4]


def test_answers_wait_for_commits_in_order() -> None:
    host = Hosted()
    host.elect()
    host.log.hold_commits = True
    first, read, second = host.add(1), host.total(), host.add(2)
    assert not any(future.done() for future in (first, read, second))
    host.log.release()
    host.loop.run_ready()
    assert (first.result(), read.result(), second.result()) == (1, 1, 2)


def test_a_commit_waits_for_those_before_it() -> None:
    host = Hosted()
    host.elect()
    host.log.hold_commits = True
    first, second = host.add(1), host.add(2)
    host.log.release_last()
    host.loop.run_ready()
    assert not second.done()
    host.log.release()
    host.loop.run_ready()
    assert (first.result(), second.result()) == (1, 2)


def test_a_commit_in_time_does_not_time_out_later() -> None:
    host = Hosted()
    host.elect()
    host.log.hold_commits = True
    told: list[Any] = []
    host.add(1, on_append=told.append)
    host.log.release()
    host.loop.advance(10_000)
    assert told == [None]


def test_batches_are_compressed_as_configured() -> None:
    host = Hosted(compression=Compression.ZSTD)
    host.elect()
    host.add(1)
    assert check_batch(host.log.batches[0][0], 0).compression == Compression.ZSTD
    host.load_again()
    assert host.total().result() == 1


def test_refused_append_changes_nothing() -> None:
    host = Hosted()
    host.elect()
    host.log.refuse = ErrorCode.NOT_ENOUGH_REPLICAS
    told: list[Any] = []
    assert code(host.add(1, on_append=told.append)) is ErrorCode.NOT_ENOUGH_REPLICAS
    assert [error.code for error in told] == [ErrorCode.NOT_ENOUGH_REPLICAS]
    assert host.total().result() == 0


def test_lost_append_is_forgotten_by_loading_again() -> None:
    host = Hosted()
    host.elect(epoch=6)
    host.add(1)
    host.log.hold_commits = True
    lost, read = host.add(10), host.total()
    host.log.lose(0, ErrorCode.NOT_LEADER_OR_FOLLOWER)
    host.loop.run_ready()
    assert code(lost) is ErrorCode.NOT_COORDINATOR
    assert code(read) is ErrorCode.NOT_COORDINATOR
    assert host.shards[0].events == ["loaded", "unloaded"]
    assert host.total().result() == 1
    assert host.runtime.epoch(0) == 6


def test_a_record_that_cannot_be_replayed_is_read_again_from_the_log() -> None:
    host = Hosted()
    host.elect()
    host.add(1)

    def stumble(*_: object) -> None:
        raise AttributeError("a bug")

    host.shards[0].replay = stumble  # type: ignore[method-assign]
    assert code(host.add(2)) is ErrorCode.NOT_COORDINATOR
    assert code(host.total()) is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    host.loop.run_ready()
    assert host.total().result() == 3
    assert host.shards[0].events == ["loaded", "unloaded"]


def test_a_partition_that_cannot_be_replayed_at_all_fails_alone() -> None:
    host = Hosted()
    host.elect(0)
    host.add(1)
    host.runtime.on_resigned(0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Sum, "replay", lambda *_: 1 // 0)
        host.elect(0, epoch=1)
        host.elect(1)
    assert host.runtime.state(0) is ContextState.FAILED
    assert host.runtime.state(1) is ContextState.ACTIVE
    host.elect(0, epoch=2)
    assert host.total().result() == 1


def test_commit_that_takes_too_long() -> None:
    host = Hosted()
    host.elect()
    host.log.hold_commits = True
    late = host.add(1)
    host.loop.advance(5000)
    assert code(late) is ErrorCode.REQUEST_TIMED_OUT
    read = host.total()
    host.log.release()
    host.loop.run_ready()
    assert read.result() == 1, "the append itself came through"


def test_a_stalled_commit_times_out_each_client_after_its_own_wait_and_costs_no_state() -> None:
    host = Hosted()
    host.elect()
    host.add(1)
    host.log.hold_commits = True
    outcomes: list[Any] = []
    waiting = [host.add(10, on_append=outcomes.append)]
    for _ in range(20):
        host.loop.advance(1000)
        waiting += [host.total(), host.add(10)]
        assert [answer.done() for answer in waiting] == [n < len(waiting) - 10 for n in range(len(waiting))]
    assert {code(answer) for answer in waiting if answer.done()} == {ErrorCode.REQUEST_TIMED_OUT}
    assert outcomes == [], "the operation itself has no time limit"
    host.log.release()
    host.loop.run_ready()
    assert outcomes == [None]
    assert waiting[-2].result() == 201, "read before the last write"
    assert host.total().result() == 211
    assert host.shards[0].events == ["loaded"]


def test_an_operation_that_raises_writes_nothing() -> None:
    host = Hosted()
    host.elect()

    def refuse(shard: Sum) -> CoordinatorResult[None]:
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)

    assert code(host.runtime.schedule_write(0, refuse)) is ErrorCode.UNKNOWN_MEMBER_ID
    assert host.log.batches == {}


def test_an_error_that_rests_on_uncommitted_state_waits_like_an_answer() -> None:
    host = Hosted()
    host.elect()

    def refuse(shard: Sum) -> CoordinatorResult[None]:
        raise KafkaError(ErrorCode.FENCED_INSTANCE_ID)

    host.log.hold_commits = True
    host.add(1)
    refused = host.runtime.schedule_write(0, refuse)
    assert not refused.done()
    host.log.release()
    host.loop.run_ready()
    assert code(refused) is ErrorCode.FENCED_INSTANCE_ID
    host.log.hold_commits = True
    lost = host.add(1), host.runtime.schedule_write(0, refuse)
    host.runtime.schedule_write(0, refuse).cancel()
    host.log.lose(0, ErrorCode.NOT_LEADER_OR_FOLLOWER)
    host.loop.run_ready()
    assert [code(answer) for answer in lost] == [ErrorCode.NOT_COORDINATOR] * 2, "nothing that was lost fences anybody"


def test_a_bug_in_an_operation_is_not_an_answer() -> None:
    host = Hosted()
    host.elect()
    with pytest.raises(ZeroDivisionError):
        host.runtime.schedule_read(0, lambda shard: 1 // shard.total)


def test_state_moved_already_is_not_replayed() -> None:
    host = Hosted()
    host.elect()
    host.add(5, replay=False)
    assert host.total().result() == 0
    host.load_again()
    assert host.total().result() == 5


def test_states_and_epochs() -> None:
    host = Hosted()
    assert code(host.total()) is ErrorCode.NOT_COORDINATOR
    host.runtime.on_elected(0, 3)
    assert code(host.total()) is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    host.loop.run_ready()
    host.elect(epoch=2)
    host.elect(epoch=3)
    assert len(host.shards) == 1, "the same and older epochs change nothing"
    host.runtime.on_resigned(0, 2)
    assert host.runtime.state(0) is ContextState.ACTIVE
    host.runtime.on_resigned(0, 4)
    assert host.shards[0].events == ["loaded", "unloaded"]
    assert code(host.total()) is ErrorCode.NOT_COORDINATOR
    assert host.runtime.state(0) is None


class TestSameLeader:
    """The leader of a partition is elected again, in a higher epoch."""

    def test_its_shard_stays(self) -> None:
        host = Hosted()
        host.elect()
        host.log.hold_commits = True
        waiting = host.add(1)
        host.shards[0].timer.schedule("k", 100, lambda: CoordinatorResult(None, [number(10)]))
        host.elect(epoch=4)
        assert host.runtime.epoch(0) == 4
        assert not waiting.done()
        assert not host.total().done(), "it is active"
        host.loop.advance(100)
        host.log.release()
        host.loop.run_ready()
        assert waiting.result() == 1
        assert host.total().result() == 11
        assert host.shards[0].events == ["loaded"]
        host.runtime.on_resigned(0, 3)
        assert host.runtime.epoch(0) == 4, "a resignation of an older epoch is too late"

    def test_a_shard_that_is_loading_goes_on(self) -> None:
        host = Hosted()
        host.runtime.on_elected(0, 0)
        host.elect(epoch=1)
        assert host.runtime.active_partitions() == [0]
        assert (host.runtime.epoch(0), len(host.shards)) == (1, 1)


def test_operations_on_all_shards() -> None:
    host = Hosted()
    host.elect(2)
    host.elect(0)
    written = host.runtime.schedule_write_all(lambda shard: CoordinatorResult(None, [number(1)]))
    assert all(future.done() for future in written)
    assert sorted(host.log.batches) == [0, 2]
    host.runtime.on_elected(1, 0)
    outcomes = [future.exception() is None for future in host.runtime.schedule_read_all(lambda shard: shard.total)]
    assert outcomes == [True, False, True], "a shard that loads has no answer"


def test_reads_that_nobody_takes_are_no_errors() -> None:
    """A client that leaves while its groups are listed leaves most shards unread; those that load would fail."""
    host = Hosted()
    for partition in range(50):
        host.runtime.on_elected(partition, 0)
    reads = host.runtime.schedule_read_all(lambda shard: shard.total)
    assert code(next(reads)) is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    del reads
    gc.collect()  # The loop raises what it would report.


def test_timers_write_and_end_with_the_shard() -> None:
    host = Hosted()
    host.elect()
    host.shards[0].timer.schedule("k", 100, lambda: CoordinatorResult(None, [number(2)]))
    host.loop.advance(100)
    assert host.total().result() == 2
    host.shards[0].timer.schedule("k", 100, lambda: CoordinatorResult(None, [number(2)]))
    host.runtime.on_resigned(0)
    host.loop.advance(1000)
    assert len(host.log.batches[0]) == 1


def test_a_timer_whose_write_is_refused_tells_its_operation() -> None:
    host = Hosted()
    host.elect()
    told: list[Any] = []
    host.log.refuse = ErrorCode.KAFKA_STORAGE_ERROR
    host.shards[0].timer.schedule("k", 0, lambda: CoordinatorResult(None, [number(2)], on_append=told.append))
    host.shards[0].timer.schedule("l", 0, lambda: CoordinatorResult(None, [number(2)]))
    host.loop.advance(0)
    assert [error.code for error in told] == [ErrorCode.KAFKA_STORAGE_ERROR]
    assert host.total().result() == 0


def test_a_timer_is_in_the_log_if_its_write_is_refused_and_not_if_its_shard_moves(
    caplog: pytest.LogCaptureFixture,
) -> None:
    host = Hosted()
    host.elect()
    host.log.hold_commits = True
    host.shards[0].timer.schedule("moves", 0, lambda: CoordinatorResult(None, [number(2)]))
    host.loop.advance(0)
    host.runtime.on_resigned(0)
    assert caplog.text == ""
    host.elect(epoch=2)
    host.log.refuse = ErrorCode.KAFKA_STORAGE_ERROR
    host.shards[1].timer.schedule("refused", 0, lambda: CoordinatorResult(None, [number(2)]))
    host.loop.advance(0)
    assert "timer refused could not write" in caplog.text


def test_too_large() -> None:
    host = Hosted(max_batch_bytes=300)
    host.elect()
    assert code(host.add(*range(30))) is ErrorCode.RECORD_LIST_TOO_LARGE
    assert host.log.batches == {}
    assert host.add(*range(30), atomic=False).result() == sum(range(30))
    assert len(host.log.batches[0]) > 1
    assert all(len(batch) <= 300 for batch in host.log.batches[0])
    assert host.total().result() == sum(range(30))


def test_a_batch_may_be_exactly_as_large_as_the_limit() -> None:
    host = Hosted()
    host.elect()
    host.add(1, 2)
    size = len(host.log.batches[0][0])
    for limit, is_taken in ((size, True), (size - 1, False)):
        limited = Hosted(max_batch_bytes=limit)
        limited.elect()
        assert (limited.add(1, 2).exception() is None) is is_taken


def test_what_is_written_is_a_plain_batch() -> None:
    host = Hosted()
    host.elect()
    host.add(1)
    header = check_batch(host.log.batches[0][0], 0)
    assert (header.producer_id, header.is_transactional, header.max_timestamp) == (-1, False, host.loop.now_ms)


def test_close_gives_up_every_shard() -> None:
    host = Hosted()
    host.elect(0)
    host.elect(1)
    host.runtime.close()
    assert [shard.events[-1] for shard in host.shards] == ["unloaded", "unloaded"]
    assert host.runtime.active_partitions() == []


@pytest.mark.parametrize("path", scripts_of("coordinator_runtime"), ids=name_of)
def test_script(path: Path) -> None:
    play(path)


class TestTransactions:
    """Records inside a producer's transaction, and the marker that settles them."""

    def add(self, host: Hosted, value: int, guard: object = None) -> Any:
        return host.runtime.schedule_transactional_write(
            0, 7, 3, lambda shard: CoordinatorResult(value, [number(value)]), guard
        )

    def end(self, host: Hosted, *, committed: bool = True) -> Any:
        batch = build_end_transaction_marker(
            commit=committed, coordinator_epoch=0, producer_id=7, producer_epoch=4, timestamp=0
        )
        return host.runtime.complete_transaction(0, 7, batch=batch, committed=committed, transaction_version=2)

    def test_records_carry_their_producer(self) -> None:
        host = Hosted()
        host.elect()
        guard = object()
        assert self.add(host, 5, guard).result() == 5
        header = check_batch(host.log.batches[0][0], 0)
        assert (header.producer_id, header.producer_epoch, header.base_sequence) == (7, 3, -1)
        assert header.is_transactional
        assert host.shards[0].replayed == [(0, 7)]
        assert host.log.last_options == (guard, 0)

    def test_the_marker_settles_them_now_and_when_loaded_again(self) -> None:
        host = Hosted()
        host.elect()
        self.add(host, 5)
        assert self.end(host, committed=False).result() is None
        assert host.log.last_options == (None, 2)
        host.add(1)
        host.load_again()
        for shard in host.shards:
            assert "abort 7" in shard.events
            assert shard.replayed == [(0, 7), (2, -1)]

    def test_a_marker_that_commits(self) -> None:
        host = Hosted()
        host.elect()
        self.add(host, 5)
        assert self.end(host).result() is None
        host.load_again()
        for shard in host.shards:
            assert "commit 7" in shard.events

    def test_a_marker_waits_for_its_commit_and_for_those_before(self) -> None:
        host = Hosted()
        host.elect()
        host.log.hold_commits = True
        written, marked = self.add(host, 5), self.end(host)
        assert not marked.done()
        host.log.release()
        host.loop.run_ready()
        assert written.done()
        assert marked.result() is None

    def test_a_refused_marker_settles_nothing(self) -> None:
        host = Hosted()
        host.elect()
        host.log.refuse = ErrorCode.INVALID_PRODUCER_EPOCH
        assert code(self.end(host)) is ErrorCode.INVALID_PRODUCER_EPOCH
        assert host.shards[0].events == ["loaded"]

    def test_a_lost_marker_is_forgotten_by_loading_again(self) -> None:
        host = Hosted()
        host.elect()
        self.add(host, 5)
        host.log.hold_commits = True
        marked = self.end(host)
        host.log.lose(0, ErrorCode.NOT_LEADER_OR_FOLLOWER)
        host.loop.run_ready()
        assert code(marked) is ErrorCode.NOT_COORDINATOR
        assert host.shards[-1].events == ["loaded"]

    def test_without_a_shard(self) -> None:
        host = Hosted()
        assert code(self.end(host)) is ErrorCode.NOT_COORDINATOR
        assert code(self.add(host, 1)) is ErrorCode.NOT_COORDINATOR
        assert host.runtime.epoch(0) is None
        host.elect(0, 9)
        assert host.runtime.epoch(0) == 9


class TestSharedBatches:
    """A busy shard puts the operations of one turn into one batch."""

    def busy(self, **settings: Any) -> Hosted:
        """A shard whose next turn shares a batch; its total is the number of writes that made it busy."""
        host = Hosted(**settings)
        host.elect()
        make_busy(host)
        host.log.batches[0].clear()
        return host

    def test_a_client_that_is_alone_has_its_answer_in_the_same_turn(self) -> None:
        host = Hosted()
        host.elect()
        for _ in range(10):
            for _ in range(SHARED_FROM - 1):
                assert host.add(1).done()
            host.loop.run_ready()

    def test_the_writes_of_a_turn_share_a_batch(self) -> None:
        host = self.busy()
        first, second, read, third = host.add(1), host.add(2, 3), host.total(), host.add(4)
        assert not any(answer.done() for answer in (first, second, read, third))
        assert host.log.batches[0] == []
        host.loop.run_ready()
        assert (first.result(), second.result(), read.result(), third.result()) == (1, 5, SHARED_FROM + 6, 4)
        (batch,) = host.log.batches[0]
        assert check_batch(batch, 0).record_count == 4
        assert [offset for offset, _ in host.shards[0].replayed] == list(range(SHARED_FROM + 4))

    def test_a_quiet_turn_ends_the_sharing(self) -> None:
        host = self.busy()
        assert not host.add(1).done()
        host.loop.run_ready()
        assert host.add(1).done()

    def test_answers_wait_for_the_commit_of_the_batch(self) -> None:
        host = self.busy()
        host.log.hold_commits = True
        first, second = host.add(1), host.add(2)
        host.loop.run_ready()
        read = host.total()
        assert not any(answer.done() for answer in (first, second, read))
        host.log.release()
        host.loop.run_ready()
        assert (first.result(), second.result(), read.result()) == (1, 2, SHARED_FROM + 3)

    def test_answers_keep_the_order_of_the_log(self) -> None:
        host = self.busy()
        order: list[str] = []
        host.log.hold_commits = True
        alone = host.add(1, on_append=lambda _: None)
        shared = host.add(2)
        for name, answer in (("alone", alone), ("shared", shared)):
            answer.add_done_callback(lambda _, name=name: order.append(name))
        host.loop.run_ready()
        host.log.release()
        host.loop.run_ready()
        assert order == ["alone", "shared"]

    def test_a_full_batch_is_appended_before_the_turn_ends(self) -> None:
        host = self.busy(max_batch_bytes=300)
        answers = [host.add(value) for value in range(30)]
        assert len(host.log.batches[0]) > 1
        assert all(len(batch) <= 300 for batch in host.log.batches[0])
        host.loop.run_ready()
        assert [answer.result() for answer in answers] == list(range(30))
        assert [check_batch(batch, 0).base_offset for batch in host.log.batches[0]] == sorted(
            check_batch(batch, 0).base_offset for batch in host.log.batches[0]
        )

    def test_a_result_that_is_too_large_is_refused_alone(self) -> None:
        host = self.busy(max_batch_bytes=300)
        small, large = host.add(1), host.add(*range(30))
        assert code(large) is ErrorCode.RECORD_LIST_TOO_LARGE
        host.loop.run_ready()
        assert small.result() == 1

    @pytest.mark.parametrize("options", [{"replay": False}, {"on_append": lambda _: None}], ids=["replay", "on_append"])
    def test_what_can_be_undone_has_a_batch_of_its_own(self, options: dict[str, Any]) -> None:
        host = self.busy()
        shared, alone = host.add(1), host.add(2, **options)
        assert len(host.log.batches[0]) == 2, "the batch before it is appended first"
        host.loop.run_ready()
        assert (shared.result(), alone.result()) == (1, 2)

    def test_transactions_and_markers_have_batches_of_their_own(self) -> None:
        host, transactions = self.busy(), TestTransactions()
        answers = [host.add(1), transactions.add(host, 2), host.add(3), transactions.end(host)]
        assert len(host.log.batches[0]) == 4
        host.loop.run_ready()
        assert [answer.result() for answer in answers] == [1, 2, 3, None]
        assert [producer for _, producer in host.shards[0].replayed[SHARED_FROM:]] == [-1, 7, -1]

    def test_a_log_that_is_not_writable_refuses_before_any_state_moves(self) -> None:
        host = self.busy()
        host.log.refuse = ErrorCode.NOT_ENOUGH_REPLICAS
        for _ in range(SHARED_FROM):
            assert code(host.add(1)) is ErrorCode.NOT_ENOUGH_REPLICAS
        host.loop.run_ready()
        assert host.shards[0].events == ["loaded"]
        assert host.total().result() == SHARED_FROM

    def test_a_refused_batch_fails_its_operations_and_the_shard_is_read_again(self) -> None:
        host = Hosted()
        host.elect()
        make_busy(host)
        first, read, second = host.add(1), host.total(), host.add(2)
        host.log.refuse = ErrorCode.KAFKA_STORAGE_ERROR
        host.loop.run_ready()
        assert [code(answer) for answer in (first, read, second)] == [ErrorCode.KAFKA_STORAGE_ERROR] * 3
        assert host.shards[0].events == ["loaded", "unloaded"]
        assert host.total().result() == SHARED_FROM

    def test_after_a_refused_batch_the_shard_shares_no_more_until_the_next_election(self) -> None:
        host = Hosted()
        host.elect()
        make_busy(host)
        refused = host.add(1)
        host.log.refuse = ErrorCode.KAFKA_STORAGE_ERROR
        host.loop.run_ready()
        assert code(refused) is ErrorCode.KAFKA_STORAGE_ERROR
        host.log.refuse = None
        for _ in range(3):
            assert all(host.add(1).done() for _ in range(2 * SHARED_FROM))
            host.loop.run_ready()
        host.elect(epoch=1)
        make_busy(host)
        assert not host.add(1).done()

    def test_a_write_that_meets_a_refused_batch_fails_with_it(self) -> None:
        host = self.busy()
        outcomes: list[Any] = []
        shared = host.add(1)
        host.log.refuse = ErrorCode.KAFKA_STORAGE_ERROR
        alone = host.add(2, on_append=outcomes.append)
        assert code(shared) is code(alone) is ErrorCode.KAFKA_STORAGE_ERROR
        assert [error.code for error in outcomes] == [ErrorCode.KAFKA_STORAGE_ERROR]
        marked = TestTransactions().end(host)
        assert code(marked) is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS

    def test_a_marker_that_meets_a_refused_batch_fails_with_it(self) -> None:
        host = self.busy()
        shared = host.add(1)
        host.log.refuse = ErrorCode.KAFKA_STORAGE_ERROR
        marked = TestTransactions().end(host)
        assert code(shared) is code(marked) is ErrorCode.KAFKA_STORAGE_ERROR

    def test_a_bug_in_the_log_reaches_the_answers_of_every_shard(self) -> None:
        host = Hosted()
        host.elect(0)
        host.elect(1)
        for _ in range(2):
            answers = [
                host.runtime.schedule_write(partition, lambda shard: CoordinatorResult(None, [number(1)]))
                for partition in (0, 1)
                for _ in range(SHARED_FROM)
            ]
            host.loop.run_ready() if answers[0].done() else None
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(host.log, "append", lambda *_, **__: 1 // 0)
            host.loop.run_ready()
        assert {code(answer) for answer in answers} == {ErrorCode.UNKNOWN_SERVER_ERROR}

    def test_nothing_runs_between_an_operation_and_its_append(self) -> None:
        host = self.busy()
        host.add(1)
        host.runtime.schedule_write(
            0, lambda shard: CoordinatorResult(None, on_append=lambda _: host.add(100) and None)
        )
        seen = host.runtime.schedule_write(
            0, lambda shard: CoordinatorResult(shard.total, [number(2)], on_append=lambda _: None)
        )
        assert host.shards[0].total == SHARED_FROM + 3
        host.loop.run_ready()
        assert seen.result() == SHARED_FROM + 1
        assert host.shards[0].total == SHARED_FROM + 103

    def test_a_bug_while_a_shard_is_dropped_costs_no_other_shard_its_answers(self) -> None:
        host = Hosted()
        host.elect(0)
        host.elect(1)
        write = lambda shard: CoordinatorResult(None, [number(1)])  # noqa: E731
        for _ in range(SHARED_FROM):
            assert all(host.runtime.schedule_write(partition, write).done() for partition in (0, 1))
        host.loop.run_ready()
        host.shards[0].on_unloaded = lambda: 1 // 0  # type: ignore[assignment,return-value,method-assign]
        answers = [host.runtime.schedule_write(partition, write) for partition in (0, 1)]
        host.log.refuse = ErrorCode.KAFKA_STORAGE_ERROR
        host.loop.run_ready()
        assert [code(answer) for answer in answers] == [ErrorCode.KAFKA_STORAGE_ERROR] * 2

    def test_a_record_that_cannot_be_replayed_never_reaches_the_log(self) -> None:
        host = Hosted()
        host.elect()
        make_busy(host)
        first = host.add(1)
        host.shards[0].replay = lambda *_: 1 // 0  # type: ignore[assignment,return-value,method-assign]
        broken = host.add(2)
        assert code(first) is code(broken) is ErrorCode.NOT_COORDINATOR
        host.loop.run_ready()
        assert host.total().result() == SHARED_FROM

    def test_an_open_batch_ends_with_its_shard(self) -> None:
        host = self.busy()
        shared = host.add(1)
        host.runtime.on_resigned(0)
        assert code(shared) is ErrorCode.NOT_COORDINATOR
        host.loop.run_ready()
        assert host.log.batches[0] == []

    def test_a_client_times_out_behind_an_uncommitted_batch(self) -> None:
        host = self.busy()
        host.log.hold_commits = True
        shared = host.add(1)
        host.loop.advance(5000)
        assert code(shared) is ErrorCode.REQUEST_TIMED_OUT


def make_busy(host: Hosted) -> None:
    for _ in range(SHARED_FROM):
        assert host.add(1).done()
    host.loop.run_ready()
