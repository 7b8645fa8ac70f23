"""Decodes the records of a piece with the package barnabas-native, which walks them once and fills Arrow's buffers.

The package declines a piece with records that are damaged or unusual; `numpy_decoder` then decodes it, or says what is
wrong. So both decoders raise the same errors, and a length that points outside its record is checked in each of them.

Limits: as `columnar`'s.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import pyarrow as pa

from barnabas.spark.arrow_buffers import to_binary
from barnabas.spark.source.piece import Int64Array, Piece

__all__ = ["decode"]


def decode(native: ModuleType, piece: Piece) -> tuple[Int64Array, pa.RecordBatch] | None:
    """Return the offsets of all records and the wanted columns, None if numpy must decode the piece."""
    wanted = set(piece.schema.names)
    asked = {
        "key": native.KEY,
        "value": native.VALUE,
        "headers": native.HEADERS,
        "timestamp": native.TIMESTAMP,
    }
    columns = sum(asked[name] for name in asked if name in wanted)
    # Arrow keeps freed memory. The interpreter's own would come from the kernel for each piece, page by page, which takes
    # as long as the copying of the bytes.
    decoded = native.decode(piece.data, _batches(piece), columns, pa.allocate_buffer)
    if decoded is None:
        return None
    offsets, timestamps, key, value, headers = decoded
    rows = offsets.size // 8
    found: dict[str, pa.Array] = {"offset": _array(pa.int64(), rows, None, offsets)}
    if timestamps is not None:
        found["timestamp"] = _array(pa.timestamp("us", tz="UTC"), rows, None, timestamps)
    if key is not None:
        found["key"] = _array(pa.binary(), rows, *key)
    if value is not None:
        found["value"] = _array(pa.binary(), rows, *value)
    if headers is not None:
        found["headers"] = _headers_array(piece.schema.field("headers").type, rows, *headers)
    return np.frombuffer(offsets, np.int64), piece.record_batch(rows, found)


def _batches(piece: Piece) -> Int64Array:
    """Return what the package must know of each batch, a row for each."""
    spans = np.array(piece.spans, np.int64)
    return np.column_stack(
        [
            spans,
            np.array([h.record_count for h in piece.headers], np.int64),
            np.array([h.base_offset for h in piece.headers], np.int64),
            np.array(piece.base_timestamps(), np.int64),
            np.array(piece.append_times(), np.int64),
        ]
    )


def _array(kind: pa.DataType, rows: int, *buffers: pa.Buffer | None) -> pa.Array:
    return pa.Array.from_buffers(kind, rows, list(buffers))


def _headers_array(
    kind: pa.DataType, rows: int, validity: pa.Buffer | None, offsets: pa.Buffer, key: Any, value: Any
) -> pa.Array:
    headers = key[1].size // 4 - 1
    keys = _text(_array(pa.binary(), headers, *key))
    entries = pa.StructArray.from_arrays([keys, _array(pa.binary(), headers, *value)], names=["key", "value"])
    return pa.Array.from_buffers(kind, rows, [validity, offsets], children=[entries])


def _text(keys: pa.Array) -> pa.Array:
    """Return the keys of headers as text, with a replacement for bytes that are not UTF-8."""
    try:
        return keys.cast(pa.string())
    except pa.ArrowInvalid:
        return to_binary([key.decode("utf-8", "replace").encode() for key in keys.to_pylist()], pa.string())
