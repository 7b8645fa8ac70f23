"""A response as entries: transactions that were aborted, control batches, damage."""

from __future__ import annotations

import pytest

from barnabas.console.search.fetched import DECOMPRESSED_BYTES_MAX, Fetched, State, piece_of
from barnabas.records.builder import build_batch
from barnabas.records.compression import Compression
from barnabas.records.control import build_end_transaction_marker
from barnabas.records.errors import CorruptRecord, RecordError


def data(offset: int, count: int, producer: int = -1) -> bytes:
    records = [(offset + each, b"k", b"v", ()) for each in range(count)]
    if producer < 0:
        return bytes(build_batch(records, base_offset=offset))
    return bytes(
        build_batch(
            records, base_offset=offset, producer_id=producer, producer_epoch=0, base_sequence=0, transactional=True
        )
    )


def marker(offset: int, producer: int, *, commit: bool) -> bytes:
    return bytes(
        build_end_transaction_marker(
            commit=commit, coordinator_epoch=0, producer_id=producer, producer_epoch=0, timestamp=5, base_offset=offset
        )
    )


def states(fetched: Fetched, offset: int = 0, below: int = 1000) -> list[tuple[int, str]]:
    piece = piece_of(fetched, 0, offset, below)
    return [(each.first, each.found.state.value) for each in piece.entries if each.found is not None]


def test_a_producer_that_aborts_and_then_commits() -> None:
    log = (
        data(0, 1, 7)
        + data(1, 1, 8)
        + marker(2, 7, commit=False)
        + data(3, 1, 7)
        + marker(4, 7, commit=True)
        + data(5, 1)
    )
    assert states(Fetched(memoryview(log), {7: [0]}, True)) == [
        (0, "aborted"), (1, "committed"), (2, "committed"), (3, "committed"), (4, "committed"), (5, "committed"),
    ]  # fmt: skip


def test_two_aborted_transactions_of_one_producer() -> None:
    log = data(0, 1, 7) + marker(1, 7, commit=False) + data(2, 1) + data(3, 2, 7) + marker(5, 7, commit=False)
    found = dict(states(Fetched(memoryview(log), {7: [3, 0]}, True)))
    assert [each for each, state in found.items() if state == "aborted"] == [0, 3, 4]


def test_a_transaction_that_began_before_the_fetch() -> None:
    log = data(10, 1, 7) + marker(11, 7, commit=False)
    assert states(Fetched(memoryview(log), {7: [3]}, True), 10) == [(10, "aborted"), (11, "committed")]


def test_what_is_not_decided_is_held_back() -> None:
    log = data(0, 1) + data(1, 1, 7) + marker(2, 7, commit=True)
    assert {state for _, state in states(Fetched(memoryview(log), {}, False))} == {State.HELD_BACK.value}


def test_a_piece_ends_where_it_should() -> None:
    fetched = Fetched(memoryview(data(0, 10) + data(10, 10) + data(30, 5)), {}, True, 0)
    piece = piece_of(fetched, 0, 4, 15)
    assert (piece.first, piece.reach, len(piece.entries)) == (0, 15, 20)
    piece = piece_of(fetched, 0, 4, 25)
    assert (piece.reach, len(piece.entries)) == (25, 20)
    assert piece_of(fetched, 0, 4, 99).reach == 35
    assert [piece_of(fetched._replace(log_start=each), 0, 4, 15).first for each in (-1, 3, 9)] == [4, 3, 4]
    assert piece_of(Fetched(memoryview(b""), {}, True), 0, 4, 99).reach == 99


def test_a_batch_that_opens_into_gigabytes_is_damaged() -> None:
    bomb = build_batch([(0, b"k", bytes(DECOMPRESSED_BYTES_MAX + 1), ())], compression=Compression.ZSTD)
    assert len(bomb) < 100_000
    (entry,) = piece_of(Fetched(memoryview(bytes(bomb)), {}, True), 0, 0, 1).entries
    assert entry.found is None
    assert "after decompression" in (entry.damage or "")


def test_bytes_that_are_no_batches() -> None:
    for junk, error in ((bytes(100), RecordError), (data(0, 1)[:-1], CorruptRecord)):
        with pytest.raises(error):
            piece_of(Fetched(memoryview(junk), {}, True), 0, 0, 10)
