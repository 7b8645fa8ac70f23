"""What a process costs: CPU seconds and resident memory of it and its descendants (Linux)."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from dataclasses import dataclass
from pathlib import Path

PAGE = os.sysconf("SC_PAGE_SIZE")


def _stat(pid: int) -> list[str]:
    """The fields of /proc/PID/stat from the third on: the command's name may hold spaces."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


def family(root: int) -> set[int]:
    parents = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                parents[int(entry.name)] = int(_stat(int(entry.name))[1])
    found = {root}
    while more := {pid for pid, parent in parents.items() if parent in found} - found:
        found |= more
    return found


def _cpu_clock(pid: int) -> int:
    """Return the CPU clock of another process, as clock_getcpuclockid(3) makes it: nanoseconds, where /proc has hundredths."""
    return ~pid << 3 | 2


def cpu_by_process(root: int) -> dict[int, float]:
    found = {}
    for pid in family(root):
        with contextlib.suppress(OSError):
            found[pid] = time.clock_gettime(_cpu_clock(pid))
    return found


def cpu_seconds(root: int) -> float:
    return sum(cpu_by_process(root).values())


def resident_megabytes(root: int) -> float:
    total = 0.0
    for pid in family(root):
        with contextlib.suppress(OSError):
            total += int(_stat(pid)[21]) * PAGE / 1e6
    return total


def peak_megabytes(pid: int) -> float:
    """Return the most resident memory that a process has had, as the kernel counts it."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024 / 1e6


@dataclass
class Cost:
    """Around a piece of work: wall seconds and the CPU seconds of one process family."""

    pid: int
    wall: float = 0.0
    cpu: float = 0.0

    def __enter__(self) -> Cost:
        self._cpu, self._wall = cpu_seconds(self.pid), time.perf_counter()
        return self

    def __exit__(self, *_: object) -> None:
        self.wall = time.perf_counter() - self._wall
        self.cpu = cpu_seconds(self.pid) - self._cpu


class Peak:
    """The most resident memory a process family had meanwhile, sampled."""

    def __init__(self, pid: int, every_seconds: float = 0.25) -> None:
        self.pid, self.every, self.megabytes = pid, every_seconds, 0.0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True)

    def _sample(self) -> None:
        while not self._stop.wait(self.every):
            self.megabytes = max(self.megabytes, resident_megabytes(self.pid))

    def __enter__(self) -> Peak:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()


class FamilyCost:
    """Around a piece of work: the CPU seconds of a process family whose members come and go.

    A process that ends takes its CPU time with it, so all are asked every quarter of a second; of one that ends, what
    it did since then is missed.
    """

    def __init__(self, pid: int, every_seconds: float = 0.25) -> None:
        self.pid, self.every, self.cpu = pid, every_seconds, 0.0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def sample(self) -> None:
        self._last |= cpu_by_process(self.pid)

    def _watch(self) -> None:
        while not self._stop.wait(self.every):
            self.sample()

    def __enter__(self) -> FamilyCost:
        self._first = cpu_by_process(self.pid)
        self._last = dict(self._first)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        self.sample()
        self.cpu = sum(self._last.values()) - sum(self._first.values())
