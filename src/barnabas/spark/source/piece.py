"""Record batches that are decoded together, and the columns whose values are not in the records."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from barnabas.records.record_batch import BatchHeader
from barnabas.spark.arrow_buffers import to_arrow, to_binary

Int64Array: TypeAlias = "np.ndarray[Any, np.dtype[np.int64]]"
ByteArray: TypeAlias = "np.ndarray[Any, np.dtype[np.uint8]]"

TIMESTAMP_LIMIT_MS = (2**63 - 1) // 1000
"""More do not fit into microseconds."""


@dataclass(frozen=True, slots=True)
class Piece:
    """Batches whose records are in one buffer.

    Attributes:
        data: has the records, without compression.
        headers: of the batches.
        spans: where each batch's records begin and end in `data`.
        topic, partition: where the batches are from.
        schema: the wanted columns.
    """

    data: ByteArray
    headers: Sequence[BatchHeader]
    spans: Sequence[tuple[int, int]]
    topic: str
    partition: int
    schema: pa.Schema

    def base_timestamps(self) -> list[int]:
        """Return for each batch the time that a record's delta is added to, or all its records' time of append."""
        return [h.max_timestamp if h.is_log_append_time else h.base_timestamp for h in self.headers]

    def append_times(self) -> list[int]:
        """Return 1 for each batch whose records have the time of append, 0 for the others: Spark's `timestampType`."""
        return [int(h.is_log_append_time) for h in self.headers]

    def per_record(self, per_batch: list[int]) -> Int64Array:
        """Return a batch's value for each of its records."""
        return np.repeat(np.array(per_batch, np.int64), [h.record_count for h in self.headers])

    def record_batch(self, rows: int, found: dict[str, pa.Array]) -> pa.RecordBatch:
        """Return the wanted columns: those found in the records, and those that say where the records are from."""
        columns = []
        for name in self.schema.names:
            if name == "topic":
                found[name] = pa.repeat(to_binary([self.topic.encode()], pa.string())[0], rows)
            elif name == "partition":
                found[name] = to_arrow(np.full(rows, self.partition, np.int32))
            elif name == "timestampType":
                found[name] = to_arrow(self.per_record(self.append_times()).astype(np.int32))
            columns.append(found[name])
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)
