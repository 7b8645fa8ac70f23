"""An Iceberg table: what it keeps of a query's last batch, and how it commits beside others."""

from __future__ import annotations

import datetime
import json
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.transforms import DayTransform

from barnabas.spark.tables import iceberg_table
from barnabas.spark.tables.batch_writer import CommitConflict, WrittenBatch
from barnabas.spark.tables.iceberg_table import Iceberg, open_catalog
from tests.spark.tables.appending import append, catalog_in, data_files, proof, rows_of, write_files

pytestmark = pytest.mark.slow
ROWS = pa.table({"topic": ["orders"] * 3, "offset": [1, 2, 3], "time": pa.array([1, 2, 3], pa.timestamp("us", "UTC"))})


def table(folder: Path) -> Iceberg:
    return Iceberg("shop.orders", open_catalog(catalog_in(folder)))


def opened(folder: Path) -> Iceberg:
    found = table(folder)
    found.refresh()
    assert found.table is not None
    return found


def test_the_last_batch_stays_when_snapshots_expire(tmp_path: Path) -> None:
    for batch in range(3):
        assert append(table(tmp_path), ROWS, batch)
    found = opened(tmp_path)
    assert found.table is not None
    assert json.loads(found.table.properties["barnabas.batch.q"]) == {
        "batch": 2, "rows": 3, "digest": f"{proof(ROWS).digest:016x}",
    }  # fmt: skip
    summaries = [each.summary for each in found.table.snapshots()]
    assert [each and (each["barnabas.query"], each["barnabas.batch"]) for each in summaries] == [
        ("q", "0"), ("q", "1"), ("q", "2"),
    ]  # fmt: skip
    found.table.maintenance.expire_snapshots().older_than(datetime.datetime(2100, 1, 1)).commit()
    found = opened(tmp_path)
    assert found.table is not None
    assert len(found.table.snapshots()) == 1
    assert found.written("q") == WrittenBatch(2, proof(ROWS))
    assert not append(found, ROWS, 2)
    assert rows_of(found).num_rows == 9


def test_manifests_are_merged(tmp_path: Path) -> None:
    """Otherwise a reader opens one more with each batch."""
    assert append(table(tmp_path), ROWS, 0)
    found = opened(tmp_path)
    assert found.table is not None
    with found.table.transaction() as change:
        change.set_properties({"commit.manifest.min-count-to-merge": "3"})
    for batch in range(1, 6):
        assert append(table(tmp_path), ROWS, batch)
    found = opened(tmp_path)
    assert found.table is not None
    assert len(found.table.inspect.manifests()) <= 3
    assert rows_of(found).num_rows == 18


def test_a_commit_that_loses_is_not_repeated_unread(tmp_path: Path) -> None:
    """pyiceberg repeats a commit that lost without a look at the table's properties: the batch would be there twice."""
    assert append(table(tmp_path), ROWS, 0)
    late = opened(tmp_path)
    files = write_files(late, ROWS)
    assert append(table(tmp_path), ROWS, 1)
    with pytest.raises(CommitConflict, match="has batch 1 of query q"):
        late.commit(files, "q", 1, proof(ROWS))
    assert rows_of(late).num_rows == 6


def test_a_table_that_others_change_all_the_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = table(tmp_path)
    files = write_files(found, ROWS)
    monkeypatch.setattr(iceberg_table, "_ATTEMPTS", 2)

    def lose(*given: object) -> None:
        raise CommitFailedException

    monkeypatch.setattr(Iceberg, "_commit_once", lose)
    with pytest.raises(CommitConflict, match="changed by others during each of 2 attempts"):
        found.commit(files, "q", 0, proof(ROWS))


def test_a_table_with_a_transform(tmp_path: Path) -> None:
    assert append(table(tmp_path), ROWS, 0)
    found = opened(tmp_path)
    assert found.table is not None
    with found.table.update_spec() as spec:
        spec.add_field("time", DayTransform(), "day")
    with pytest.raises(
        ValueError, match="is partitioned by day, a day of a column, which iceberg_writer does not support"
    ):
        append(table(tmp_path), ROWS, 1)


def test_a_catalogue_by_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in catalog_in(tmp_path).items():
        monkeypatch.setenv(f"PYICEBERG_CATALOG__HOME__{name.upper()}", value)
    found = Iceberg("shop.orders", open_catalog({**catalog_in(tmp_path), "name": "home"}))
    assert append(found, ROWS, 0)
    assert rows_of(found).num_rows == 3
    assert len(data_files(tmp_path)) == 1
