"""Exported records as rows of Parquet, by pyarrow.

A timestamp is a time in UTC, to the millisecond; null for a record without one. Rows are written in groups of some megabytes, so memory
does not grow with the file.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from barnabas.cli.export_files import FileFormat, Writer
from barnabas.retries.record import Record

_HEADER = pa.struct([pa.field("key", pa.string(), nullable=False), pa.field("value", pa.binary())])
SCHEMA = pa.schema(
    [
        pa.field("topic", pa.string(), nullable=False),
        pa.field("partition", pa.int32(), nullable=False),
        pa.field("offset", pa.int64(), nullable=False),
        pa.field("timestamp", pa.timestamp("ms", "UTC")),
        pa.field("key", pa.binary()),
        pa.field("value", pa.binary()),
        pa.field("headers", pa.list_(pa.field("element", _HEADER, nullable=False)), nullable=False),
        pa.field("timestampType", pa.int32(), nullable=False),
    ]
)
_GROUP_BYTES = 8 << 20
_GROUP_ROWS = 50_000
_READ_ROWS = 1_000


class ParquetRows(Writer):
    """Writes records as rows."""

    def __init__(self, file: io.RawIOBase, max_bytes: int) -> None:
        self._writer = pq.ParquetWriter(file, SCHEMA, compression="zstd")
        self._columns: list[list[Any]] = [[] for _ in SCHEMA]
        self._bytes = 0
        self._group_bytes = min(_GROUP_BYTES, max_bytes)

    def __repr__(self) -> str:
        return f"<ParquetRows buffered={len(self._columns[0])}>"

    def add(self, record: Record, timestamp_type: int) -> None:
        row = (
            record.topic,
            record.partition,
            record.offset,
            None if record.timestamp_ms == -1 else record.timestamp_ms,
            record.key,
            record.value,
            [{"key": name, "value": value} for name, value in record.headers],
            timestamp_type,
        )
        for column, value in zip(self._columns, row, strict=True):
            column.append(value)
        self._bytes += len(record.key or b"") + len(record.value or b"")
        self._bytes += sum(len(name) + len(value or b"") for name, value in record.headers)
        if self._bytes >= self._group_bytes or len(self._columns[0]) >= _GROUP_ROWS:
            self._write()

    def note(self, name: str, text: str) -> None:
        """Write a text into the file's metadata, where readers of Parquet find it by its name."""
        self._writer.add_key_value_metadata({name: text})

    def end(self) -> None:
        if self._columns[0]:
            self._write()
        self._writer.close()

    def _write(self) -> None:
        arrays = [pa.array(values, each.type) for values, each in zip(self._columns, SCHEMA, strict=True)]
        self._columns, self._bytes = [[] for _ in SCHEMA], 0
        self._writer.write_table(pa.Table.from_arrays(arrays, schema=SCHEMA))


def count_rows(path: Path) -> int:
    """Return how many rows a file has.

    Raises:
        ValueError: it is not Parquet, or has other columns.
    """
    try:
        with pq.ParquetFile(path) as file:
            if not file.schema_arrow.equals(SCHEMA):
                raise ValueError("its columns are not those of an export")
            return int(file.metadata.num_rows)
    except pa.ArrowException as error:
        raise ValueError(str(error).splitlines()[0]) from None


def read_rows(path: Path, topic: str, skipped: int) -> Iterator[Record]:
    """Yield the records of a file, without the first `skipped`."""
    with pq.ParquetFile(path) as file:
        groups: list[int] = []
        for number in range(file.num_row_groups):
            rows = file.metadata.row_group(number).num_rows
            if not groups and skipped >= rows:
                skipped -= rows
            else:
                groups.append(number)
        for batch in file.iter_batches(_READ_ROWS, groups) if groups else ():
            left = batch.slice(min(skipped, len(batch)))
            skipped -= len(batch) - len(left)
            # As a number: a datetime has not the range of a Kafka timestamp.
            index = left.schema.get_field_index("timestamp")
            left = left.set_column(index, "timestamp", left.column(index).cast(pa.int64()))
            for row in left.to_pylist():
                yield Record(
                    topic,
                    row["partition"],
                    row["offset"],
                    -1 if row["timestamp"] is None else row["timestamp"],
                    row["key"],
                    row["value"],
                    tuple((each["key"], each["value"]) for each in row["headers"]),
                )


FORMAT = FileFormat({each.name: str(each.type) for each in SCHEMA}, ParquetRows, count_rows, read_rows)
