"""A disk that is full, and one that is slow."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from barnabas.embedded.fault_plan import NO_DISK_FAULT, DiskFault
from barnabas.embedded.faulty_disk import FaultyDisk


def test_a_full_disk_takes_nothing_until_it_has_room(tmp_path: Path) -> None:
    disk = FaultyDisk()
    file = disk.open(str(tmp_path / "log"), create=True)
    assert file.pwrite(b"one", 0) == 3
    disk.apply(DiskFault(full=(str(tmp_path / "fault-1"),)))
    for write in (lambda: file.pwrite(b"two", 3), lambda: disk.write_file_atomic(str(tmp_path / "small"), b"x")):
        with pytest.raises(OSError) as failed:
            write()
        assert failed.value.errno == errno.ENOSPC
    assert (file.pread(10, 0), file.size()) == (b"one", 3)
    file.sync()
    assert (tmp_path / "fault-1").read_bytes() == b".."
    disk.apply(NO_DISK_FAULT)
    assert file.pwrite(b"two", 3) == 3
    disk.write_file_atomic(str(tmp_path / "small"), b"x")
    assert (tmp_path / "fault-1").read_bytes() == b".."
    file.close()


def test_a_slow_disk_takes_longer_for_writes_and_syncs(tmp_path: Path) -> None:
    slept: list[float] = []
    disk = FaultyDisk(slept.append)
    file = disk.open(str(tmp_path / "log"), create=True)
    file.pwrite(b"one", 0)
    disk.apply(DiskFault(0.25, slow=(str(tmp_path / "fault-1"),)))
    file.pwrite(b"two", 3)
    file.sync()
    disk.sync_file(str(tmp_path / "log"))
    disk.write_file_atomic(str(tmp_path / "small"), b"x", sync=False)
    assert file.pread(6, 0) == b"onetwo"
    assert slept == [0.25] * 4
    assert (tmp_path / "fault-1").read_bytes() == b"...."
    file.close()
