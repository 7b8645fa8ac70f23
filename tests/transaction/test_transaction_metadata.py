"""The steps of one transactional id: epochs of both versions, exhaustion, retries, kept transactions."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages import TransactionLogValue
from barnabas.transaction.records import metadata_of, transaction_record
from barnabas.transaction.transaction_metadata import (
    MAX_EPOCH,
    NEVER_TIMES_OUT_MS,
    TransactionMetadata,
    is_epoch_exhausted,
)
from barnabas.transaction.transaction_state import VALID_PREVIOUS, TransactionState

EMPTY = TransactionMetadata("tx", 5, 3, 1000, last_update_ms=10)
ONGOING = EMPTY.with_partitions(frozenset({("t", 0)}), 20, 2)


def end(before: TransactionMetadata, **fields: Any) -> TransactionMetadata:
    options = {"commit": True, "client_transaction_version": 2, "next_producer_id": -1, "now_ms": 30, **fields}
    return before.prepared(**options)


def pair(metadata: TransactionMetadata) -> tuple[int, int]:
    return metadata.producer_id, metadata.producer_epoch


class TestInit:
    def test_a_new_transactional_id_begins_at_epoch_0(self) -> None:
        begun = TransactionMetadata("tx", 5).bumped_for_init(1000, None, 10)
        assert (pair(begun), begun.last_producer_epoch, begun.state) == ((5, 0), -1, TransactionState.EMPTY)

    @pytest.mark.parametrize(
        ("last", "expected", "epoch", "last_after"), [(-1, None, 4, -1), (-1, 3, 4, 3), (2, 2, 3, 2)]
    )
    def test_each_init_bumps_the_epoch_unless_it_is_repeated(
        self, last: int, expected: int | None, epoch: int, last_after: int
    ) -> None:
        begun = replace(EMPTY, last_producer_epoch=last).bumped_for_init(500, expected, 10)
        assert (begun.producer_epoch, begun.last_producer_epoch, begun.timeout_ms) == (epoch, last_after, 500)

    @pytest.mark.parametrize("expected", [0, 2, 4])
    def test_another_epoch_is_fenced(self, expected: int) -> None:
        with pytest.raises(KafkaError) as refused:
            EMPTY.bumped_for_init(500, expected, 10)
        assert refused.value.code is ErrorCode.PRODUCER_FENCED

    def test_a_new_producer_id(self) -> None:
        exhausted = replace(EMPTY, producer_epoch=MAX_EPOCH - 1)
        assert exhausted.is_epoch_exhausted
        rotated = exhausted.with_new_producer_id(9, 500, 10, may_retry=True)
        assert (pair(rotated), rotated.previous_producer_id) == ((9, 0), 5)
        assert rotated.last_producer_epoch == MAX_EPOCH - 1
        with pytest.raises(AssertionError):
            replace(EMPTY, producer_epoch=MAX_EPOCH - 1).bumped_for_init(500, None, 10)


class TestEnds:
    def test_an_end_of_version_2_bumps_the_epoch_and_keeps_the_start(self) -> None:
        prepared = end(ONGOING)
        assert (prepared.producer_epoch, prepared.last_producer_epoch, prepared.start_ms) == (4, 3, 20)
        complete = prepared.completed(40)
        assert (pair(complete), complete.partitions, complete.state) == (
            (5, 4),
            frozenset(),
            TransactionState.COMPLETE_COMMIT,
        )

    def test_an_end_of_version_1_keeps_the_epoch(self) -> None:
        prepared = end(ONGOING, client_transaction_version=0)
        assert (prepared.producer_epoch, prepared.completed(40).producer_epoch) == (3, 3)

    def test_fencing_before_version_2_bumps_too(self) -> None:
        fenced = ONGOING.fenced_abort(30)
        assert (pair(fenced), fenced.last_producer_epoch) == ((5, 4), -1)
        assert fenced.completed(40).state is TransactionState.COMPLETE_ABORT

    def test_an_end_without_partitions_starts_now(self) -> None:
        assert end(EMPTY, commit=False).start_ms == 30

    def test_the_next_producer_id_replaces_the_old_one_at_completion(self) -> None:
        prepared = end(replace(ONGOING, producer_epoch=MAX_EPOCH - 1), next_producer_id=9)
        assert pair(prepared) == (5, MAX_EPOCH), "the markers belong to the old one"
        complete = prepared.completed(40)
        assert (pair(complete), complete.previous_producer_id, complete.last_producer_epoch) == (
            (9, 0),
            5,
            MAX_EPOCH - 1,
        )

    def test_the_epoch_never_exceeds_the_last_one(self) -> None:
        prepared = end(replace(ONGOING, producer_epoch=MAX_EPOCH), commit=False, next_producer_id=9)
        assert pair(prepared) == (5, MAX_EPOCH)

    @pytest.mark.parametrize("state", [TransactionState.COMPLETE_COMMIT, TransactionState.EMPTY])
    def test_an_invalid_step_is_an_assertion_error(self, state: TransactionState) -> None:
        with pytest.raises(AssertionError, match="cannot become"):
            end(replace(ONGOING, state=state, partitions=frozenset()))


class TestKept:
    """The epochs of KIP-939's example: 100, kept for 101, ended with 102."""

    ongoing = replace(ONGOING, producer_epoch=100)

    def test_a_kept_transaction_has_an_older_epoch_than_its_client(self) -> None:
        kept = self.ongoing.kept(-1, 1000, 30)
        assert (pair(kept), kept.client_producer_id, kept.client_producer_epoch) == ((5, 100), 5, 101)
        again = kept.kept(-1, 1000, 30)
        assert (pair(again), again.client_producer_epoch) == ((5, 100), 102)
        prepared = end(kept)
        assert (pair(prepared), prepared.last_producer_epoch) == ((5, 102), 101)
        assert pair(prepared.completed(40)) == (5, 102)

    def test_another_producer_id(self) -> None:
        ongoing = replace(ONGOING, producer_epoch=MAX_EPOCH - 1)
        kept = ongoing.kept(9, 1000, 30)
        assert (pair(kept), kept.client_producer_id, kept.client_producer_epoch) == ((5, MAX_EPOCH - 1), 9, 0)
        prepared = end(kept)
        assert pair(prepared) == (5, MAX_EPOCH)
        assert pair(prepared.completed(40)) == (9, 1)

    def test_a_client_at_the_last_epoch_of_its_second_id(self) -> None:
        kept = replace(self.ongoing, next_producer_id=9, next_producer_epoch=MAX_EPOCH - 1)
        prepared = end(kept, next_producer_id=11)
        assert pair(prepared.completed(40)) == (11, 0)


def test_which_transactions_time_out() -> None:
    assert not ONGOING.has_timed_out(1020)
    assert ONGOING.has_timed_out(1021)
    assert not replace(ONGOING, timeout_ms=NEVER_TIMES_OUT_MS).has_timed_out(1 << 40)
    assert not end(ONGOING).has_timed_out(1 << 40)


def test_which_ids_expire() -> None:
    assert EMPTY.has_expired(110, 100)
    assert not EMPTY.has_expired(109, 100)
    assert not ONGOING.has_expired(1 << 40, 100)
    assert is_epoch_exhausted(MAX_EPOCH)


@pytest.mark.parametrize("version", [0, 1, 2])
def test_a_record_has_the_fields_of_its_version(version: int) -> None:
    metadata = replace(end(ONGOING), next_producer_id=9, next_producer_epoch=8, previous_producer_id=4)
    record = transaction_record(metadata, version)
    assert record.value_version == min(version, 1)
    assert record.value is not None
    decoded = metadata_of(
        "tx", TransactionLogValue.decode(record.value.encode(record.value_version), record.value_version)
    )
    kept = replace(metadata, last_producer_epoch=-1)
    if not version:
        kept = replace(
            kept, next_producer_id=-1, next_producer_epoch=-1, previous_producer_id=-1, client_transaction_version=0
        )
    assert decoded == kept


def test_an_id_without_a_transaction_has_null_for_its_partitions() -> None:
    values = [transaction_record(metadata, 2).value for metadata in (EMPTY, ONGOING, end(ONGOING).completed(40))]
    assert [value and value.transaction_partitions for value in values][0::2] == [None, []]


def test_states_have_kafkas_numbers_and_names() -> None:
    assert [(state.number, state.title) for state in TransactionState] == [
        (0, "Empty"),
        (1, "Ongoing"),
        (2, "PrepareCommit"),
        (3, "PrepareAbort"),
        (4, "CompleteCommit"),
        (5, "CompleteAbort"),
        (6, "Dead"),
        (7, "PrepareEpochFence"),
    ]


def test_golden_record_is_kafkas() -> None:
    """Version 1, as Apache Kafka 4.3.1 wrote it for the same transaction, times replaced."""
    metadata = replace(ONGOING, producer_id=1, previous_producer_id=1, producer_epoch=0, timeout_ms=20_000)
    record = transaction_record(metadata, 2)
    assert record.value is not None
    assert record.value.encode(1).hex() == (
        "0000000000000001"  # producerId
        "0000"  # producerEpoch
        "00004e20"  # transactionTimeoutMs
        "01"  # Ongoing
        "02" "0274" "0200000000" "00"  # one topic "t" with partition 0, no tags
        "0000000000000014"  # lastUpdate
        "0000000000000014"  # start
        "02" "0008" "0000000000000001" "0202" "0002"  # tags: previousProducerId, clientTransactionVersion
    )  # fmt: skip


def test_every_state_can_be_reached_and_left() -> None:
    written = set(VALID_PREVIOUS)
    assert written == set(TransactionState) - {TransactionState.DEAD, TransactionState.PREPARE_EPOCH_FENCE}
    assert {state for previous in VALID_PREVIOUS.values() for state in previous} == written
