"""One partition's transactional ids: what each request may do in each state, and what its records restore."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from barnabas.coordinator.result import CoordinatorResult
from barnabas.coordinator.timer import CoordinatorTimer
from barnabas.log.producer_state import MAX_EPOCH
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.transaction.config import TransactionCoordinatorConfig
from barnabas.transaction.transaction_metadata import TransactionMetadata
from barnabas.transaction.transaction_shard import (
    Ended,
    EndTxn,
    Initialized,
    InitProducerId,
    TransactionCoordinatorShard,
)
from barnabas.transaction.transaction_state import TransactionState
from tests.coordinator.virtual_loop import VirtualLoop

ID = 100
T0, T1 = ("t", 0), ("t", 1)
LAST_GIVEN = MAX_EPOCH - 1


class Subject:
    """A shard whose records are replayed at once, as the runtime does after the append."""

    def __init__(self, *, level: int = 2, restored: Subject | None = None) -> None:
        self.loop = VirtualLoop()
        self.now_ms = 1_000_000
        self.level = level
        self.prepared: list[TransactionMetadata] = []
        self.timed_out: list[TransactionMetadata] = []
        self.log: list[Any] = []
        self.shard = TransactionCoordinatorShard(
            3,
            CoordinatorTimer(self.loop, lambda key, operation: self.run(lambda: operation())),
            config=TransactionCoordinatorConfig(transactional_id_expiration_ms=50_000, remove_expired_interval_ms=1000),
            now_ms=lambda: self.now_ms,
            transaction_version=lambda: self.level,
            on_prepared=self._on_prepared,
            on_timed_out=self.timed_out.append,
            on_dropped=lambda partition: None,
        )
        for record in restored.log if restored is not None else ():
            self.shard.replay(record, 0, -1)

    def _on_prepared(self, partition: int, metadata: TransactionMetadata) -> None:
        assert partition == 3
        self.prepared.append(metadata)

    def run(self, operation: Callable[[], CoordinatorResult[Any]]) -> Any:
        result = operation()
        for record in result.records:
            self.shard.replay(record, len(self.log), -1)
            self.log.append(record)
        return result.response

    def init(self, fresh: int = ID, timeout_ms: int = 60_000, **fields: Any) -> Any:
        return self.run(lambda: self.shard.init_producer_id(InitProducerId("tx", timeout_ms, **fields), fresh))

    def add(self, epoch: int, *partitions: tuple[str, int], producer_id: int = ID, version: int = 2) -> None:
        self.run(lambda: self.shard.add_partitions("tx", producer_id, epoch, frozenset(partitions or (T0,)), version))

    def verify(self, epoch: int, *partitions: tuple[str, int], producer_id: int = ID) -> Any:
        return self.shard.verify_partitions("tx", producer_id, epoch, frozenset(partitions))

    def end(self, epoch: int, *, commit: bool = True, producer_id: int = ID, version: int = 2, fresh: int = -1) -> Any:
        return self.run(lambda: self.shard.end(EndTxn("tx", producer_id, epoch, commit, version), fresh))

    def complete(self) -> None:
        self.run(lambda: self.shard.complete(self.tx))

    @property
    def tx(self) -> TransactionMetadata:
        return self.shard.transactions["tx"]

    @property
    def pair(self) -> tuple[int, int]:
        return self.tx.producer_id, self.tx.producer_epoch

    def at_epoch(self, epoch: int) -> Subject:
        """Set the epoch, as if the id had been initialized so often."""
        self.shard.transactions["tx"] = replace(self.tx, producer_epoch=epoch)
        return self


@pytest.fixture
def empty() -> Subject:
    """`tx` has producer id 100, epoch 0, and no transaction."""
    subject = Subject()
    subject.init()
    return subject


@pytest.fixture
def ongoing(empty: Subject) -> Subject:
    """`tx` has an open transaction with partition t-0."""
    empty.add(0)
    return empty


def code_of(call: Callable[[], object]) -> ErrorCode:
    with pytest.raises(KafkaError) as refused:
        call()
    return refused.value.code


class TestInit:
    def test_a_new_transactional_id_waits_for_a_producer_id(self) -> None:
        subject = Subject()
        assert subject.init(fresh=-1) is None
        assert subject.log == []
        assert subject.init() == Initialized(ID, 0)
        assert (subject.tx.timeout_ms, subject.tx.last_update_ms) == (60_000, 1_000_000)

    def test_the_next_producer_fences_the_one_before(self, empty: Subject) -> None:
        assert empty.init(fresh=-1) == Initialized(ID, 1)
        assert code_of(lambda: empty.add(0)) is ErrorCode.PRODUCER_FENCED

    def test_a_producer_that_names_its_epoch(self, empty: Subject) -> None:
        assert empty.init(expected=(ID, 0)) == Initialized(ID, 1)
        assert empty.init(expected=(ID, 0)) == Initialized(ID, 1), "a repeated request"
        assert empty.init(expected=(ID, 1)) == Initialized(ID, 2)
        assert code_of(lambda: empty.init(expected=(ID, 0))) is ErrorCode.PRODUCER_FENCED
        assert code_of(lambda: empty.init(expected=(ID + 1, 2))) is ErrorCode.PRODUCER_FENCED

    def test_a_restart_forgets_the_epoch_before(self, empty: Subject) -> None:
        empty.init(expected=(ID, 0))
        restarted = Subject(restored=empty)
        assert code_of(lambda: restarted.init(expected=(ID, 0))) is ErrorCode.PRODUCER_FENCED
        assert restarted.init(expected=(ID, 1)) == Initialized(ID, 2)

    def test_not_while_an_end_is_on_its_way(self, ongoing: Subject) -> None:
        ongoing.end(0)
        assert code_of(ongoing.init) is ErrorCode.CONCURRENT_TRANSACTIONS

    def test_an_open_transaction_is_aborted_first(self, ongoing: Subject) -> None:
        begun = ongoing.init(fresh=-1)
        assert begun.prepared == ongoing.tx
        assert (begun.producer_id, begun.producer_epoch) == (-1, -1)
        assert (ongoing.tx.state, ongoing.pair) == (TransactionState.PREPARE_ABORT, (ID, 1))
        ongoing.complete()
        assert ongoing.init() == Initialized(ID, 2)

    @pytest.mark.parametrize("level", [0, 1])
    def test_an_open_transaction_is_aborted_under_a_bumped_epoch_at_older_levels_too(self, level: int) -> None:
        subject = Subject(level=level)
        subject.init()
        subject.add(0, version=0)
        subject.init()
        assert (subject.tx.state, subject.pair) == (TransactionState.PREPARE_ABORT, (ID, 1))
        assert subject.tx.client_transaction_version == 0

    def test_exhausted_epochs_take_a_new_producer_id(self, empty: Subject) -> None:
        empty.at_epoch(LAST_GIVEN)
        assert empty.init(fresh=-1) is None
        assert empty.init(fresh=200, timeout_ms=7) == Initialized(200, 0)
        assert (empty.tx.previous_producer_id, empty.tx.timeout_ms) == (ID, 7)

    def test_a_lost_answer_with_a_new_producer_id_is_repeated(self, empty: Subject) -> None:
        empty.at_epoch(LAST_GIVEN)
        assert empty.init(fresh=200, expected=(ID, LAST_GIVEN)) == Initialized(200, 0)
        assert empty.init(fresh=201, expected=(ID, LAST_GIVEN)) == Initialized(200, 0)
        assert code_of(lambda: empty.init(expected=(ID, 5))) is ErrorCode.PRODUCER_FENCED

    def test_exhausted_epochs_fence_another_epoch(self, empty: Subject) -> None:
        empty.at_epoch(LAST_GIVEN)
        assert code_of(lambda: empty.init(expected=(ID, LAST_GIVEN - 1))) is ErrorCode.PRODUCER_FENCED

    def test_the_last_epoch_but_one_is_given(self, empty: Subject) -> None:
        empty.at_epoch(LAST_GIVEN - 1)
        assert empty.init(fresh=-1) == Initialized(ID, LAST_GIVEN)


class TestKeep:
    def test_an_open_transaction_may_be_kept(self, ongoing: Subject) -> None:
        assert ongoing.init(keep_prepared=True) == Initialized(ID, 1, ongoing=(ID, 0))
        assert (ongoing.tx.state, ongoing.tx.partitions) == (TransactionState.ONGOING, {T0})
        assert ongoing.tx.timeout_ms == 60_000
        assert ongoing.init(keep_prepared=True, timeout_ms=7) == Initialized(ID, 2, ongoing=(ID, 0))
        assert ongoing.tx.timeout_ms == 7
        assert code_of(lambda: ongoing.add(0)) is ErrorCode.PRODUCER_FENCED, "its client may only end it"
        assert code_of(lambda: ongoing.end(1)) is ErrorCode.PRODUCER_FENCED
        ended = ongoing.end(2)
        assert (ended.producer_id, ended.producer_epoch) == (ID, 3)
        assert ended.prepared.producer_epoch == 3

    def test_a_kept_transaction_ends_without_a_bump_too(self, ongoing: Subject) -> None:
        ongoing.init(keep_prepared=True)
        assert code_of(lambda: ongoing.end(0, version=0)) is ErrorCode.PRODUCER_FENCED
        ended = ongoing.end(1, version=0)
        assert (ended.producer_id, ended.producer_epoch) == (-1, -1)
        assert ongoing.pair == (ID, 2), "markers are ahead of both epochs"

    def test_exhausted_epochs_take_a_new_producer_id(self, ongoing: Subject) -> None:
        ongoing.at_epoch(LAST_GIVEN)
        assert ongoing.init(fresh=-1, keep_prepared=True) is None
        assert ongoing.init(fresh=200, keep_prepared=True) == Initialized(200, 0, ongoing=(ID, LAST_GIVEN))

    @pytest.mark.parametrize("level", [0, 1])
    def test_not_before_transaction_version_2(self, ongoing: Subject, level: int) -> None:
        ongoing.level = level
        assert code_of(lambda: ongoing.init(keep_prepared=True)) is ErrorCode.UNSUPPORTED_VERSION

    def test_without_a_transaction_there_is_nothing_to_keep(self, empty: Subject) -> None:
        assert empty.init(keep_prepared=True) == Initialized(ID, 1, ongoing=(-1, -1))


class TestPartitions:
    def test_the_first_ones_begin_the_transaction(self, empty: Subject) -> None:
        empty.now_ms += 5
        empty.add(0)
        assert (empty.tx.state, empty.tx.partitions) == (TransactionState.ONGOING, {T0})
        assert (empty.tx.start_ms, empty.tx.client_transaction_version) == (1_000_005, 2)
        empty.now_ms += 5
        empty.add(0, T1)
        assert (empty.tx.start_ms, empty.tx.partitions) == (1_000_005, {T0, T1})

    def test_known_ones_write_nothing(self, ongoing: Subject) -> None:
        written = len(ongoing.log)
        ongoing.add(0)
        assert len(ongoing.log) == written
        ongoing.add(0, T0, T1)
        assert len(ongoing.log) == written + 1

    def test_partitions_of_the_last_transaction_are_new_ones(self, ongoing: Subject) -> None:
        ongoing.end(0)
        ongoing.complete()
        ongoing.add(1)
        assert (ongoing.tx.state, ongoing.tx.partitions) == (TransactionState.ONGOING, {T0})

    def test_who_is_refused(self, ongoing: Subject) -> None:
        assert code_of(lambda: Subject().add(0)) is ErrorCode.INVALID_PRODUCER_ID_MAPPING
        assert code_of(lambda: ongoing.add(0, T1, producer_id=ID + 1)) is ErrorCode.INVALID_PRODUCER_ID_MAPPING
        assert code_of(lambda: ongoing.add(1, T1)) is ErrorCode.PRODUCER_FENCED
        ongoing.end(0)
        assert code_of(lambda: ongoing.add(1, T1)) is ErrorCode.CONCURRENT_TRANSACTIONS

    def test_verification_says_which_are_included(self, ongoing: Subject) -> None:
        assert ongoing.verify(0, T0, T1) == {T0: ErrorCode.NONE, T1: ErrorCode.TRANSACTION_ABORTABLE}

    def test_whose_verification_is_refused(self, ongoing: Subject) -> None:
        assert code_of(lambda: Subject().verify(0, T0)) is ErrorCode.INVALID_PRODUCER_ID_MAPPING
        assert code_of(lambda: ongoing.verify(0, T0, producer_id=ID + 1)) is ErrorCode.INVALID_PRODUCER_ID_MAPPING
        assert code_of(lambda: ongoing.verify(1, T0)) is ErrorCode.PRODUCER_FENCED
        ongoing.end(0)
        assert code_of(lambda: ongoing.verify(1, T0)) is ErrorCode.CONCURRENT_TRANSACTIONS


class TestEndWithBump:
    @pytest.mark.parametrize(
        ("commit", "prepared", "complete"),
        [
            (True, TransactionState.PREPARE_COMMIT, TransactionState.COMPLETE_COMMIT),
            (False, TransactionState.PREPARE_ABORT, TransactionState.COMPLETE_ABORT),
        ],
    )
    def test_the_end_gives_the_next_epoch(
        self, ongoing: Subject, commit: bool, prepared: TransactionState, complete: TransactionState
    ) -> None:
        ended = ongoing.end(0, commit=commit)
        assert (ended.producer_id, ended.producer_epoch, ended.prepared) == (ID, 1, ongoing.tx)
        assert ongoing.tx.state is prepared
        ongoing.complete()
        assert (ongoing.tx.state, ongoing.pair, ongoing.tx.partitions) == (complete, (ID, 1), frozenset())

    def test_a_repeated_end_gets_the_same_answer(self, ongoing: Subject) -> None:
        ongoing.end(0)
        assert code_of(lambda: ongoing.end(0)) is ErrorCode.CONCURRENT_TRANSACTIONS
        ongoing.complete()
        written = len(ongoing.log)
        assert ongoing.end(0) == Ended(ID, 1)
        assert len(ongoing.log) == written
        assert code_of(lambda: ongoing.end(0, commit=False)) is ErrorCode.INVALID_TXN_STATE

    def test_a_commit_that_comes_after_the_coordinators_own_abort_is_fenced(self, ongoing: Subject) -> None:
        # PRODUCER_FENCED makes Kafka Streams create a new producer; INVALID_TXN_STATE stops its thread.
        ongoing.run(lambda: ongoing.shard.abort_timed_out(ongoing.tx, -1))
        assert code_of(lambda: ongoing.end(0)) is ErrorCode.CONCURRENT_TRANSACTIONS
        ongoing.complete()
        assert code_of(lambda: ongoing.end(0)) is ErrorCode.PRODUCER_FENCED
        assert ongoing.end(0, commit=False) == Ended(ID, 1), "an abort has what it wants, and the epoch to go on with"

    def test_so_is_one_across_producer_ids(self, ongoing: Subject) -> None:
        ongoing.at_epoch(LAST_GIVEN)
        ongoing.run(lambda: ongoing.shard.abort_timed_out(ongoing.tx, 200))
        ongoing.complete()
        assert ongoing.pair == (200, 0)
        assert code_of(lambda: ongoing.end(LAST_GIVEN)) is ErrorCode.PRODUCER_FENCED

    def test_who_is_refused(self, ongoing: Subject) -> None:
        assert code_of(lambda: Subject().end(0)) is ErrorCode.INVALID_PRODUCER_ID_MAPPING
        assert code_of(lambda: ongoing.end(0, producer_id=ID + 1)) is ErrorCode.INVALID_PRODUCER_ID_MAPPING
        assert code_of(lambda: ongoing.end(1)) is ErrorCode.PRODUCER_FENCED
        ongoing.init()
        ongoing.complete()
        ongoing.init()
        assert code_of(lambda: ongoing.end(0)) is ErrorCode.PRODUCER_FENCED
        assert code_of(lambda: ongoing.end(1)) is ErrorCode.PRODUCER_FENCED, "a new producer has no end to repeat"

    def test_without_a_transaction_only_an_abort_goes_through(self, empty: Subject) -> None:
        assert code_of(lambda: empty.end(0)) is ErrorCode.INVALID_TXN_STATE
        ended = empty.end(0, commit=False)
        assert (ended.producer_epoch, ended.prepared.state) == (1, TransactionState.PREPARE_ABORT)
        empty.complete()
        assert code_of(lambda: empty.end(1)) is ErrorCode.INVALID_TXN_STATE
        assert empty.end(1, commit=False).producer_epoch == 2

    def test_the_last_epoch_ends_under_a_new_producer_id(self, ongoing: Subject) -> None:
        ongoing.at_epoch(LAST_GIVEN)
        assert ongoing.end(LAST_GIVEN) is None
        ended = ongoing.end(LAST_GIVEN, fresh=200)
        assert (ended.producer_id, ended.producer_epoch) == (200, 0)
        assert (ended.prepared.producer_id, ended.prepared.producer_epoch) == (ID, MAX_EPOCH)
        ongoing.complete()
        assert ongoing.pair == (200, 0)
        assert ongoing.end(LAST_GIVEN) == Ended(200, 0), "a repeated request names the old id"
        assert code_of(lambda: ongoing.end(LAST_GIVEN - 1)) is ErrorCode.INVALID_PRODUCER_ID_MAPPING
        assert code_of(lambda: ongoing.end(LAST_GIVEN, producer_id=300)) is ErrorCode.INVALID_PRODUCER_ID_MAPPING
        ongoing.init()
        assert code_of(lambda: ongoing.end(LAST_GIVEN)) is ErrorCode.INVALID_PRODUCER_ID_MAPPING

    def test_the_last_epoch_but_one_needs_no_new_id(self, ongoing: Subject) -> None:
        ongoing.at_epoch(LAST_GIVEN - 1)
        assert ongoing.end(LAST_GIVEN - 1).producer_epoch == LAST_GIVEN


class TestEndWithoutBump:
    @pytest.mark.parametrize("version", [0, 1])
    def test_the_epoch_stays(self, ongoing: Subject, version: int) -> None:
        ended = ongoing.end(0, version=version)
        assert (ended.producer_id, ended.producer_epoch) == (-1, -1)
        assert ended.prepared == ongoing.tx
        assert (ongoing.tx.state, ongoing.pair) == (TransactionState.PREPARE_COMMIT, (ID, 0))
        assert ongoing.tx.client_transaction_version == 0

    def test_a_repeated_end(self, ongoing: Subject) -> None:
        ongoing.end(0, commit=False, version=0)
        assert code_of(lambda: ongoing.end(0, commit=False, version=0)) is ErrorCode.CONCURRENT_TRANSACTIONS
        ongoing.complete()
        assert ongoing.end(0, commit=False, version=0) == Ended(-1, -1)
        assert code_of(lambda: ongoing.end(0, commit=True, version=0)) is ErrorCode.INVALID_TXN_STATE

    def test_who_is_refused(self, ongoing: Subject) -> None:
        assert code_of(lambda: Subject().end(0, version=0)) is ErrorCode.INVALID_PRODUCER_ID_MAPPING
        assert code_of(lambda: ongoing.end(0, producer_id=9, version=0)) is ErrorCode.INVALID_PRODUCER_ID_MAPPING
        assert code_of(lambda: ongoing.end(1, version=0)) is ErrorCode.PRODUCER_FENCED

    @pytest.mark.parametrize("commit", [True, False])
    def test_without_a_transaction_there_is_nothing_to_end(self, empty: Subject, commit: bool) -> None:
        assert code_of(lambda: empty.end(0, commit=commit, version=0)) is ErrorCode.INVALID_TXN_STATE


class TestCompletion:
    def test_a_second_completion_writes_nothing(self, ongoing: Subject) -> None:
        ongoing.end(0)
        prepared = ongoing.tx
        ongoing.complete()
        written = len(ongoing.log)
        ongoing.run(lambda: ongoing.shard.complete(prepared))
        assert len(ongoing.log) == written

    def test_another_transaction_is_not_completed(self, ongoing: Subject) -> None:
        ongoing.end(0)
        first = ongoing.tx
        ongoing.complete()
        ongoing.add(1)
        ongoing.end(1)
        ongoing.run(lambda: ongoing.shard.complete(first))
        assert ongoing.tx.state is TransactionState.PREPARE_COMMIT

    def test_another_producer_id_begins_at_epoch_0(self, ongoing: Subject) -> None:
        ongoing.end(0)
        ongoing.run(lambda: ongoing.shard.complete(ongoing.tx, ID + 7))
        assert (ongoing.tx.state, ongoing.pair) == (TransactionState.COMPLETE_COMMIT, (ID + 7, 0))

    def test_an_id_that_is_gone(self, ongoing: Subject) -> None:
        ongoing.end(0)
        other = Subject()
        other.run(lambda: other.shard.complete(ongoing.tx))
        assert other.log == []

    def test_what_was_decided_before_a_restart_is_finished_after_it(self, ongoing: Subject) -> None:
        ongoing.end(0)
        restarted = Subject(restored=ongoing)
        restarted.shard.on_loaded()
        assert restarted.prepared == [restarted.tx]
        assert restarted.tx.state is TransactionState.PREPARE_COMMIT
        restarted.complete()
        again = Subject(restored=ongoing)
        again.run(lambda: again.shard.complete(again.tx))
        again.shard.on_loaded()
        assert again.prepared == []


class TestTimers:
    def advance(self, subject: Subject, ms: int) -> None:
        subject.now_ms += ms
        subject.loop.advance(ms)

    def test_a_transaction_open_for_too_long_is_found_at_every_look(self, ongoing: Subject) -> None:
        ongoing.shard.on_loaded()
        self.advance(ongoing, 60_000)
        assert ongoing.timed_out == []
        self.advance(ongoing, 9_999)
        assert ongoing.timed_out == []
        self.advance(ongoing, 1)
        assert ongoing.timed_out == [ongoing.tx]
        self.advance(ongoing, 10_000)
        assert ongoing.timed_out == [ongoing.tx] * 2

    def test_it_is_aborted_under_an_epoch_that_no_client_has(self, ongoing: Subject) -> None:
        ended = ongoing.run(lambda: ongoing.shard.abort_timed_out(ongoing.tx, -1))
        assert ended == Ended(-1, -1, ongoing.tx)
        assert (ongoing.tx.state, ongoing.pair) == (TransactionState.PREPARE_ABORT, (ID, 1))

    def test_it_waits_for_a_new_producer_id_at_the_last_epoch(self, ongoing: Subject) -> None:
        ongoing.at_epoch(LAST_GIVEN)
        assert ongoing.run(lambda: ongoing.shard.abort_timed_out(ongoing.tx, -1)) is None
        assert ongoing.run(lambda: ongoing.shard.abort_timed_out(ongoing.tx, 200)).prepared == ongoing.tx

    def test_one_that_has_moved_on_is_left_alone(self, ongoing: Subject) -> None:
        old = ongoing.tx
        ongoing.end(0)
        assert ongoing.run(lambda: ongoing.shard.abort_timed_out(old, -1)) == Ended(-1, -1)
        ongoing.complete()
        ongoing.now_ms += 1
        ongoing.add(1)
        assert ongoing.run(lambda: ongoing.shard.abort_timed_out(old, -1)) == Ended(-1, -1)
        assert ongoing.tx.state is TransactionState.ONGOING
        other = Subject()
        assert other.run(lambda: other.shard.abort_timed_out(old, -1)) == Ended(-1, -1)

    def test_an_id_that_nobody_uses_expires(self, empty: Subject) -> None:
        empty.shard.on_loaded()
        self.advance(empty, 49_000)
        assert "tx" in empty.shard.transactions
        self.advance(empty, 1000)
        assert empty.shard.transactions == {}
        assert empty.log[-1].value is None
        assert Subject(restored=empty).shard.transactions == {}

    def test_many_ids_expire_in_as_many_batches_as_it_takes(self, empty: Subject) -> None:
        empty.now_ms += 50_000
        results: list[CoordinatorResult[Any]] = []
        empty.run = lambda operation: results.append(operation())  # type: ignore[method-assign]
        empty.shard.on_loaded()
        empty.loop.advance(1000)
        assert [(result.atomic, len(result.records)) for result in results] == [(False, 1)]

    def test_an_open_transaction_never_expires(self, ongoing: Subject) -> None:
        ongoing.shard.on_loaded()
        self.advance(ongoing, 500_000)
        assert "tx" in ongoing.shard.transactions
