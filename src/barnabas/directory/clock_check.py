"""Whether the clock of a machine is earlier than the last run in a directory: it was set back, or was ahead then.

A running broker writes its checkpoints every few seconds, and a node the metadata log; these files have the time of that. The times of
records say nothing, because clients may date them as they like. A start is not refused: the clock may have been ahead before, and is
right now ([decision 24](docs/decisions/0024-a-clock-set-back-is-named.md)).
"""

from __future__ import annotations

from barnabas.log.checkpoints import (
    LOG_START_OFFSET_CHECKPOINT,
    RECOVERY_POINT_CHECKPOINT,
    REPLICATION_OFFSET_CHECKPOINT,
)
from barnabas.log.disk import Disk
from barnabas.log.running_file import RUNNING_FILE
from barnabas.quorum.metadata_log import DIRECTORY
from barnabas.words.times import format_time_ms

__all__ = ["last_written_ms", "set_back"]

TOLERANCE_MS = 10_000
"""A clock that is slewed, or set by a time service as the machine starts, may be off so far."""

_OF_A_RUN = (RECOVERY_POINT_CHECKPOINT, LOG_START_OFFSET_CHECKPOINT, REPLICATION_OFFSET_CHECKPOINT, RUNNING_FILE)


def last_written_ms(disk: Disk, root: str) -> int:
    """Return when a run last wrote to a directory, in milliseconds since 1970; 0 if none has.

    Raises:
        OSError: the disk failed.
    """
    log = f"{root}/{DIRECTORY}"
    paths = [f"{root}/{name}" for name in _OF_A_RUN]
    if disk.exists(log):
        paths += [f"{log}/{name}" for name in disk.listdir(log)]
    times = [disk.modified_ms(path) for path in paths if disk.exists(path) and not disk.is_dir(path)]
    return max(times, default=0)


def set_back(root: str, last_ms: int, now_ms: int) -> str:
    """Return in words that the clock is earlier than the last run; empty if it is not."""
    if now_ms + TOLERANCE_MS >= last_ms:
        return ""
    return (
        f"The clock of this machine is set back, or was ahead: it says {format_time_ms(now_ms)}, and the last run wrote to"
        f" {root} at {format_time_ms(last_ms)} (if it is behind, set it right: until then timed retention waits, and records"
        " that clients date more than message.timestamp.after.max.ms later are refused)"
    )
