"""The offset index: bytes, look-ups in memory and in the file, truncation."""

from __future__ import annotations

import pytest

from barnabas.log.offset_index import OffsetIndex
from barnabas.simulation.disk import SimDisk

BASE = 100
ENTRIES = [(109, 50), (120, 90), (121, 130), (200, 500)]


def offset_index(*, sealed: bool) -> tuple[SimDisk, OffsetIndex]:
    disk = SimDisk()
    index = OffsetIndex(disk, "/i", BASE)
    for offset, position in ENTRIES:
        index.append(offset, position)
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
