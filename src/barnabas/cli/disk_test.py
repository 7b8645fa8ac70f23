"""How fast a directory's disk writes and syncs, measured with one nameless file.

The file is written as a log segment is: in large pieces, one after the other, and synced at the end; then short records are appended, each
synced by itself, as a quorum's vote or a flush of every message is. The bytes are random, so that no disk compresses them away.

The file never has a name (`O_TMPFILE`), or loses it immediately: whatever ends the process, the kernel frees the room. The time is bounded,
so a slow disk is measured with fewer bytes, and what was measured is in the result.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable
from typing import NamedTuple

from barnabas.cli.latencies import Latencies, Summary
from barnabas.words.byte_sizes import format_bytes

_PIECE = 1 << 20
_RECORD = 4096
_SYNCS = 500
_SPARED = 0.05
"""The part of the disk that stays free: a broker that runs there needs room meanwhile."""


class NoRoom(Exception):
    """The disk has too little room for the test; the text says how much there is."""


class DiskSpeed(NamedTuple):
    """A measured directory.

    Attributes:
        written: bytes that were written one after the other.
        bytes_per_s: with the sync at the end.
        syncs: how many short records were synced, each by itself.
        sync: how long one took.
    """

    written: int
    bytes_per_s: float
    syncs: int
    sync: Summary


def measure_disk(directory: str, size: int, within_s: float, now: Callable[[], float] = time.perf_counter) -> DiskSpeed:
    """Measure a directory's disk.

    Args:
        size: bytes to write at most.
        within_s: seconds for each half, the writing and the syncing.
        now: seconds of a clock.

    Raises:
        NoRoom: less than a twentieth of the disk would stay free.
        OSError: the directory cannot be written to.
    """
    _check_room(directory, size)
    piece = os.urandom(_PIECE)
    with tempfile.TemporaryFile(dir=directory, buffering=0) as file:
        begun, written = now(), 0
        while written < size and (not written or now() - begun < within_s):
            written += file.write(piece[: size - written])
        os.fsync(file.fileno())
        took_s = now() - begun
        latencies = Latencies()
        end = now() + within_s
        while len(latencies) < _SYNCS and (not latencies or now() < end):
            before = now()
            file.write(piece[:_RECORD])
            os.fsync(file.fileno())
            latencies.add(now() - before)
    return DiskSpeed(written, written / max(took_s, 1e-9), len(latencies), latencies.summary())


def _check_room(directory: str, size: int) -> None:
    found = os.statvfs(directory)
    free, total = found.f_bavail * found.f_frsize, found.f_blocks * found.f_frsize
    if free - size - _SYNCS * _RECORD < total * _SPARED:
        raise NoRoom(
            f"{format_bytes(free)} of {format_bytes(total)} are free: {format_bytes(size)} of a test would leave too little"
        )
