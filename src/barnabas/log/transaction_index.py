"""The aborted transactions of a segment.

    .txnindex: 34 bytes an entry, ascending in lastOffset, big-endian
        0   2  version = 0
        2   8  producerId
        10  8  firstOffset of the transaction
        18  8  lastOffset: that of its ABORT marker
        26  8  lastStableOffset when the marker was written

The response to a read_committed fetch carries the entries that overlap its records. The file exists only if the segment
has an aborted transaction. Few have, so entries are written directly, and read from the file on first use. If the disk rejects an entry it
stays in memory, where readers find it, and is written with the next one or with the other indexes: the marker is already in the
log, and readers must not take the transaction's records for committed.

Crash argument: the file is a function of the `.log`; recovery of a segment empties it and writes it again from the markers. A reader
stops before a cut entry. Only unsynced segments, which are recovered, can have such a cut. A clean stop syncs the file, because the
next start could not tell a lost entry from a transaction that was committed.

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

from barnabas.log.disk import Disk, parent_dir, write_fully
from barnabas.log.errors import in_words

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

    __slots__ = ("_disk", "_known", "_maybe_present", "_pending", "is_kept", "is_synced", "path")

    def __init__(self, disk: Disk, path: str, *, maybe_present: bool = False) -> None:
        self._disk = disk
        self.path = path
        self._maybe_present = maybe_present
        # Whether every change of this run is durable, or the flusher sees to it.
        self.is_synced = True
        # The contents of the file, after the first read.
        self._known: list[AbortedTransaction] | None = None
        # In the log's order; the disk has rejected the first of them.
        self._pending: list[AbortedTransaction] = []
        # False once recovery has emptied the index, which must then be filled again from the markers.
        self.is_kept = True

    def note_present(self) -> None:
        """Note that the file may exist."""
        self._known = None
        self._maybe_present = True

    def note(self, aborted: AbortedTransaction) -> None:
        """Add an entry whose marker is in the log; it counts from now on, even if the disk fails."""
        self._pending.append(aborted)
        try:
            self.write_pending()
        except OSError as error:
            logger.warning("%s: %d entries are not on the disk yet: %s", self.path, len(self._pending), in_words(error))

    def write_pending(self) -> None:
        """Write the entries that the disk has rejected so far.

        Raises:
            OSError: the disk failed again; nothing is lost.
        """
        while self._pending:
            self.append(self._pending[0])
            del self._pending[0]

    def append(self, aborted: AbortedTransaction) -> None:
        """Write an entry.

        Raises:
            OSError: the disk failed; the next entry overwrites what was written of this one.
        """
        self.is_synced = False
        file = self._disk.open(self.path, create=True)
        try:
            size = file.size()
            write_fully(file, ENTRY.pack(VERSION, *aborted), size - size % ENTRY.size)
        finally:
            file.close()
        self._maybe_present = True
        if self._known is not None:
            self._known.append(aborted)

    def sync(self) -> None:
        """Make all changes of this run durable.

        Raises:
            OSError: the disk failed.
        """
        if not self.is_synced:
            with contextlib.suppress(FileNotFoundError):
                self._disk.sync_file(self.path)
            self._disk.sync_dir(parent_dir(self.path))
            self.is_synced = True

    def entries(self) -> list[AbortedTransaction]:
        """Return all entries, ascending in the offset of the marker."""
        return [*self._written(), *self._pending]

    def ending_at_or_after(self, offset: int) -> Iterator[AbortedTransaction]:
        """Yield the entries whose marker is at or above `offset`, ascending."""
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
        """Drop the transactions whose marker lies at or above `offset`."""
        self._pending = [entry for entry in self._pending if entry.last_offset < offset]
        entries = self._written()
        kept = [entry for entry in entries if entry.last_offset < offset]
        if len(kept) != len(entries):
            self._known = None
            self.is_synced = False
            file = self._disk.open(self.path)
            try:
                file.truncate(len(kept) * ENTRY.size)
            finally:
                file.close()

    def reset(self) -> None:
        """Empty the index, to be filled again from the log's markers."""
        self.is_kept = False
        self._pending.clear()
        self._known = None
        if self._maybe_present or self._disk.exists(self.path):
            self._maybe_present = self.is_synced = False
            with contextlib.suppress(FileNotFoundError):
                self._disk.remove(self.path)
