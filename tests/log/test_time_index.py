"""The time index: bytes, look-ups in memory and in the file, truncation."""

from __future__ import annotations

import pytest

from barnabas.log.time_index import TimeIndex
from barnabas.simulation.disk import SimDisk

BASE = 100
TIMES = [(1000, 109), (1000, 115), (2000, 121), (3000, 200)]


def time_index(*, sealed: bool) -> tuple[SimDisk, TimeIndex]:
    disk = SimDisk()
    index = TimeIndex(disk, "/t", BASE)
    for timestamp, offset in TIMES:
        index.maybe_append(timestamp, offset)
    if sealed:
        index.seal()
    return disk, index


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
