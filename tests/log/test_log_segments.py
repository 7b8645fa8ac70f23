"""The ordered list of segments."""

from __future__ import annotations

import pytest

from barnabas.log.log_segment import LogSegment
from barnabas.log.log_segments import LogSegments
from barnabas.log.open_files import OpenFiles
from barnabas.simulation.disk import SimDisk

DISK = SimDisk()


def segment(base: int, size: int = 10) -> LogSegment:
    return LogSegment(DISK, OpenFiles(), "/t", base, index_interval_bytes=1, created_ms=0, size=size)


def made() -> LogSegments:
    return LogSegments([segment(5), segment(10), segment(20)])


def test_an_offset_belongs_to_the_last_segment_at_or_below_it() -> None:
    segments = made()
    assert [segments.slot(offset) for offset in (4, 5, 9, 10, 19, 20, 99)] == [-1, 0, 0, 1, 1, 2, 2]
    assert [s.base_offset for s in segments.starting_with(12)] == [10, 20]
    assert [s.base_offset for s in segments.starting_with(0)] == [5, 10, 20]
    assert [segments.end_of(slot, 33) for slot in range(3)] == [10, 20, 33]
    assert (segments.size_in_bytes, segments.first_base_offset, len(segments)) == (30, 5, 3)
    assert repr(segments) == "<LogSegments [5, 10, 20]>"


def test_the_last_one_is_active() -> None:
    segments = made()
    segments.add(segment(30))
    assert segments.active.base_offset == 30
    assert segments.pop_active().base_offset == 30
    assert segments.active.base_offset == 20
    assert [s.base_offset for s in segments.pop_first(2)] == [5, 10]
    assert segments.at(0) is segments.active
    segments.replace_all(segment(7))
    assert [s.base_offset for s in segments] == [7]
    assert segments.active.base_offset == 7


def test_it_is_never_empty_and_always_ascends() -> None:
    segments = made()
    with pytest.raises(AssertionError):
        segments.add(segment(20))
    with pytest.raises(AssertionError):
        segments.pop_first(3)
    with pytest.raises(AssertionError):
        LogSegments([])
    alone = LogSegments([segment(0)])
    with pytest.raises(AssertionError):
        alone.pop_active()
