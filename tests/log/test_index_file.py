"""What the offset index and the time index have in common: their files."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from barnabas.log.offset_index import OffsetIndex
from barnabas.log.time_index import TimeIndex
from barnabas.simulation.disk import SimDisk
from tests.log.test_offset_index import offset_index
from tests.log.test_time_index import time_index


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
