"""The last offset of each key, in a table of fixed size. Compaction compares records with it.

    slot    | digest of the key 16 | offset 8 |      24 bytes, all zeros if free
    probe   the digest gives the first slot and the step to the next

The table takes exactly `log.cleaner.dedupe.buffer.size` bytes, whatever the keys are; untouched pages take no memory.
Two keys with equal 128-bit digests count as one, as in Apache Kafka. A full table ends a round of cleaning; the next round
starts there.

Source: Kafka's `SkimpyOffsetMap`.
"""

from __future__ import annotations

import hashlib
import mmap
import struct

ENTRY_BYTES = 24
_DIGEST_BYTES = 16
_FREE = bytes(_DIGEST_BYTES)
_halves = struct.Struct(">QQ").unpack


class OffsetMap:
    """Key to offset; later puts win. Offsets are put in ascending order."""

    __slots__ = ("_table", "entries", "latest_offset", "limit", "slots")

    def __init__(self, memory_bytes: int, load_factor: float = 0.9) -> None:
        """
        Args:
            memory_bytes: the size of the table.
            load_factor: share of the slots that may be used; beyond it look-ups become slow.

        Raises:
            ValueError: not even one key would fit, so that no cleaning could end.
        """
        self.slots = memory_bytes // ENTRY_BYTES
        # One slot is always free, so that every look-up ends.
        self.limit = min(int(self.slots * load_factor), self.slots - 1)
        if self.limit < 1:
            raise ValueError(f"a table of {memory_bytes} bytes with load factor {load_factor} holds no key")
        # The system provides anonymous memory page by page, on the first write; a bytearray would write to all of it in the beginning.
        self._table = mmap.mmap(-1, self.slots * ENTRY_BYTES)
        self.entries = 0
        # The last offset the map speaks for; -1 while it is empty.
        self.latest_offset = -1

    def __repr__(self) -> str:
        return f"<OffsetMap {self.entries}/{self.slots} latest={self.latest_offset}>"

    @property
    def utilization(self) -> float:
        return self.entries / self.slots

    def _find(self, digest: bytes) -> int:
        """Return the position of the digest's slot, or of the free slot where it belongs."""
        table = self._table
        slots = self.slots
        halves: tuple[int, int] = _halves(digest)
        slot = halves[0] % slots
        position = slot * ENTRY_BYTES
        found = table[position : position + _DIGEST_BYTES]
        if found in (digest, _FREE):
            return position
        # The step may share a divisor with the number of slots and miss all free ones: after some steps try the neighbours.
        step = halves[1] % slots or 1
        for _ in range(16):
            slot += step
            if slot >= slots:
                slot -= slots
            position = slot * ENTRY_BYTES
            found = table[position : position + _DIGEST_BYTES]
            if found in (digest, _FREE):
                return position
        while True:
            position = slot * ENTRY_BYTES
            found = table[position : position + _DIGEST_BYTES]
            if found in (digest, _FREE):
                return position
            slot += 1
            if slot == slots:
                slot = 0

    def put(self, key: bytes, offset: int) -> bool:
        """Note the offset of a key; return False, and note nothing, if the map is full."""
        digest = _digest(key)
        position = self._find(digest)
        table = self._table
        if table[position : position + _DIGEST_BYTES] == _FREE:
            if self.entries >= self.limit:
                return False
            self.entries += 1
            table[position : position + _DIGEST_BYTES] = digest
        table[position + _DIGEST_BYTES : position + ENTRY_BYTES] = offset.to_bytes(8, "big")
        self.latest_offset = offset
        return True

    def get(self, key: bytes) -> int:
        """Return the last offset of a key, -1 if the map does not have the key."""
        digest = _digest(key)
        position = self._find(digest)
        entry = self._table[position : position + ENTRY_BYTES]
        if entry[:_DIGEST_BYTES] == _FREE:
            return -1
        return int.from_bytes(entry[_DIGEST_BYTES:], "big")


def _digest(key: bytes) -> bytes:
    digest = hashlib.md5(key, usedforsecurity=False).digest()
    return digest if digest != _FREE else b"\1" * _DIGEST_BYTES
