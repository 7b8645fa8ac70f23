"""The entries of a log's files; `test_command` has the batches."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from barnabas.dump.log_files import index_of, partition_of
from barnabas.log.producer_snapshot import encode_snapshot
from barnabas.log.producer_state_entry import BatchMetadata, ProducerStateEntry


@pytest.mark.parametrize(
    ("name", "data", "rows", "room"),
    [
        ("00000000000000000040.index", struct.pack(">IIII", 2, 100, 5, 900), [(42, 100), (45, 900)], 0),
        ("00000000000000000040.timeindex", struct.pack(">qI", 1000, 2) + bytes(24), [(1000, 42)], 24),
        ("00000000000000000040.index", bytes(80), [], 80),
        ("00000000000000000040.txnindex", struct.pack(">hqqqq", 0, 9, 40, 44, 45), [(9, 40, 44, 45)], 0),
    ],
)
def test_the_entries_of_an_index(name: str, data: bytes, rows: list[tuple[int, ...]], room: int) -> None:
    found = index_of(Path(name), data)
    assert found is not None
    assert (found.rows, found.problem) == (rows, "")
    assert found.room == room
    torn = index_of(Path(name), data + b"x")
    assert torn is not None
    assert (torn.rows, torn.problem) == (rows, "the last 1 bytes are no whole entry")


def test_the_producers_of_a_snapshot() -> None:
    entry = ProducerStateEntry(9, 2)
    entry.batches.append(BatchMetadata(4, 45, 4, 1000))
    entry.last_timestamp = 1000
    data = encode_snapshot([entry])
    found = index_of(Path("46.snapshot"), data)
    assert found is not None
    assert found.rows == [(9, 2, None, 4, 45, 1000, None)]
    torn = index_of(Path("46.snapshot"), data[:-1])
    assert torn is not None
    assert (torn.rows, torn.problem) == ([], "the snapshot fails its checksum")


def test_other_files_have_no_entries() -> None:
    assert index_of(Path("notes.txt"), b"") is None


@pytest.mark.parametrize(
    ("directory", "partition"),
    [
        ("orders-3", ("orders", 3)),
        ("a-b-0", ("a-b", 0)),
        ("orders-3.0123abcd-delete", ("orders", 3)),
        ("elsewhere", ("elsewhere", -1)),
    ],
)
def test_the_partition_of_a_file(directory: str, partition: tuple[str, int]) -> None:
    assert partition_of(Path("/data") / directory / "0.log") == partition
