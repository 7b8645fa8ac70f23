"""The first lines of a node's log, about its start.

    barnabas 0.1.0 starts node 1 of cluster 4L6g3nShT-eMCtK--X86sw in /data
    The last run was killed or failed: 108 partitions to recover
    Recovered 61 of 108 partitions in 5.0 s: 84 segments and 1.20 GB read
    Recovered 108 partitions in 8.7 s: 131 segments and 2.14 GB read, 57 B cut off
    Nothing is lost that the last run wrote: the machine has not started again since

A start that fails because of its settings, its directory or its port says nothing here: its user reads one line.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from barnabas.log.disk import Disk
from barnabas.log.recovery import Recovery
from barnabas.version import VERSION
from barnabas.words.byte_sizes import format_bytes

if TYPE_CHECKING:
    from barnabas.log.meta_properties import MetaProperties

__all__ = ["RecoveryReport", "say_start", "say_what_is_left", "warn_of_readers", "warn_of_the_clock"]

logger = logging.getLogger(__name__)

_EVERY_NS = 5_000_000_000


def say_start(
    meta: MetaProperties, root: str, recovery: Recovery, *, was_formatted: bool, was_used: bool, was_clean: bool
) -> None:
    """Name the release, the node, the cluster and the directory; say how the last run ended, and which logs are to be recovered."""
    where = os.path.abspath(root)
    logger.info("barnabas %s starts node %d of cluster %s in %s", VERSION, meta.node_id, meta.cluster_id, where)
    partitions = _count(recovery.logs, "partition")
    if not was_formatted:
        logger.info("The directory was empty and is formatted now")
    elif not was_used:
        logger.info("This is the first run in this directory")
    elif was_clean:
        logger.info("The last run stopped cleanly: %s, nothing to recover", partitions)
    else:
        logger.info("The last run was killed or failed: %s to recover", partitions)


class RecoveryReport:
    """Says how far the recovery of a directory is: now and then, and at its end.

    Args:
        monotonic_ns: the clock for durations.
    """

    def __init__(self, monotonic_ns: Callable[[], int]) -> None:
        self._monotonic_ns = monotonic_ns
        self._began = self._said = monotonic_ns()
        self._last: Recovery | None = None

    def __repr__(self) -> str:
        return f"<RecoveryReport {self._last!r}>"

    @property
    def has_recovered(self) -> bool:
        """Whether there was a log to recover."""
        return self._last is not None

    def add(self, recovery: Recovery) -> None:
        """Note that one more log is recovered."""
        self._last = recovery
        if recovery.done < recovery.logs and self._monotonic_ns() - self._said >= _EVERY_NS:
            self._say(recovery)

    def end(self) -> None:
        """Sum up the whole recovery, if there was one."""
        if self._last is not None:
            self._say(self._last)

    def _say(self, recovery: Recovery) -> None:
        self._said = self._monotonic_ns()
        cut = f", {format_bytes(recovery.bytes_cut)} cut off" if recovery.bytes_cut else ""
        logger.info(
            "Recovered %s%s in %.1f s: %s and %s read%s",
            f"{recovery.done} of " if recovery.done < recovery.logs else "",
            _count(recovery.logs, "partition"),
            (self._said - self._began) / 1e9,
            _count(recovery.segments, "segment"),
            format_bytes(recovery.bytes_read),
            cut,
        )


def say_what_is_left(doubt: str) -> None:
    """Say, after a recovery, whether this node claims to have all that its last run wrote.

    Args:
        doubt: why it does not, in words; empty if it does.
    """
    if doubt:
        logger.info("What the last run wrote at last may be lost: %s", doubt)
    else:
        logger.info("Nothing is lost that the last run wrote: the machine has not started again since")


def warn_of_the_clock(doubt: str) -> None:
    """Warn that the clock is earlier than the last run, in one line.

    Args:
        doubt: of `clock_check.set_back`; empty if it is not.
    """
    if doubt:
        logger.warning("%s", doubt)


def warn_of_readers(disk: Disk, root: str, names: Sequence[str], what: str) -> None:
    """Warn if other users of this machine can read a directory, as one that an older release or Kafka has made.

    Args:
        names: files in it; it is enough if others can read one of them, and enter the directories above.
        what: the directory's content, in words.
    """
    if any(all(disk.is_public(path) for path in _way_to(root, name)) for name in names):
        logger.warning("%s can be read by every user of this machine, with %s (chmod -R go-rwx %s)", root, what, root)


def _way_to(root: str, name: str) -> Iterator[str]:
    yield root
    for part in name.split("/"):
        yield (root := f"{root}/{part}")


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
