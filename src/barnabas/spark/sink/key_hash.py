"""murmur2 of a whole column of keys, as `barnabas.client.partitioner` computes it for one.

The keys are walked in steps of four bytes, all keys together; in each step only the keys that are long enough take part.

Source: org.apache.kafka.common.utils.Utils.murmur2.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

UInt32Array: TypeAlias = "np.ndarray[Any, np.dtype[np.uint32]]"

_MIXER = np.uint32(0x5BD1E995)
_SEED = np.uint32(0x9747B28C)


def murmur2(keys: pa.BinaryArray) -> UInt32Array:
    """Return the hash of each key, unsigned; that of no bytes for null."""
    ends = np.frombuffer(keys.buffers()[1], np.int32)[keys.offset : keys.offset + len(keys) + 1]
    data = np.frombuffer(keys.buffers()[2] or b"", np.uint8)
    starts, lengths = ends[:-1].astype(np.int64), np.diff(ends)
    if keys.null_count:
        lengths = np.where(np.asarray(keys.is_null()), 0, lengths)
    result: UInt32Array = _SEED ^ lengths.astype(np.uint32)
    words = lengths >> 2
    for step in range(int(words.max(initial=0))):
        rows = np.flatnonzero(words > step)
        word = _word(data, starts[rows] + 4 * step) * _MIXER
        word = (word ^ word >> np.uint32(24)) * _MIXER
        result[rows] = (result[rows] * _MIXER) ^ word
    left = lengths & 3
    tails = starts + (words.astype(np.int64) << 2)
    # As in Java, where the cases fall through: the third byte first, and the multiplication after the first byte.
    for byte in (2, 1, 0):
        rows = np.flatnonzero(left > byte)
        result[rows] ^= data[tails[rows] + byte].astype(np.uint32) << np.uint32(8 * byte)
    rows = np.flatnonzero(left > 0)
    result[rows] *= _MIXER
    result = (result ^ result >> np.uint32(13)) * _MIXER
    return result ^ result >> np.uint32(15)


def _word(data: np.ndarray[Any, np.dtype[np.uint8]], at: np.ndarray[Any, np.dtype[np.int64]]) -> UInt32Array:
    word: UInt32Array = data[at].astype(np.uint32)
    for byte in (1, 2, 3):
        word |= data[at + byte].astype(np.uint32) << np.uint32(8 * byte)
    return word
