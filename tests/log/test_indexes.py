"""The three indexes of a segment, and the file two of them share: bytes, look-ups in memory and in the file, truncation."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from barnabas.log.offset_index import OffsetIndex
from barnabas.log.time_index import TimeIndex
from barnabas.log.transaction_index import AbortedTransaction, TransactionIndex
from tests.simulation.disk import SimDisk

BASE = 100
ENTRIES = [(109, 50), (120, 90), (121, 130), (200, 500)]
TIMES = [(1000, 109), (1000, 115), (2000, 121), (3000, 200)]


def offset_index(*, sealed: bool) -> tuple[SimDisk, OffsetIndex]:
    disk = SimDisk()
    index = OffsetIndex(disk, "/i", BASE)
    for offset, position in ENTRIES:
        index.append(offset, position)
    if sealed:
        index.seal()
    return disk, index


def time_index(*, sealed: bool) -> tuple[SimDisk, TimeIndex]:
    disk = SimDisk()
    index = TimeIndex(disk, "/t", BASE)
    for timestamp, offset in TIMES:
        index.maybe_append(timestamp, offset)
    if sealed:
        index.seal()
    return disk, index


def test_offset_index_bytes() -> None:
    disk, index = offset_index(sealed=False)
    assert not disk.exists("/i")
    assert index.write_pending()
    assert not index.write_pending()
    assert disk.contents("/i").hex() == "0000000900000032000000140000005a000000150000008200000064000001f4"
    index.append(201, 600)
    index.write_pending()
    assert len(disk.contents("/i")) == 40


@pytest.mark.parametrize("sealed", [False, True])
def test_offset_index_lookup(sealed: bool) -> None:
    _, index = offset_index(sealed=sealed)
    assert [index.lookup(offset) for offset in (0, 100, 108, 109, 119, 120, 121, 199, 200, 10**9)] == [
        None,
        None,
        None,
        (109, 50),
        (109, 50),
        (120, 90),
        (121, 130),
        (121, 130),
        (200, 500),
        (200, 500),
    ]
    assert [index.last_at_or_below_position(p) for p in (0, 49, 50, 129, 130, 499, 10**6)] == [
        None,
        None,
        (109, 50),
        (120, 90),
        (121, 130),
        (121, 130),
        (200, 500),
    ]
    assert index.last_entry() == (200, 500)
    assert index.entries == 4


@pytest.mark.parametrize("sealed", [False, True])
def test_offset_index_truncation(sealed: bool) -> None:
    disk, index = offset_index(sealed=sealed)
    index.write_pending()
    index.truncate_to(121)
    assert index.last_entry() == (120, 90)
    assert len(disk.contents("/i")) == 16
    index.append(130, 140)
    index.seal()
    assert index.lookup(135) == (130, 140)
    index.truncate_to(0)
    assert index.last_entry() is None


def test_offset_index_must_ascend() -> None:
    _, index = offset_index(sealed=False)
    with pytest.raises(AssertionError):
        index.append(200, 700)


def test_offset_index_is_refused_when_it_is_not_sane() -> None:
    disk, index = offset_index(sealed=True)
    data = disk.contents("/i")
    assert index.load()
    assert index.open_sealed()
    for bad in (data[:-1], data + bytes(8), data[8:16] + data[:8], data + data):
        disk.put("/i", bad)
        assert not index.load()
        assert index.entries == 0
    for bad in (data[:-3], data + bytes(8)):
        disk.put("/i", bad)
        assert not index.open_sealed()
    disk.remove("/i")
    assert not index.load()
    assert not index.open_sealed()


def test_empty_indexes_leave_empty_files_when_sealed() -> None:
    disk = SimDisk()
    offsets, times = OffsetIndex(disk, "/i", 0), TimeIndex(disk, "/t", 0)
    offsets.seal()
    times.seal()
    assert (disk.contents("/i"), disk.contents("/t")) == (b"", b"")
    assert offsets.open_sealed()
    assert times.open_sealed()
    assert (offsets.lookup(5), times.last_before(5), times.last_entry()) == (None, None, (-1, 0))


@pytest.mark.parametrize("make", [offset_index, time_index])
def test_an_index_takes_no_more_of_its_file_than_it_wrote(
    make: Callable[..., tuple[SimDisk, OffsetIndex | TimeIndex]],
) -> None:
    disk, index = make(sealed=False)
    disk.put(index.path, bytes(100))
    index.write_pending()
    whole = disk.contents(index.path)
    assert 0 < len(whole) < 100
    index.clear_memory()
    assert (index.entries, index.is_sealed, disk.contents(index.path)) == (0, False, whole)
    assert index.open_sealed()
    assert index.is_sealed
    assert index.load()
    assert not index.write_pending()
    index.create()
    assert disk.contents(index.path) == b""


@pytest.mark.parametrize("make", [offset_index, time_index])
def test_a_sealed_index_whose_file_is_not_sane_is_empty_when_truncated(
    make: Callable[..., tuple[SimDisk, OffsetIndex | TimeIndex]],
) -> None:
    disk, index = make(sealed=True)
    disk.put(index.path, disk.contents(index.path)[:-1])
    index.truncate_to(121)
    assert (index.entries, index.is_sealed, disk.contents(index.path)) == (0, False, b"")


def test_time_index_bytes() -> None:
    disk, index = time_index(sealed=False)
    index.write_pending()
    assert disk.contents("/t").hex() == ("00000000000003e80000000900000000000007d0000000150000000000000bb800000064")


@pytest.mark.parametrize("sealed", [False, True])
def test_time_index_lookup(sealed: bool) -> None:
    _, index = time_index(sealed=sealed)
    assert index.entries == 3
    assert [index.last_before(t) for t in (0, 1000, 1001, 2000, 2001, 3000, 3001)] == [
        None,
        None,
        (1000, 109),
        (1000, 109),
        (2000, 121),
        (2000, 121),
        (3000, 200),
    ]
    assert index.last_entry() == (3000, 200)
    index.truncate_to(200)
    assert index.last_entry() == (2000, 121)
    index.reset()
    assert index.last_entry() == (-1, BASE)


def test_time_index_is_refused_when_it_is_not_sane() -> None:
    disk, index = time_index(sealed=True)
    data = disk.contents("/t")
    assert index.load()
    for bad in (data[:-1], data + data, data + bytes(12)):
        disk.put("/t", bad)
        assert not index.load()
        assert index.entries == 0


def test_transaction_index() -> None:
    disk = SimDisk()
    index = TransactionIndex(disk, "/x")
    assert index.entries() == []
    first, second = AbortedTransaction(7, 1, 9, 4), AbortedTransaction(8, 4, 12, 13)
    index.append(first)
    index.append(second)
    assert disk.contents("/x").hex()[:68] == ("00000000000000000007000000000000000100000000000000090000000000000004")
    assert index.entries() == [first, second]
    disk.put("/x", disk.contents("/x")[:-1])
    index = TransactionIndex(disk, "/x", maybe_present=True)
    assert index.entries() == [first]
    index.append(second)
    assert index.entries() == [first, second]
    index.truncate_to(12)
    assert index.entries() == [first]
    index.reset()
    assert not disk.exists("/x")
