"""Which batches of a read belong to aborted transactions, and acquired ranges without them."""

from __future__ import annotations

import pytest

from barnabas.records.builder import build_batch
from barnabas.records.control import build_end_transaction_marker
from barnabas.records.record_batch import BatchHeader, read_header
from barnabas.share.aborted import aborted_ranges, without
from barnabas.share.window import Acquired


def records(base: int, producer_id: int = -1, *, count: int = 1, transactional: bool = True) -> BatchHeader:
    batch = build_batch(
        [(0, b"k", b"v", [])] * count,
        base_offset=base,
        producer_id=producer_id,
        producer_epoch=0 if producer_id >= 0 else -1,
        base_sequence=0 if producer_id >= 0 else -1,
        transactional=transactional and producer_id >= 0,
    )
    return read_header(batch)


def marker(base: int, producer_id: int, *, commit: bool = False) -> BatchHeader:
    batch = build_end_transaction_marker(
        commit=commit, coordinator_epoch=0, producer_id=producer_id, producer_epoch=0, timestamp=0, base_offset=base
    )
    return read_header(batch)


def test_without_aborted_transactions_nothing_is_left_out() -> None:
    assert aborted_ranges([records(0, 7), marker(1, 7, commit=True)], [], []) == []


def test_the_batches_between_the_beginning_and_the_marker() -> None:
    read = [records(0), records(1, 7, count=3), records(4, 8), records(5, 7), marker(6, 7), records(7, 7)]
    assert aborted_ranges(read, [(7, 1)], [(7, 6)]) == [(1, 3), (5, 5)]


def test_a_transaction_that_began_before_the_read() -> None:
    assert aborted_ranges([records(5, 7), marker(6, 7)], [(7, 1)], [(7, 6)]) == [(5, 5)]


def test_a_transaction_that_ends_after_the_read() -> None:
    assert aborted_ranges([records(5, 7), records(6, 7)], [(7, 5)], []) == [(5, 5), (6, 6)]


def test_committed_ones_before_the_aborted_one_stay() -> None:
    read = [records(0, 7), marker(1, 7, commit=True), records(2, 7), marker(3, 7)]
    assert aborted_ranges(read, [(7, 2)], [(7, 3)]) == [(2, 2)]


def test_several_transactions_in_any_order() -> None:
    read = [records(0, 7), records(1, 8), marker(2, 7), records(3, 8), marker(4, 8), records(5, 7), marker(6, 7)]
    markers = [(7, 2), (8, 4), (7, 6)]
    assert aborted_ranges(read, [(7, 5), (8, 1), (7, 0)], markers) == [(0, 0), (1, 1), (3, 3), (5, 5)]
    assert aborted_ranges(read, [(7, 0)], markers[:1]) == [(0, 0)]


def test_a_commit_marker_of_the_same_producer_ends_no_abort() -> None:
    read = [records(0, 7), marker(1, 7, commit=True), records(2, 7)]
    assert aborted_ranges(read, [(7, 0)], []) == [(0, 0), (2, 2)]


def test_what_an_idempotent_producer_wrote_outside_of_transactions_stays() -> None:
    assert aborted_ranges([records(0, 7, transactional=False), records(1, 7)], [(7, 0)], []) == [(1, 1)]


@pytest.mark.parametrize(
    ("first", "last", "rest"),
    [
        (0, 9, [(10, 19), (30, 39)]),
        (20, 29, [(10, 19), (30, 39)]),
        (40, 50, [(10, 19), (30, 39)]),
        (10, 19, [(30, 39)]),
        (5, 10, [(11, 19), (30, 39)]),
        (19, 25, [(10, 18), (30, 39)]),
        (12, 12, [(10, 11), (13, 19), (30, 39)]),
        (15, 34, [(10, 14), (35, 39)]),
        (0, 50, []),
    ],
)
def test_acquired_ranges_without_one_range(first: int, last: int, rest: list[tuple[int, int]]) -> None:
    acquired = [Acquired(10, 19, 1), Acquired(30, 39, 2)]
    found = without(acquired, first, last)
    assert [(part.first, part.last) for part in found] == rest
    assert all(part.delivery_count == (1 if part.last < 20 else 2) for part in found)
