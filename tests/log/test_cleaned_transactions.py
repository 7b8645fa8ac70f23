"""Which batches and markers compaction may drop: the cases of Kafka's CleanedTransactionMetadata."""

from __future__ import annotations

from barnabas.log.cleaned_transactions import CleanedTransactions
from barnabas.log.transaction_index import AbortedTransaction
from barnabas.records.builder import build_batch
from barnabas.records.control import ControlRecordType, control_key
from barnabas.records.record_batch import BatchHeader, check_batch

ABORT = control_key(ControlRecordType.ABORT)
COMMIT = control_key(ControlRecordType.COMMIT)


def header(producer_id: int, offset: int, *, transactional: bool = True) -> BatchHeader:
    return check_batch(
        build_batch(
            [(0, b"k", b"v", ())],
            base_offset=offset,
            producer_id=producer_id,
            producer_epoch=0,
            base_sequence=0,
            transactional=transactional,
        )
    )


def test_aborted_data_goes_and_its_marker_stays_as_long_as_it_was_seen() -> None:
    aborted = AbortedTransaction(7, 1, 3, 4)
    passing = CleanedTransactions([aborted])
    assert not passing.read_batch(header(7, 0))
    assert passing.read_batch(header(7, 1))
    assert not passing.read_batch(header(7, 2, transactional=False))
    assert not passing.read_control_batch(header(7, 3), ABORT)
    assert passing.to_index == [aborted]
    assert not passing.read_batch(header(7, 4))


def test_an_abort_of_which_nothing_is_left_may_go() -> None:
    passing = CleanedTransactions([AbortedTransaction(7, 1, 3, 4)])
    assert passing.read_control_batch(header(7, 3), ABORT)
    assert passing.to_index == []


def test_a_commit_stays_as_long_as_data_is_in_front_of_it() -> None:
    passing = CleanedTransactions([])
    assert not passing.read_batch(header(7, 0))
    assert not passing.read_control_batch(header(7, 1), COMMIT)
    assert passing.read_control_batch(header(7, 2), COMMIT)


def test_transactions_of_one_producer_follow_each_other() -> None:
    first, second = AbortedTransaction(7, 0, 1, 2), AbortedTransaction(7, 4, 5, 6)
    passing = CleanedTransactions([second, first])
    assert passing.read_batch(header(7, 0))
    assert not passing.read_control_batch(header(7, 1), ABORT)
    assert not passing.read_batch(header(7, 2))
    assert not passing.read_control_batch(header(7, 3), COMMIT)
    assert passing.read_batch(header(7, 4))
    assert not passing.read_control_batch(header(7, 5), ABORT)
    assert passing.to_index == [first, second]


def test_overlapping_transactions_of_two_producers() -> None:
    passing = CleanedTransactions([AbortedTransaction(7, 0, 4, 1), AbortedTransaction(8, 1, 3, 1)])
    assert passing.read_batch(header(7, 0))
    assert passing.read_batch(header(8, 1))
    assert not passing.read_batch(header(9, 2))
    assert not passing.read_control_batch(header(8, 3), ABORT)
    assert passing.read_batch(header(7, 3))
    assert not passing.read_control_batch(header(7, 4), ABORT)
    assert not passing.read_control_batch(header(9, 5), COMMIT)


def test_emptied_and_unknown_control_batches() -> None:
    passing = CleanedTransactions([])
    assert passing.read_control_batch(header(7, 0), None)
    assert not passing.read_control_batch(header(7, 1), control_key(ControlRecordType.LEADER_CHANGE))
