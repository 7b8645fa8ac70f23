"""A file of an Iceberg table: field ids in it, and what the manifest says of it."""

from __future__ import annotations

import datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.conversions import from_bytes
from pyiceberg.types import LongType, StringType

from barnabas.spark.tables.iceberg_files import manifest_file
from tests.spark.tables.appending import open_table, write_files

pytestmark = pytest.mark.slow

_ROWS = pa.table(
    {
        "day": pa.array([datetime.date(1970, 1, 2)] * 3, pa.date32()),
        "topic": ["b", None, "a"],
        "offset": pa.array([7, 8, 9], pa.int64()),
        "headers": pa.array([[], None, [1]], pa.list_(pa.field("element", pa.int32()))),
    }
)


def test_bounds_counts_and_partition(tmp_path: Path) -> None:
    (written,) = write_files(open_table("iceberg", tmp_path, ("day",)), _ROWS)
    found = manifest_file(written.entry)
    assert (found.file_path, found.record_count) == (written.path, 3)
    assert found.file_size_in_bytes == Path(written.path.removeprefix("file://")).stat().st_size
    assert list(found.partition) == [1], "the days since 1970"
    assert (from_bytes(LongType(), found.lower_bounds[3]), from_bytes(LongType(), found.upper_bounds[3])) == (7, 9)
    assert from_bytes(StringType(), found.lower_bounds[2]) == "a"
    assert found.null_value_counts[2] == 1


def test_field_ids_and_nulls_in_the_file(tmp_path: Path) -> None:
    """A list that is null is null in the file, though pyiceberg's reader makes it empty."""
    (written,) = write_files(open_table("iceberg", tmp_path), _ROWS)
    found = pq.read_table(written.path.removeprefix("file://"))
    assert [each.metadata[b"PARQUET:field_id"] for each in found.schema] == [b"1", b"2", b"3", b"4"]
    assert found["headers"].to_pylist() == [[], None, [1]]
