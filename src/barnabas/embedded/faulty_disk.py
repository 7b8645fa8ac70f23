"""The disk of a node, which a test may fill up or slow down: the operating system's files, behind a fault.

    log, checkpoints, metadata log ──► FaultyDisk ──► OsDisk

- A full disk takes no bytes: a write fails with ENOSPC, as the kernel's does. Reads, syncs and deletions work.
- On a slow disk each write and each sync takes longer. A write blocks the node's loop meanwhile, as a device that stalls does.
- Reads are never slow: most leave by `sendfile` from the page cache, which this does not see. The process that compacts has its own disk.
"""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable

from barnabas.embedded.fault_plan import NO_DISK_FAULT, DiskFault
from barnabas.embedded.fault_tickets import FaultTickets
from barnabas.log.disk import Buffer, OsDisk, OsDiskFile

__all__ = ["FaultyDisk"]


class _State:
    """The fault of one disk, which its open files share."""

    def __init__(self, sleep: Callable[[float], object]) -> None:
        self._sleep = sleep
        self._slow_s = 0.0
        self._full: tuple[FaultTickets, ...] = ()
        self._slow: tuple[FaultTickets, ...] = ()

    def apply(self, fault: DiskFault) -> None:
        self._slow_s = fault.slow_s
        self._full = tuple(FaultTickets(path) for path in fault.full)
        self._slow = tuple(FaultTickets(path) for path in fault.slow)

    def delay(self) -> None:
        if self._slow_s:
            for each in self._slow:
                each.take()
            self._sleep(self._slow_s)

    def write(self, path: str | None = None) -> None:
        """Delay a write, and fail it if the disk is full."""
        self.delay()
        for each in self._full:
            each.take()
        if self._full:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)


class _FaultyFile(OsDiskFile):
    __slots__ = ("_state",)

    def __init__(self, fd: int, state: _State) -> None:
        super().__init__(fd)
        self._state = state

    def pwrite(self, data: Buffer, offset: int) -> int:
        self._state.write()
        return super().pwrite(data, offset)

    def sync(self) -> None:
        self._state.delay()
        super().sync()


class FaultyDisk(OsDisk):
    """The operating system's files, with the faults that `apply` names.

    Args:
        sleep: blocks the caller for some seconds.
    """

    __slots__ = ("_state",)

    def __init__(self, sleep: Callable[[float], object] = time.sleep) -> None:
        self._state = _State(sleep)

    def __repr__(self) -> str:
        return "<FaultyDisk>"

    def apply(self, fault: DiskFault = NO_DISK_FAULT) -> None:
        """Let this fault happen, and no other."""
        self._state.apply(fault)

    def open(self, path: str, *, create: bool = False) -> OsDiskFile:
        return _FaultyFile(super().open(path, create=create).fileno(), self._state)

    def sync_file(self, path: str) -> None:
        self._state.delay()
        super().sync_file(path)

    def write_file_atomic(self, path: str, data: bytes, *, sync: bool = True) -> None:
        self._state.write(path)
        super().write_file_atomic(path, data, sync=sync)
