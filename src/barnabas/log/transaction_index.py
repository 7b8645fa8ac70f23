"""The aborted transactions of a segment (data plane).

    .txnindex: 34 bytes an entry, ascending in lastOffset, big-endian
        0   2  version = 0
        2   8  producerId
        10  8  firstOffset of the transaction
        18  8  lastOffset: that of its ABORT marker
        26  8  lastStableOffset when the marker was written

A fetch with isolation level read_committed carries the entries that overlap what it returns. The file exists only when the segment
has an aborted transaction; few have, so entries are written at once, and read from the file when first asked for. One that the disk refuses
stays in memory, where readers find it, and is tried again with the next and whenever the other indexes are written: the marker is in the
log by then, and readers must not take the transaction's records for committed.

Crash argument: a function of the `.log`; recovery of a segment empties it and writes it again from the markers. A cut
inside an entry ends the reading before it, and only unsynced segments, which are recovered, can have such a cut.

Source: Kafka's `TransactionIndex`, `AbortedTxn`.
"""

from __future__ import annotations

import bisect
import contextlib
import itertools
import logging
import struct
from collections.abc import Iterator
from typing import NamedTuple

from barnabas.log.disk import Disk, write_fully

logger = logging.getLogger(__name__)

ENTRY = struct.Struct(">hqqqq")
VERSION = 0


class AbortedTransaction(NamedTuple):
    """One aborted transaction."""

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


def _last_offset(entry: AbortedTransaction) -> int:
    return entry.last_offset


class TransactionIndex:
    """The transaction index of one segment."""

    __slots__ = ("_disk", "_known", "_maybe_present", "_pending", "is_kept", "path")

    def __init__(self, disk: Disk, path: str, *, maybe_present: bool = False) -> None:
        self._disk = disk
        self.path = path
        self._maybe_present = maybe_present
        # What is in the file, once a reader has asked.
        self._known: list[AbortedTransaction] | None = None
        # In the log's order; the disk refused the first of them.
        self._pending: list[AbortedTransaction] = []
        # False once recovery has emptied it: then it must be filled again from the markers.
        self.is_kept = True

    def note_present(self) -> None:
        """Says that the file was seen when the directory was listed."""
        self._known = None
        self._maybe_present = True

    def note(self, aborted: AbortedTransaction) -> None:
        """Adds an entry whose marker is in the log; it counts from now on, even if the disk does not take it yet."""
        self._pending.append(aborted)
        try:
            self.write_pending()
        except OSError as error:
            logger.warning("%s: %d entries are not on the disk yet: %s", self.path, len(self._pending), error)

    def write_pending(self) -> None:
        """Writes what the disk has refused so far.

        Raises:
            OSError: it refuses again; nothing is lost.
        """
        while self._pending:
            self.append(self._pending[0])
            del self._pending[0]

    def append(self, aborted: AbortedTransaction) -> None:
        """Writes an entry.

        Raises:
            OSError: the disk refused; a part of it that was written is written over by the next.
        """
        file = self._disk.open(self.path, create=True)
        try:
            size = file.size()
            write_fully(file, ENTRY.pack(VERSION, *aborted), size - size % ENTRY.size)
        finally:
            file.close()
        self._maybe_present = True
        if self._known is not None:
            self._known.append(aborted)

    def entries(self) -> list[AbortedTransaction]:
        """All entries, ascending in the offset of the marker."""
        return [*self._written(), *self._pending]

    def ending_at_or_after(self, offset: int) -> Iterator[AbortedTransaction]:
        """The entries whose marker is at or above `offset`, ascending."""
        known = self._written()
        yield from itertools.islice(known, bisect.bisect_left(known, offset, key=_last_offset), None)
        for entry in self._pending:
            if entry.last_offset >= offset:
                yield entry

    def _written(self) -> list[AbortedTransaction]:
        if self._known is None:
            self._known = self._read()
        return self._known

    def _read(self) -> list[AbortedTransaction]:
        if not self._maybe_present:
            return []
        try:
            data = self._disk.read_file(self.path)
        except FileNotFoundError:
            return []
        found = []
        for version, *fields in ENTRY.iter_unpack(data[: len(data) - len(data) % ENTRY.size]):
            if version != VERSION:
                break
            found.append(AbortedTransaction(*fields))
        return found

    def truncate_to(self, offset: int) -> None:
        """Drops the transactions whose marker lies at or above `offset`."""
        self._pending = [entry for entry in self._pending if entry.last_offset < offset]
        entries = self._written()
        kept = [entry for entry in entries if entry.last_offset < offset]
        if len(kept) != len(entries):
            self._known = None
            file = self._disk.open(self.path)
            try:
                file.truncate(len(kept) * ENTRY.size)
            finally:
                file.close()

    def reset(self) -> None:
        """Empties the index, to be filled again from the log's markers."""
        self.is_kept = False
        self._pending.clear()
        self._known = None
        if self._maybe_present or self._disk.exists(self.path):
            self._maybe_present = False
            with contextlib.suppress(FileNotFoundError):
                self._disk.remove(self.path)
