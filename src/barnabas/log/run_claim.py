"""Whether the logs of a directory have all that the last run wrote, which did not stop in order.

The page cache of a machine has what a killed process has written, and only a power cut takes it. Then the broker names the last run's epoch
at its registration, as after a clean stop, and stays in the in-sync replicas. It does so if `running_file` proves that the machine has gone
on, and recovery has found every log whole: nothing cut off but one incomplete batch, in whose write the process died, no log that ends
below its high watermark's checkpoint, and no log missing that has one.

After a failed sync the system may have dropped what it was given, so this run's file goes, and the next run claims nothing. If the disk
refuses even that, its file system takes no writes until it is mounted again, and then the file proves nothing either.

The broker of Kafka never claims this: its controller takes every broker that did not stop in order out of the in-sync replicas.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Container, Iterable

from barnabas.log import log_files, running_file
from barnabas.log.disk import Disk
from barnabas.log.errors import in_words
from barnabas.log.offset_checkpoints import Key

__all__ = ["RunClaim"]

logger = logging.getLogger(__name__)

LOGS_NAMED = 5
"""How many damaged logs a doubt names."""


class RunClaim:
    """The claim of a run about the one before, and the file for the run after it.

    Args:
        run_blocking: runs a function elsewhere and returns its future; None runs it in this turn.

    Attributes:
        doubt: why the logs may lack something that the last run wrote, in words; empty if they do not, and after a clean stop.
    """

    def __init__(
        self, disk: Disk, root: str, run_blocking: Callable[[Callable[[], None]], asyncio.Future[None]] | None
    ) -> None:
        self.doubt = ""
        self._disk = disk
        self._root = root
        self._run_blocking = run_blocking
        self._is_given_up = False

    def __repr__(self) -> str:
        return f"<RunClaim {self._root} {self.doubt or 'without a doubt'}>"

    def missing(
        self, with_records: Iterable[Key], found: Container[Key], moved: Iterable[tuple[int, str]]
    ) -> list[str]:
        """Return the names of logs that have committed records in the checkpoints, and no directory.

        Args:
            moved: directories of deleted logs, each with the time of its removal: of these logs nothing is missing.
        """
        deleted = {path.rpartition("/")[2].rpartition(".")[0] for _, path in moved}
        names = (log_files.partition_dir_name(*key) for key in with_records if key not in found)
        return sorted(name for name in names if name not in deleted)

    def decide(self, damaged: list[str]) -> int:
        """Return the epoch to name at the registration; -1 if something that the last run wrote may be lost.

        Args:
            damaged: the names of logs that recovery has not found whole.

        Raises:
            OSError: the disk failed.
        """
        claim = running_file.read(self._disk, self._root)
        self.doubt = claim.doubt
        if damaged and not claim.doubt:
            more = f" and {len(damaged) - LOGS_NAMED} more" if len(damaged) > LOGS_NAMED else ""
            self.doubt = f"records are missing in {', '.join(damaged[:LOGS_NAMED])}{more}"
        return -1 if self.doubt else claim.broker_epoch

    async def prepare(self, broker_epoch: int) -> None:
        """Write the file of this run, which has this epoch. Without it the next run claims nothing, so a failure is only a warning."""
        if self._is_given_up:
            return
        try:
            if self._run_blocking is None:
                running_file.write(self._disk, self._root, broker_epoch)
            else:
                await self._run_blocking(lambda: running_file.write(self._disk, self._root, broker_epoch))
        except OSError as error:
            what = "%s: cannot write %s, so that a kill will count as a loss of power: %s"
            logger.warning(what, self._root, running_file.RUNNING_FILE, in_words(error))
        if self._is_given_up:
            self._remove()  # A sync has failed while the file was written.

    def give_up(self) -> None:
        """Remove the file of this run, because a sync has failed."""
        if not self._is_given_up:
            self._is_given_up = True
            self._remove()

    def _remove(self) -> None:
        try:
            running_file.remove(self._disk, self._root)
        except OSError as error:
            logger.error("%s: cannot remove %s: %s", self._root, running_file.RUNNING_FILE, in_words(error))
