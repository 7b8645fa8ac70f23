"""The digest of a batch's rows: one number, whatever the order of the rows and however they are split among tasks.

    digest  the sum, modulo 2**64, of a hash of each row
    row     the bytes from the key's length to the last header, as they stand in the record: the lengths are in them, so
            that ("ab", "c") is not ("a", "bc"), and null is not empty; and the row's mark
    mark    what the columns topic, partition and timestamp say of the row, 0 if they are absent or null

A row of `LONG_ROW` bytes or more is hashed by CRC32C. For a short row the call would take longer than to encode it. So
a short row is cut into blocks of 64 bytes, the last one filled with zeros, and numpy multiplies the words of all blocks
by eight odd numbers. Each block's and each row's result is mixed, so that two rows which exchange their values do not
cancel out. The package barnabas-native does the same in C, if it is installed.

Limits: it finds rows that differ by accident, not rows that an adversary made. The numbers, the blocks and `LONG_ROW`
are part of the version of a decision: with others, one batch would have two digests.

Source: the finalizer of MurmurHash3 by Austin Appleby.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from barnabas.records.checksum import Buffer, crc32c
from barnabas.spark.native_library import native_library

UInt64Array: TypeAlias = "np.ndarray[Any, np.dtype[np.uint64]]"
Int64Array: TypeAlias = "np.ndarray[Any, np.dtype[np.int64]]"

LONG_ROW = 512
"""Bytes of a row from which one call costs less than the blocks."""

_BLOCK_BYTES = 64
_WORDS = _BLOCK_BYTES // 8
_WHOLE_BLOCK = np.dtype((np.void, _BLOCK_BYTES))
_GOLDEN = 0x9E3779B97F4A7C15
_MASK = (1 << 64) - 1
_WEIGHTS = np.array([(_GOLDEN * (2 * word + 1)) & _MASK | 1 for word in range(_WORDS)], np.uint64)
# Row n has ones in its first n bytes.
_FIRST_BYTES = (
    np.where(np.arange(_BLOCK_BYTES) < np.arange(_BLOCK_BYTES + 1)[:, None], 255, 0).astype(np.uint8).view("<u8")
)


class RowDigest:
    """The digest of rows, as far as they were added."""

    def __init__(self) -> None:
        self.value = 0

    def __repr__(self) -> str:
        return f"<RowDigest value={self.value:x}>"

    def add(self, data: Buffer, starts: Int64Array, ends: Int64Array, marks: UInt64Array | None = None) -> None:
        """Add rows.

        Args:
            starts, ends: where each row's bytes are in `data`; no row is empty.
            marks: what else belongs to each row, None if nothing.
        """
        is_long = ends - starts >= LONG_ROW
        found = 0
        for add, chosen in ((_of_long_rows, is_long), (_of_short_rows, ~is_long)):
            if chosen.any():
                found += add(data, starts[chosen], ends[chosen], None if marks is None else marks[chosen])
        self.value = (self.value + found) & _MASK


def mixed(values: UInt64Array) -> UInt64Array:
    """Return other numbers, one for each, whose bits all depend on all bits of the given one."""
    with np.errstate(over="ignore"):
        values = (values ^ values >> np.uint64(33)) * np.uint64(0xFF51AFD7ED558CCD)
        values = (values ^ values >> np.uint64(33)) * np.uint64(0xC4CEB9FE1A85EC53)
    return values ^ values >> np.uint64(33)


def topic_mark(topic: str) -> np.uint64:
    """Return what a row's topic adds to its mark."""
    return np.uint64(mixed(np.array([crc32c(topic.encode()) | 1 << 32], np.uint64))[0])


def column_mark(values: Int64Array, known: np.ndarray[Any, np.dtype[np.bool_]], column: int) -> UInt64Array:
    """Return what a column's numbers add to the marks of the rows, 0 where they are not known.

    Args:
        column: any number; other columns have others.
    """
    with np.errstate(over="ignore"):
        marks = mixed(values.astype(np.uint64) * np.uint64(_GOLDEN) + np.uint64(column))
    return np.where(known, marks, np.uint64(0))


def _of_long_rows(data: Buffer, starts: Int64Array, ends: Int64Array, marks: UInt64Array | None) -> int:
    view = memoryview(data)
    found = [crc32c(view[start:end]) for start, end in zip(starts.tolist(), ends.tolist(), strict=True)]
    return _sum(mixed(np.array(found, np.uint64)), ends - starts, marks)


def _of_short_rows(data: Buffer, starts: Int64Array, ends: Int64Array, marks: UInt64Array | None) -> int:
    native = native_library()
    # The package declines rows that are not within the data.
    found: int | None = None if native is None else native.digest(data, starts, ends, marks)
    if found is None:
        found = _sum(_hashed_in_blocks(data, starts, ends - starts), ends - starts, marks)
    return found


def _sum(hashes: UInt64Array, lengths: Int64Array, marks: UInt64Array | None) -> int:
    with np.errstate(over="ignore"):
        rows = hashes + lengths.astype(np.uint64)
        if marks is not None:
            rows += marks
        return int(mixed(rows).sum(dtype=np.uint64))


def _hashed_in_blocks(data: Buffer, starts: Int64Array, lengths: Int64Array) -> UInt64Array:
    """Return a hash of each row; no row is empty."""
    counts = (lengths + _BLOCK_BYTES - 1) // _BLOCK_BYTES
    first = np.cumsum(counts) - counts
    numbers = np.arange(int(counts.sum())) - np.repeat(first, counts)
    blocks = _blocks(data, np.repeat(starts, counts) + numbers * _BLOCK_BYTES)
    last = first + counts - 1
    blocks[last] &= _FIRST_BYTES[lengths - (counts - 1) * _BLOCK_BYTES]
    with np.errstate(over="ignore"):
        hashes = mixed(blocks @ _WEIGHTS + numbers.astype(np.uint64) * np.uint64(_GOLDEN))
        return np.add.reduceat(hashes, first)


def _blocks(data: Buffer, positions: Int64Array) -> UInt64Array:
    """Return the 64 bytes at each position as eight words; bytes behind the end of the data are zeros.

    Args:
        positions: ascending.
    """
    held = np.frombuffer(data, np.uint8)
    whole = max(0, len(held) - _BLOCK_BYTES + 1)
    within = int(np.searchsorted(positions, whole))
    tail = _views(np.concatenate([held[whole:], np.zeros(_BLOCK_BYTES, np.uint8)]))[positions[within:] - whole]
    found = np.empty((len(positions), _WORDS), "<u8")
    if within:
        found[:within] = _views(held)[positions[:within]].view("<u8").reshape(-1, _WORDS)
    found[within:] = tail.view("<u8").reshape(-1, _WORDS)
    return found


def _views(held: np.ndarray[Any, np.dtype[np.uint8]]) -> np.ndarray[Any, np.dtype[np.void]]:
    return np.ndarray((len(held) - _BLOCK_BYTES + 1,), _WHOLE_BLOCK, held, strides=(1,))
