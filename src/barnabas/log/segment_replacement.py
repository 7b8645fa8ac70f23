"""The exchange of old segments for a compacted one.

    step                                      what a kill leaves              which segments the next opening uses
    1  a  X.*.cleaned -> X.*.swap             .cleaned, possibly some .swap   old: a .cleaned file undoes its .swap files
       b  sync of the directory               .swap and old                   new: .swap files replace what they cover
    2  a  the list of segments changes        (in memory)
       b  old files -> .deleted               .swap and some old              new
       c  sync of the directory               .swap                           new
    3     X.*.swap -> X.*                     some .swap                      new: the rest of the .swap files is renamed

No step begins before the one before it is durable, so that no order in which names reach the disk mixes old and new: old names are
removed only when the .swap names are durable, and .swap names only when the old names are durably gone. The bytes of the new
segment were synced before.

Before 2a the exchange can be given up: the old segments are still there. From 2a on reads use the new one, at first in its `.swap` files.
Reads that have begun keep the old segment object, whose files live on as `.deleted` for file.delete.delay.ms.

If the disk fails after 2a the exchange stops there (`is_unfinished`): reads use the `.swap` files, and the next
opening finishes it. Step 3 without step 2 would leave old segments that look like good ones. Until then the log must not be
cleaned, for a `.cleaned` file at the same offset would undo the `.swap` files, and there is no other copy.

Source: Kafka's `LocalLog.replaceSegments`, which syncs the directory once, at the end.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable

from barnabas.log import log_files
from barnabas.log.cleaning_task import GroupCleaned
from barnabas.log.disk import Disk
from barnabas.log.errors import in_words
from barnabas.log.local_log import LocalLog
from barnabas.log.log_flusher import RunBlocking
from barnabas.log.log_segment import LogSegment

logger = logging.getLogger(__name__)


class SegmentReplacement:
    """One exchange. `begin` it; `on_end` is called once, with whether the new segment is in use."""

    __slots__ = (
        "_disk",
        "_due_ms",
        "_is_detached",
        "_is_given_up",
        "_local",
        "_new",
        "_on_end",
        "_on_swap",
        "_replaces",
        "_run_blocking",
        "is_unfinished",
    )

    def __init__(
        self,
        disk: Disk,
        local: LocalLog,
        new: LogSegment,
        group: GroupCleaned,
        *,
        due_ms: int,
        run_blocking: RunBlocking,
        on_swap: Callable[[], None],
        on_end: Callable[[bool], None],
    ) -> None:
        """
        Args:
            new: the segment in its `.cleaned` files, not opened yet.
            due_ms: when the files of the old segments may be removed.
            on_swap: called when the list of segments has changed.
        """
        self._disk = disk
        self._local = local
        self._new = new
        self._replaces = group.replaces
        self._due_ms = due_ms
        self._run_blocking = run_blocking
        self._on_swap = on_swap
        self._on_end = on_end
        self._is_given_up = False
        self._is_detached = False
        # The new segment is in use, but only the next opening can give it its name.
        self.is_unfinished = False

    def __repr__(self) -> str:
        return f"<SegmentReplacement {self._replaces} by {self._new!r}>"

    def begin(self) -> None:
        """Rename the new files to `.swap`, and continue when that is durable."""
        try:
            self._new.change_suffix(log_files.CLEANED, log_files.SWAP)
        except OSError as error:
            self._fail(error)
            return
        self._sync(self._swap_is_durable)

    def give_up(self) -> None:
        """End the exchange if the old segments are still in use, because the log is about to change."""
        if not self._is_given_up and self._local.segments.find(self._replaces) is not None:
            self._is_given_up = True
            self._remove_new()

    def detach(self) -> None:
        """Do nothing more: the log is closed, and the next opening finishes the exchange."""
        self._is_detached = True

    def _sync(self, then: Callable[[], None]) -> None:
        directory = self._local.directory

        def done(error: BaseException | None) -> None:
            if self._is_detached:
                return
            if error is not None:
                self._fail(error)
            else:
                then()

        self._run_blocking(lambda: self._disk.sync_dir(directory), done)

    def _swap_is_durable(self) -> None:
        old = None if self._is_given_up else self._local.segments.find(self._replaces)
        if old is None:
            self._fail(None)
            return
        segments = self._local.segments
        end_offset = segments.end_of(segments.slot(old[-1].base_offset), -1)
        try:
            self._new.transaction_index.note_present()
            if not self._new.open_sealed(end_offset, is_cleaned=True):
                raise OSError(f"{self._new.path} does not hold what was written to it")
            self._local.replaced_by(old, self._new, self._due_ms)
        except OSError as error:
            if segments.find(self._replaces) is None:
                self._on_swap()
            self._fail(error)
            return
        self._on_swap()
        self._sync(self._old_names_are_gone)

    def _old_names_are_gone(self) -> None:
        # The segment, its file and its directory may have been removed since.
        try:
            self._local.in_place(self._new)
        except OSError as error:
            self._fail(error)
            return
        self._on_end(True)

    def _fail(self, error: BaseException | None) -> None:
        is_in_use = self.is_unfinished = self._new in list(self._local.segments)
        if error is not None and not isinstance(error, FileNotFoundError):
            end = "; the next start will finish it, and the log is not cleaned until then" if is_in_use else ""
            logger.error("%s: cannot exchange segments: %s%s", self._local.directory, in_words(error), end)
        if not is_in_use:
            self._remove_new()
        self._on_end(is_in_use)

    def _remove_new(self) -> None:
        self._new.close()
        for path in self._new.file_paths():
            stem = path.removesuffix(log_files.SWAP).removesuffix(log_files.CLEANED)
            # The `.cleaned` files last: while one of them is there, recovery ignores the `.swap` files.
            for suffix in (log_files.SWAP, log_files.CLEANED):
                with contextlib.suppress(OSError):
                    self._disk.remove(stem + suffix)
