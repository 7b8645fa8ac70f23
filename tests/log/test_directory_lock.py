from __future__ import annotations

import pytest

from barnabas.log.directory_lock import DirectoryLock
from barnabas.log.disk import DiskLocked
from barnabas.simulation.disk import SimDisk


def test_one_holds_a_lock_until_it_is_released() -> None:
    disk = SimDisk()
    first, second = DirectoryLock(disk, "/data/a"), DirectoryLock(disk, "/data/a")
    first.lock()
    first.lock()
    assert (first.is_locked, disk.is_dir("/data/a")) == (True, True)
    with pytest.raises(DiskLocked):
        second.lock()
    first.release()
    first.release()
    second.lock()
    assert (first.is_locked, second.is_locked) == (False, True)
    second.release()
