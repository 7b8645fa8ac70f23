"""Whether the disk of a data directory takes writes: the checkpoints, which are written all the time, show it.

The broker logs one line when the disk begins to refuse writes, and one when it takes them again. In between it does not log other
failed writes: they have the same cause.

Source: Kafka's `LogDirFailureChannel`, whose broker takes the directory offline then for good.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from barnabas.log.errors import KafkaStorageError, in_words

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

    def watch(self, what: str, write: Callable[[], None]) -> None:
        """Write a checkpoint, and note whether the disk takes it; no failure is raised.

        Args:
            what: the file in words, for the line of the log.
        """
        was_offline = self.is_offline
        try:
            write()
        except (KafkaStorageError, OSError) as error:
            self.is_offline = True
            if not was_offline:
                logger.error("%s takes no writes: cannot write %s: %s", self._root_dir, what, in_words(error))
        else:
            self.is_offline = False
            if was_offline:
                logger.info("%s takes writes again", self._root_dir)
