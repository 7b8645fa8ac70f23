"""Whether the disk of a data directory takes writes: the checkpoints, which are written all the time, show it.

The broker logs one line when the disk begins to refuse writes, and one when it takes them again. In between it does not log other
failed writes: they have the same cause.

Source: Kafka's `LogDirFailureChannel`, whose broker takes the directory offline then for good.
"""

from __future__ import annotations

import logging

from barnabas.log.errors import in_words

__all__ = ["LogDirFailure"]

logger = logging.getLogger(__name__)


class LogDirFailure:
    """The state of one data directory.

    Attributes:
        is_offline: whether the disk has not taken the last checkpoint.
    """

    def __init__(self, root_dir: str) -> None:
        self.is_offline = False
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

    def succeeded(self) -> None:
        """The disk took a checkpoint."""
        if self.is_offline:
            self.is_offline = False
            logger.info("%s takes writes again", self._root_dir)
