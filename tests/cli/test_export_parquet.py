"""Rows of Parquet, read by our code, and by pyarrow and DuckDB without it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import duckdb
import pyarrow.parquet as pq
import pytest

from barnabas.cli import export_parquet
from barnabas.cli.export_parquet import count_rows, read_rows
from tests.cli.exports import odd_records
from tests.cli.test_export_files import made_file


@pytest.mark.parametrize("group_bytes", [100, 8 << 20])
def test_the_bytes_come_back(tmp_path: Path, group_bytes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(export_parquet, "_GROUP_BYTES", group_bytes)
    records = [
        *odd_records(300),
        replace(odd_records(1)[0], timestamp_ms=2**62),
        replace(odd_records(1)[0], timestamp_ms=-2),
    ]
    path = tmp_path / made_file(tmp_path, "parquet", records).name
    for skipped in (0, 1, 299, 302):
        assert list(read_rows(path, "t", skipped)) == records[skipped:]
    assert count_rows(path) == 302
    groups = pq.ParquetFile(path).num_row_groups
    assert groups == 1 if group_bytes > 100 else groups > 20


def test_others_read_the_same(tmp_path: Path) -> None:
    records = odd_records(200)
    path = tmp_path / made_file(tmp_path, "parquet", records).name
    expected = [
        (
            each.partition,
            each.offset,
            each.key,
            each.value,
            [{"key": name, "value": held} for name, held in each.headers],
            1,
        )
        for each in records
    ]
    columns = ["partition", "offset", "key", "value", "headers", "timestampType"]
    table = pq.read_table(path, columns=columns)
    assert [tuple(found.values()) for found in table.to_pylist()] == expected
    quoted = ", ".join(f'"{name}"' for name in columns)
    statement = f"SELECT {quoted}, epoch_ms(timestamp) FROM '{tmp_path}/*.parquet' ORDER BY \"offset\""
    times = [None if each.timestamp_ms == -1 else each.timestamp_ms for each in records]
    with duckdb.connect() as database:
        found = database.sql(statement).fetchall()
    assert found == [(*row, time) for row, time in zip(expected, times, strict=True)]


def test_other_columns(tmp_path: Path) -> None:
    path = tmp_path / "file"
    pq.write_table(
        pq.read_table(tmp_path / made_file(tmp_path, "parquet", odd_records(1)).name).drop_columns("key"), path
    )
    with pytest.raises(ValueError, match="its columns are not those of an export"):
        count_rows(path)
