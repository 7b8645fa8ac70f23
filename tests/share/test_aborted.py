"""Which record batches belong to aborted transactions, and acquired ranges without them."""

from __future__ import annotations

import pytest

from barnabas.records.record_batch import BatchHeader
from barnabas.share.aborted import aborted_ranges, without
from barnabas.share.window import Acquired

TRANSACTIONAL, CONTROL = 0x10, 0x20


def header(first: int, last: int, producer_id: int = -1, attributes: int = TRANSACTIONAL) -> BatchHeader:
    return BatchHeader(first, 100, 0, 2, 0, attributes, last - first, 0, 0, producer_id, 0, 0, last - first + 1)


def marker(offset: int, producer_id: int) -> BatchHeader:
    return header(offset, offset, producer_id, TRANSACTIONAL | CONTROL)


def test_batches_between_the_first_offset_and_the_marker_are_aborted() -> None:
    headers = [header(0, 1, 7), header(2, 4, 8), header(5, 9, 7), marker(10, 7), header(11, 12, 7)]
    assert aborted_ranges(headers, [(7, 0)], [(7, 10)]) == [(0, 1), (5, 9)]


def test_a_transaction_starts_at_its_first_offset() -> None:
    headers = [header(0, 1, 7), header(2, 4, 7), marker(5, 7)]
    assert aborted_ranges(headers, [(7, 2)], [(7, 5)]) == [(2, 4)]
    assert aborted_ranges(headers, [(7, 4)], [(7, 5)]) == [(2, 4)], "within the batch"
    assert aborted_ranges(headers, [(7, 5)], [(7, 5)]) == []


def test_two_aborted_transactions_of_one_producer_do_not_abort_a_committed_one_between_them() -> None:
    headers = [header(0, 0, 7), marker(1, 7), header(2, 2, 7), marker(3, 7), header(4, 4, 7), marker(5, 7)]
    assert aborted_ranges(headers, [(7, 4), (7, 0)], [(7, 1), (7, 5)]) == [(0, 0), (4, 4)]


def test_only_an_abort_marker_of_the_producer_ends_its_transaction() -> None:
    headers = [header(0, 0, 7), marker(1, 8), marker(2, 7), header(3, 3, 7)]
    assert aborted_ranges(headers, [(7, 0)], [(8, 1)]) == [(0, 0), (3, 3)]


def test_records_outside_transactions_are_kept() -> None:
    headers = [header(0, 0, -1, 0), header(1, 1, 7, 0), header(2, 2, 7)]
    assert aborted_ranges(headers, [(7, 0)], []) == [(2, 2)]
    assert aborted_ranges(headers, [], []) == []


@pytest.mark.parametrize(
    ("first", "last", "rest"),
    [
        (0, 3, [(4, 6), (7, 9)]),
        (0, 4, [(5, 6), (7, 9)]),
        (5, 5, [(4, 4), (6, 6), (7, 9)]),
        (6, 7, [(4, 5), (8, 9)]),
        (4, 6, [(7, 9)]),
        (9, 20, [(4, 6), (7, 8)]),
        (10, 20, [(4, 6), (7, 9)]),
        (0, 20, []),
    ],
)
def test_acquired_ranges_without_a_range(first: int, last: int, rest: list[tuple[int, int]]) -> None:
    acquired = [Acquired(4, 6, 1), Acquired(7, 9, 2)]
    assert [(part.first, part.last) for part in without(acquired, first, last)] == rest
    assert all(part.delivery_count == (1 if part.first < 7 else 2) for part in without(acquired, first, last))
