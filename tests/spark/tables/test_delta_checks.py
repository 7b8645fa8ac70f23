"""Tables and folders that somebody else made: an error that names them, before anything is written."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, Schema

from barnabas.spark.tables.delta_checks import check_folder, check_properties

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
    check_properties("t", create(tmp_path, configuration={"delta.columnMapping.mode": "none"}))


def test_a_table_with_a_constraint(tmp_path: Path) -> None:
    create(tmp_path).alter.add_constraint({"positive": "offset > 0"})
    with pytest.raises(
        ValueError, match=r"t has the property delta\.constraints\.positive, which delta_writer does not"
    ):
        check_properties("t", DeltaTable(tmp_path))
