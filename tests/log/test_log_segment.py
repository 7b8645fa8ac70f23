"""One segment: writes that fail, and look-ups at every density."""

from __future__ import annotations

import errno

import pytest

from barnabas.log.errors import (
    KafkaStorageError,
)
from tests.log.small_log import open_log, reopen
from tests.log.story import append, read_all, read_from
from tests.simulation.disk import SimDisk


@pytest.mark.parametrize("interval", [0, 100, 4096])
@pytest.mark.parametrize("segment_bytes", [500, 3000, 1 << 30])
def test_every_offset_is_found_with_every_density(interval: int, segment_bytes: int) -> None:
    disk = SimDisk()
    log = open_log(disk, index_interval_bytes=interval, segment_bytes=segment_bytes)
    append(log, 40)
    for _ in range(2):
        for offset in range(80):
            record = next(iter(read_from(log, offset)))
            assert (record.offset, record.key) == (offset, b"key-%d" % offset)
        assert len(read_all(log)) == 80
        log = reopen(log, disk)


def test_short_writes_are_completed() -> None:
    disk = SimDisk(3, short_write_rate=0.7)
    log = open_log(disk, segment_bytes=700)
    append(log, 30)
    assert len(read_all(reopen(log, disk))) == 60


def test_write_that_cannot_be_cut_back_is_cut_before_the_next() -> None:
    disk = SimDisk()
    log = open_log(disk)
    append(log, 1)
    failing = True

    def fail(call: str, path: str) -> OSError | None:
        if not failing:
            return None
        if call == "pwrite":
            disk.write(disk._files[path], b"half a batch", log.size_in_bytes)
            return OSError(errno.EIO, "gone wrong")
        return OSError(errno.EIO, "gone wrong") if call == "truncate" else None

    disk.on_call = fail
    for _ in range(2):
        with pytest.raises(KafkaStorageError):
            append(log, 1)
    failing = False
    append(log, 1)
    assert len(read_all(reopen(log, disk, clean=False))) == 4
