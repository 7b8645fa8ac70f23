"""A topic as a Delta table: each record once, after failures, repetitions and with two drivers."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from deltalake import CommitProperties, DeltaTable, Schema, Transaction

from barnabas.spark.tables.batch_proof import BatchProof
from barnabas.spark.tables.batch_writer import WrittenBatch
from barnabas.spark.tables.data_files import DataFile
from barnabas.spark.tables.delta_table import Delta
from tests.spark.tables import appending


def offsets(table: Path) -> list[tuple[int, int]]:
    found = DeltaTable(table).to_pyarrow_table(columns=["partition", "offset"])
    return sorted(zip(found["partition"].to_pylist(), found["offset"].to_pylist(), strict=True))


_ROWS = pa.table(
    {
        "key": pa.array([b"a", None, b"c"]),
        "value": pa.array([b"x", b"y", b"z"]),
        "topic": ["orders", "orders", "others"],
        "partition": pa.array([0, 1, None], pa.int32()),
        "offset": [5, 6, 7],
        "timestamp": pa.array([1, 2, 1_500_000], pa.timestamp("us", "UTC")),
        "timestampType": pa.array([0, 0, 1], pa.int32()),
        "headers": [[{"key": "h", "value": b"1"}]] * 3,
        "quantity": pa.array([None, 3, 4]),
        "price": [1.0, float("nan"), 2.0],
        "place": [{"town": "Ulm"}, {"town": "Bonn"}, None],
    }
)


def append(folder: Path, rows: pa.Table, batch_id: int) -> None:
    """Append rows as a task and the driver do."""
    table = Delta.at(folder)
    assert appending.append(table, rows, batch_id)
    table.refresh()
    assert table.written("q") == WrittenBatch(batch_id, BatchProof(rows.num_rows, sum(range(rows.num_rows))))


def expect_all_found(folder: Path, rows: pa.Table) -> None:
    """Filter each column by each value that it has; every way to read must find what a filter in memory finds."""
    for name in ("topic", "partition", "offset", "timestamp", "timestampType", "key", "quantity", "price", "place"):
        is_nested = pa.types.is_struct(rows.schema.field(name).type)
        column = ds.field(name, "town") if is_nested else ds.field(name)
        wanted = [column.is_null(), column.is_valid()]
        values = pc.struct_field(rows[name], "town") if is_nested else rows[name]
        wanted += [column == value for value in values.drop_null().unique()]
        for predicate in wanted:
            there = rows.filter(predicate)["offset"].to_pylist()
            table = DeltaTable(folder)
            assert sorted(table.to_pandas(filters=predicate)["offset"]) == there, predicate
            assert sorted(table.to_pyarrow_table(filters=predicate)["offset"].to_pylist()) == there, predicate
            assert sorted(table.to_pyarrow_dataset().to_table(filter=predicate)["offset"].to_pylist()) == there, (
                predicate
            )


class TestFilters:
    """A reader that skips files by our statistics must skip none that has a row."""

    def test_each_column_of_a_new_table(self, tmp_path: Path) -> None:
        append(tmp_path, _ROWS, 0)
        append(tmp_path, _ROWS.set_column(4, "offset", pa.array([8, 9, 10])), 1)
        expect_all_found(tmp_path, pa.concat_tables([_ROWS, _ROWS.set_column(4, "offset", pa.array([8, 9, 10]))]))

    def test_files_outside_the_filter_are_skipped(self, tmp_path: Path) -> None:
        append(tmp_path, _ROWS.slice(0, 2), 0)
        append(tmp_path, _ROWS.slice(2), 1)
        found = DeltaTable(tmp_path).to_pyarrow_dataset()
        assert len(list(found.get_fragments())) == 2
        assert len(list(found.get_fragments(filter=ds.field("offset") == 7))) == 1

    def test_a_table_without_the_property_gets_it_with_the_next_batch(self, tmp_path: Path) -> None:
        """Its files' statistics are partial like ours; with the property they are right."""
        DeltaTable.create(tmp_path, Schema.from_arrow(_ROWS.schema))
        pq.write_table(_ROWS, tmp_path / "old.parquet")
        old = '{"numRecords": 3, "minValues": {"offset": 5}, "maxValues": {"offset": 7}, "nullCount": {}}'
        size = (tmp_path / "old.parquet").stat().st_size
        entry = json.dumps({"size": size, "partition": {}, "stats": old}).encode()
        table = Delta.at(tmp_path)
        table.refresh()
        table.commit([DataFile("old.parquet", 3, 0, entry)], "q", 0, BatchProof(3, 0))
        assert len(DeltaTable(tmp_path).to_pandas(filters=ds.field("topic") == "orders")) == 0, (
            "deltalake skips the file"
        )
        append(tmp_path, _ROWS, 1)
        assert len(DeltaTable(tmp_path).to_pandas(filters=ds.field("topic") == "orders")) == 4

    def test_a_table_without_a_column_that_statistics_are_made_of(self, tmp_path: Path) -> None:
        rows = _ROWS.select(["topic", "quantity"])
        append(tmp_path, rows, 0)
        assert len(DeltaTable(tmp_path).to_pandas(filters=ds.field("topic") == "orders")) == 2


class TestColumnsAndPartitions:
    def test_a_value_of_a_partition_that_delta_cannot_keep(self, tmp_path: Path) -> None:
        rows = pa.table({"town": ["Ulm", ""], "offset": [1, 2]})
        with pytest.raises(
            ValueError, match="an empty text in the partition column town, which Delta would read as null"
        ):
            appending.append(Delta.at(tmp_path, ("town",)), rows, 0)

    def test_a_folder_with_files_of_others(self, tmp_path: Path) -> None:
        (tmp_path / "part-0.parquet").write_bytes(b"")
        with pytest.raises(ValueError, match="has files and is not a Delta table"):
            appending.append(Delta.at(tmp_path), _ROWS, 0)

    def test_a_table_with_a_constraint(self, tmp_path: Path) -> None:
        append(tmp_path, _ROWS, 0)
        DeltaTable(tmp_path).alter.add_constraint({"positive": "offset > 0"})
        with pytest.raises(
            ValueError, match=r"has the property delta\.constraints\.positive, which delta_writer does not"
        ):
            appending.append(Delta.at(tmp_path), _ROWS, 1)


@pytest.mark.parametrize("digest", [0, 5, -1, 2**63, 2**64 - 7])
def test_what_the_log_keeps_of_a_batch(tmp_path: Path, digest: int) -> None:
    """Also after a checkpoint of the log, which keeps no information of single commits."""
    table = Delta.at(tmp_path)
    table.prepare(_ROWS.schema)
    for number, proof in enumerate((BatchProof(1, 1), BatchProof(7, digest))):
        table.commit([], "q", number, proof)
        table.refresh()
    assert table.written("q") == WrittenBatch(1, BatchProof(7, digest))
    DeltaTable(tmp_path).create_checkpoint()
    table.refresh()
    assert table.written("q") == WrittenBatch(1, BatchProof(7, digest))
    assert table.written("another") is None


def test_a_batch_of_an_older_version_without_a_proof(tmp_path: Path) -> None:
    rows = pa.table({"partition": pa.array([0], pa.int32()), "offset": [1]})
    created = DeltaTable.create(tmp_path, Schema.from_arrow(rows.schema))
    old = CommitProperties(app_transactions=[Transaction("q", 0)])
    created.create_write_transaction([], "append", rows.schema, commit_properties=old)
    table = Delta.at(tmp_path)
    table.refresh()
    assert table.written("q") == WrittenBatch(0, None)
    assert not appending.append(table, rows, 0)
    assert appending.append(table, rows, 5), "nor did it keep batches without rows"
