"""Lines of the log that a peer can cause as often as it likes: a few a minute about each subject, the others are counted.

The first line about a subject, such as a peer's address, is logged immediately; the caller chooses how many more of its minute are
logged as they come. The others are counted, and their last one is logged when the minute is over, with the count. A subject without a
line for a whole minute is forgotten.

Memory is bounded: beyond `SUBJECTS` subjects, all others are one.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from barnabas.steps import Loop

__all__ = ["RepeatedLines"]

PERIOD_SECONDS = 60.0
SUBJECTS = 1000
OTHERS = "other peers"


class _Subject:
    """The lines about one subject in its minute: how many were logged, how many left out."""

    __slots__ = ("count", "last", "logged", "timer")

    def __init__(self) -> None:
        self.logged = 1
        self.count = 0
        self.last: tuple[logging.Logger, int, str] | None = None
        self.timer: Any

    def __repr__(self) -> str:
        return f"<_Subject count={self.count}>"


class RepeatedLines:
    """The lines of one node."""

    def __init__(self, loop: Loop) -> None:
        self._loop = loop
        self._subjects: dict[str, _Subject] = {}

    def __repr__(self) -> str:
        return f"<RepeatedLines subjects={len(self._subjects)}>"

    def log(
        self,
        logger: logging.Logger,
        level: int,
        about: str,
        line: str,
        *,
        at_most: int = 1,
        error: BaseException | None = None,
    ) -> None:
        """Log a line about a subject, or count it.

        Args:
            at_most: how many lines of a minute are logged as they come.
            error: its traceback follows the line, unless the line is only counted.
        """
        if not logger.isEnabledFor(level):
            return
        if about not in self._subjects and len(self._subjects) >= SUBJECTS:
            about = OTHERS
        subject = self._subjects.get(about)
        if subject is None:
            logger.log(level, "%s", line, exc_info=error)
            self._begin_minute(about)
        elif subject.logged < at_most:
            logger.log(level, "%s", line, exc_info=error)
            subject.logged += 1
        else:
            subject.count += 1
            subject.last = logger, level, line

    def close(self) -> None:
        """Log the counts."""
        for about in list(self._subjects):
            self._log_count(about)

    def _begin_minute(self, about: str) -> None:
        subject = self._subjects[about] = _Subject()
        subject.timer = self._loop.call_later(PERIOD_SECONDS, self._minute_over, about)

    def _minute_over(self, about: str) -> None:
        if self._log_count(about):
            self._begin_minute(about)

    def _log_count(self, about: str) -> bool:
        """Forget a subject, and return whether a line about its last minute was logged."""
        subject = self._subjects.pop(about)
        subject.timer.cancel()
        if subject.last is None:
            return False
        logger, level, line = subject.last
        more = f" ({subject.count:,} lines about {about} in the last minute; this is the last one)"
        logger.log(level, "%s%s", line, more if subject.count > 1 else "")
        return True
