"""Which leader epoch wrote which offsets: the `leader-epoch-checkpoint` of one log.

    epoch   0      3              4
    offset  0 ---- 1200 --------- 1800 ------ log end

A follower asks a new leader where the follower's last epoch ended, and truncates there (KIP-101, KIP-279).

Invariants: epochs and start offsets both ascend; an epoch ends where the next one starts, the last one at the log's end.

Crash argument: the file is replaced by rename before the first append of an epoch, which is rare, and not synced unless the log is
truncated: a power cut can leave it old, empty or missing. Every batch carries its epoch, so recovery compares the batches that it
reads, and reads all if one contradicts the file or the file is not whole. Entries at or beyond the log's end are dropped.

Source: Kafka's `LeaderEpochFileCache`.
"""

from __future__ import annotations

import itertools
from bisect import bisect_right

from barnabas.log import log_files
from barnabas.log.checkpoints import CorruptCheckpoint, decode_lines, encode_lines
from barnabas.log.disk import Disk

UNDEFINED_EPOCH = -1
UNDEFINED_OFFSET = -1


class LeaderEpochCache:
    """The epochs of one log, in memory and in their file.

    Attributes:
        latest_epoch: the epoch of the last batch, -1 if the cache is empty.
        awaits_write: an epoch was assigned, and the file not written since; the next append to the log writes it.
    """

    __slots__ = ("_disk", "_epochs", "_path", "_start_offsets", "awaits_write", "latest_epoch")

    def __init__(self, disk: Disk, path: str) -> None:
        self._disk = disk
        self._path = path
        self._epochs: list[int] = []
        self._start_offsets: list[int] = []
        self.latest_epoch = UNDEFINED_EPOCH
        self.awaits_write = False

    def __repr__(self) -> str:
        return f"<LeaderEpochCache {self.entries()}>"

    def entries(self) -> list[tuple[int, int]]:
        """Return epoch and start offset of each, ascending."""
        return list(zip(self._epochs, self._start_offsets, strict=True))

    def _keep(self, count: int) -> None:
        """Drop all entries but the first `count`."""
        del self._epochs[count:]
        del self._start_offsets[count:]
        self.latest_epoch = self._epochs[-1] if self._epochs else UNDEFINED_EPOCH

    def load(self) -> bool:
        """Read the file; return False, and leave the cache empty, if it is missing or not whole."""
        self._keep(0)
        try:
            entries = [(int(epoch), int(offset)) for epoch, offset in decode_lines(self._disk.read_file(self._path))]
        except (FileNotFoundError, CorruptCheckpoint, ValueError):
            return False
        if any(a[0] >= b[0] or a[1] > b[1] for a, b in itertools.pairwise(entries)):
            return False
        self._epochs = [epoch for epoch, _ in entries]
        self._start_offsets = [offset for _, offset in entries]
        self._keep(len(entries))
        return True

    def assign(self, epoch: int, start_offset: int, *, write: bool = True) -> bool:
        """Begin an epoch at an offset, and drop entries that contradict it; return whether anything changed."""
        assert epoch >= 0, "a leader epoch is never negative"
        if epoch == self.latest_epoch:
            return False
        keep = len(self._epochs)
        while keep and (self._epochs[keep - 1] >= epoch or self._start_offsets[keep - 1] >= start_offset):
            keep -= 1
        self._keep(keep)
        self._epochs.append(epoch)
        self._start_offsets.append(start_offset)
        self.latest_epoch = epoch
        self.awaits_write = True
        if write:
            self.write()
        return True

    def end_offset_for(self, epoch: int, log_end_offset: int) -> tuple[int, int]:
        """Return the largest known epoch at or below `epoch`, and where it ends.

        Returns:
            (epoch, end offset); (-1, -1) if `epoch` is -1 or newer than all entries.
        """
        if epoch == UNDEFINED_EPOCH:
            return UNDEFINED_EPOCH, UNDEFINED_OFFSET
        if epoch == self.latest_epoch:
            return epoch, log_end_offset
        slot = bisect_right(self._epochs, epoch)
        if slot == len(self._epochs):
            return UNDEFINED_EPOCH, UNDEFINED_OFFSET
        if slot == 0:
            # Older than all entries: as in Kafka, the given epoch ends where the first entry starts.
            return epoch, self._start_offsets[0]
        return self._epochs[slot - 1], self._start_offsets[slot]

    def epoch_for_offset(self, offset: int) -> int:
        """Return the epoch that wrote an offset, -1 if the offset is older than all entries."""
        slot = bisect_right(self._start_offsets, offset)
        return self._epochs[slot - 1] if slot else UNDEFINED_EPOCH

    def truncate_from_end(self, end_offset: int, *, write: bool = True) -> None:
        """Drop the epochs that begin at or after `end_offset`."""
        keep = len(self._epochs)
        while keep and self._start_offsets[keep - 1] >= end_offset:
            keep -= 1
        if keep < len(self._epochs):
            self._keep(keep)
            if write:
                self.write()

    def truncate_from_start(self, start_offset: int, *, write: bool = True) -> None:
        """Drop the epochs that end at or before `start_offset`; the epoch that spans it now begins there."""
        slot = bisect_right(self._start_offsets, start_offset)
        if slot and (slot > 1 or self._start_offsets[0] != start_offset):
            del self._epochs[: slot - 1]
            del self._start_offsets[: slot - 1]
            self._start_offsets[0] = start_offset
            if write:
                self.write()

    def clear(self, *, write: bool = True) -> None:
        if self._epochs:
            self._keep(0)
            if write:
                self.write()

    def write(self) -> None:
        # Also if the disk fails: the next change writes again, not each append.
        self.awaits_write = False
        data = encode_lines(f"{epoch} {offset}" for epoch, offset in self.entries())
        self._disk.write_file_atomic(self._path, data, sync=False)

    def directory_renamed(self, directory: str) -> None:
        """Follow a rename of the log's directory."""
        self._path = f"{directory}/{log_files.LEADER_EPOCH_CHECKPOINT}"
