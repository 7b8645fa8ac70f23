"""The compaction of an Iceberg table: which files it puts together, and what it leaves."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from barnabas.spark.tables.iceberg_compaction import compact
from barnabas.spark.tables.iceberg_table import Iceberg, open_catalog
from tests.spark.tables.appending import append, catalog_in, files_named, rows, rows_of

pytestmark = pytest.mark.slow


def opened(folder: Path) -> Iceberg:
    found = Iceberg("shop.orders", open_catalog(catalog_in(folder)))
    found.refresh()
    return found


def test_a_null_list_stays_null(tmp_path: Path) -> None:
    """pyiceberg's reader would make it empty, so the files are read as they are."""
    for batch in range(2):
        assert append(opened(tmp_path), rows(2 * batch), batch)
    assert compact(opened(tmp_path), 1 << 20) == (2, 1)
    (file,) = files_named(opened(tmp_path))
    assert pq.read_table(file)["headers"].to_pylist() == [None, [], None, []]


def test_files_that_have_the_size_are_left(tmp_path: Path) -> None:
    for batch in range(3):
        assert append(opened(tmp_path), rows(batch * 1000, 1000), batch)
    table = opened(tmp_path)
    sizes = [each.file.file_size_in_bytes for each in table.opened().scan().plan_files()]
    assert compact(table, min(sizes)) == (0, 0)
    assert compact(opened(tmp_path), int(2.5 * max(sizes))) == (2, 1), "the third one would make the file too large"


def test_a_column_that_got_a_new_name(tmp_path: Path) -> None:
    assert append(opened(tmp_path), rows(0), 0)
    with opened(tmp_path).opened().update_schema() as change:
        change.rename_column("offset", "place")
    renamed = rows(2).rename_columns({"offset": "place"})
    assert append(opened(tmp_path), renamed, 1)
    assert compact(opened(tmp_path), 1 << 20) == (2, 1)
    assert sorted(rows_of(opened(tmp_path))["place"].to_pylist()) == [0, 1, 2, 3]


def test_a_file_with_another_type_is_left(tmp_path: Path) -> None:
    narrow = rows(0).set_column(0, "offset", pa.array([0, 1], pa.int32()))
    assert append(opened(tmp_path), narrow, 0)
    with opened(tmp_path).opened().update_schema() as change:
        from pyiceberg.types import LongType

        change.update_column("offset", LongType())
    for batch in (1, 2):
        assert append(opened(tmp_path), rows(2 * batch), batch)
    assert compact(opened(tmp_path), 1 << 20) == (2, 1)
    assert len(files_named(opened(tmp_path))) == 2
