"""Whether the disk of a data directory takes writes: the checkpoints, which are written all the time, show it.

The broker logs one line when the disk begins to refuse writes, and one when it takes them again. In between it does not log other
failed writes: they have the same cause.

A broker with several directories listens (`on_bad_disk`), and takes the directory offline for good. It hears of every failed write but
those for want of room, memory or open files, which may come back; and of every failed sync.

Source: Kafka's `LogDirFailureChannel`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from barnabas.log.errors import in_words, is_of_a_bad_disk

__all__ = ["LogDirFailure"]

logger = logging.getLogger(__name__)


class LogDirFailure:
    """The state of one data directory.

    Attributes:
        is_offline: whether the disk has not taken the last checkpoint, or the broker has taken the directory offline.
        on_bad_disk: called with the reason in words; None for a broker with one directory.
    """

    def __init__(self, root_dir: str) -> None:
        self.is_offline = False
        self.on_bad_disk: Callable[[str], None] | None = None
        self._root_dir = root_dir

    def __repr__(self) -> str:
        return f"<LogDirFailure {self._root_dir} {'offline' if self.is_offline else 'online'}>"

    def failed(self, what: str, error: Exception) -> None:
        """The disk did not take a checkpoint.

        Args:
            what: the file in words, for the line of the log.
        """
        if not self.is_offline:
            self.is_offline = True
            logger.error("%s takes no writes: cannot write %s: %s", self._root_dir, what, in_words(error))
        self.noticed(error, f"cannot write {what}")

    def noticed(self, error: Exception, what: str) -> None:
        """Some work on the directory failed, not necessarily because of its disk.

        Args:
            what: was tried, in words.
        """
        if is_of_a_bad_disk(error):
            self.is_bad(f"{what}: {in_words(error)}")

    def is_bad(self, reason: str) -> None:
        """The disk has failed: what was written to it may be lost."""
        if self.on_bad_disk is not None:
            self.on_bad_disk(reason)

    def succeeded(self) -> None:
        """The disk took a checkpoint."""
        if self.is_offline:
            self.is_offline = False
            logger.info("%s takes writes again", self._root_dir)
