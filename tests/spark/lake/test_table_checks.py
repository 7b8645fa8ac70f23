"""Tables and folders that somebody else made: an error that names them, before anything is written."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, Schema

from barnabas.spark.lake.table_checks import check_folder, check_table

SCHEMA = pa.schema([("partition", pa.int32()), ("offset", pa.int64()), ("value", pa.binary())])


def create(folder: Path, **more: object) -> DeltaTable:
    return DeltaTable.create(folder, Schema.from_arrow(SCHEMA), **more)  # type: ignore[arg-type]


def test_a_folder_that_is_absent_empty_or_a_table(tmp_path: Path) -> None:
    check_folder(tmp_path / "absent")
    check_folder(tmp_path)
    create(tmp_path / "table")
    check_folder(tmp_path / "table")


def test_a_folder_with_files_of_others(tmp_path: Path) -> None:
    (tmp_path / "part-0.parquet").write_bytes(b"")
    with pytest.raises(ValueError, match=f"{tmp_path} has files and is not a Delta table: .* a folder of its own"):
        check_folder(tmp_path)
    with pytest.raises(ValueError, match="is a file: give delta_writer the folder"):
        check_folder(tmp_path / "part-0.parquet")


def test_a_table_like_ours(tmp_path: Path) -> None:
    check_table(tmp_path, create(tmp_path, configuration={"delta.columnMapping.mode": "none"}), SCHEMA)


def test_a_partitioned_table(tmp_path: Path) -> None:
    """Its readers would find null instead of each partition."""
    with pytest.raises(ValueError, match="is partitioned by partition, which delta_writer does not support"):
        check_table(tmp_path, create(tmp_path, partition_by=["partition"]), SCHEMA)


def test_a_table_with_a_constraint(tmp_path: Path) -> None:
    table = create(tmp_path)
    table.alter.add_constraint({"positive": "offset > 0"})
    with pytest.raises(ValueError, match=r"has the property delta\.constraints\.positive, which delta_writer does not"):
        check_table(tmp_path, DeltaTable(tmp_path), SCHEMA)


@pytest.mark.parametrize(
    ("schema", "difference"),
    [
        (SCHEMA.set(2, pa.field("value", pa.string())), "value is binary in the table and string in the query"),
        (SCHEMA.append(pa.field("n", pa.int64())), "n is absent in the table and long in the query"),
        (SCHEMA.remove(0), "partition is integer in the table and absent in the query"),
    ],
)
def test_other_columns(tmp_path: Path, schema: pa.Schema, difference: str) -> None:
    with pytest.raises(ValueError, match=f"has other columns than this query: {difference}. Give the query the table"):
        check_table(tmp_path, create(tmp_path), schema)


def test_columns_in_another_order_and_those_that_may_not_be_null(tmp_path: Path) -> None:
    table = create(tmp_path)
    check_table(tmp_path, table, pa.schema(reversed(list(SCHEMA))))
    strict = pa.schema([SCHEMA.field(0).with_nullable(False), *list(SCHEMA)[1:]])
    made = DeltaTable.create(tmp_path / "strict", Schema.from_arrow(strict))
    with pytest.raises(ValueError, match=r"the table has columns that may not be null\. Give the query"):
        check_table(tmp_path, made, SCHEMA)
