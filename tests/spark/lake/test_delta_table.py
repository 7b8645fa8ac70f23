"""A topic as a Delta table: each record once, after failures, repetitions and with two drivers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from deltalake import CommitProperties, DeltaTable, Schema, Transaction

from barnabas.main import command_group
from barnabas.spark import start
from barnabas.spark.lake import delta_table as lake
from barnabas.spark.lake.batch_proof import BatchProof, proof_in
from barnabas.spark.lake.delta_table import _Statistics, commit_files, delta_writer, write_batch
from tests.spark.session import SPARK, Topics


def offsets(table: Path) -> list[tuple[int, int]]:
    found = DeltaTable(table).to_pyarrow_table(columns=["partition", "offset"])
    return sorted(zip(found["partition"].to_pylist(), found["offset"].to_pylist(), strict=True))


def test_statistics_of_a_file() -> None:
    found = _Statistics()
    found.add(pa.table({"partition": [1, 1], "offset": [7, 8], "value": [b"a", b"b"]}))
    found.add(pa.table({"partition": [0], "offset": [9], "value": [b"a"]}))
    found.add(pa.table({"partition": pa.array([None], pa.int32()), "offset": [8]}))
    assert json.loads(found.to_json()) == {
        "numRecords": 4,
        "minValues": {"partition": 0, "offset": 7},
        "maxValues": {"partition": 1, "offset": 9},
        "nullCount": {"partition": 1, "offset": 0},
    }
    found = _Statistics()
    found.add(pa.table({"partition": ["a"], "value": [b"a"]}))
    assert json.loads(found.to_json()) == {"numRecords": 1}, "no column that statistics are made of"


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
    """Append rows as one task and the driver do."""
    table = lake._open(folder, rows.schema, "q")
    hashed = rows.append_column(lake.ROW_DIGEST, pa.array(range(rows.num_rows), pa.int64()))
    (found,) = lake._file_writer(folder, rows.schema)(iter(hashed.to_batches()))
    (file,) = found.to_pylist()
    proof = BatchProof(file["rows"], file["digest"])
    commit_files(table, rows.schema, {file["path"]: (file["size"], file["stats"])}, "q", batch_id, proof)
    assert proof_in(DeltaTable(folder), "q") == BatchProof(rows.num_rows, sum(range(rows.num_rows)))


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
        commit_files(DeltaTable(tmp_path), _ROWS.schema, {"old.parquet": (size, old)}, "q", 0, BatchProof(3, 0))
        assert len(DeltaTable(tmp_path).to_pandas(filters=ds.field("topic") == "orders")) == 0, (
            "deltalake skips the file"
        )
        append(tmp_path, _ROWS, 1)
        assert len(DeltaTable(tmp_path).to_pandas(filters=ds.field("topic") == "orders")) == 4

    def test_a_table_without_a_column_that_statistics_are_made_of(self, tmp_path: Path) -> None:
        rows = _ROWS.select(["topic", "quantity"])
        append(tmp_path, rows, 0)
        assert len(DeltaTable(tmp_path).to_pandas(filters=ds.field("topic") == "orders")) == 2


class _Once(Exception):
    pass


class TestInSpark:
    pytestmark = SPARK

    def test_a_query_that_is_killed_around_its_commit(
        self, spark: Any, topics: Topics, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Batch 0 fails before the commit, then after it; batch 1 follows. Each offset is in the table once."""
        topic, table = topics.create(partitions=2), tmp_path / "table"
        for partition in (0, 1):
            topics.values(topic, ["x"] * 50, partition)
        commit = lake.commit_files

        def run() -> None:
            rows = spark.readStream.format("barnabas").options(
                **{
                    "kafka.bootstrap.servers": topics.servers,
                    "subscribe": topic,
                    "startingOffsets": "earliest",
                    "includeHeaders": "true",
                }
            )
            writer = rows.load().writeStream.foreachBatch(delta_writer(table))
            start(
                writer.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True)
            ).awaitTermination()

        def before(*given: Any) -> None:
            raise _Once

        def after(*given: Any) -> None:
            commit(*given)
            raise _Once

        for trouble in (before, after):
            monkeypatch.setattr(lake, "commit_files", trouble)
            with pytest.raises(Exception, match="_Once"):
                run()
        monkeypatch.setattr(lake, "commit_files", commit)
        run()
        topics.values(topic, ["y"] * 10, 1)
        run()
        assert offsets(table) == [(0, n) for n in range(50)] + [(1, n) for n in range(60)]
        found = DeltaTable(table)
        assert found.version() == 2, "the table was created, and two batches were committed"
        assert spark.read.parquet(*found.file_uris()).count() == 110
        audit = CliRunner().invoke(
            command_group(), ["lake", "audit", topic, "--delta", str(table), "-b", topics.servers, "--to-end"]
        )
        assert (audit.exit_code, audit.output.splitlines()[-1]) == (
            0, f"valid: each of 110 committed records of {topic} is in the table once",
        )  # fmt: skip
        with pytest.raises(ValueError, match="it would write records a second time"):
            delta_writer(table, query_id="another checkpoint")(spark.range(1).selectExpr(*_LIKE_THE_TOPIC), 0)

    def test_two_drivers_with_one_batch(
        self, spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: Any
    ) -> None:
        """The second driver opens the table before the first one commits. One commit wins; the other driver's files go."""
        table = tmp_path / "table"
        rows = spark.range(20).selectExpr("0 as partition", "id as offset")
        commit = lake.commit_files

        def late(*given: Any) -> None:
            monkeypatch.setattr(lake, "commit_files", commit)
            assert write_batch(table, rows, 0, "q")
            commit(*given)

        monkeypatch.setattr(lake, "commit_files", late)
        assert not write_batch(table, rows, 0, "q")
        assert offsets(table) == [(0, n) for n in range(20)]
        assert sorted(str(path) for path in table.glob("*.parquet")) == sorted(DeltaTable(table).file_uris())
        assert "another driver has written batch 0 of query q" in caplog.text
        assert not write_batch(table, rows, 0, "q"), "and a repeated batch writes nothing"
        with pytest.raises(
            ValueError, match="has other columns than this query: partition is integer in the table and absent"
        ):
            write_batch(table, spark.range(1), 1, "q")
        with pytest.raises(ValueError, match="belongs to no streaming query"):
            delta_writer(table)(rows, 1)

    def test_a_batch_that_is_repeated_with_other_rows(self, spark: Any, tmp_path: Path) -> None:
        """Spark planned it again with more in it: a checkpoint that was restored, or mended by hand."""
        table = tmp_path / "table"
        rows = spark.range(20).selectExpr("0 as partition", "id as offset")
        assert write_batch(table, rows, 0, "q")
        assert not write_batch(table, rows.repartition(3).sort("offset", ascending=False), 0, "q"), (
            "the order does not matter"
        )
        more = spark.range(21).selectExpr("0 as partition", "id as offset")
        with pytest.raises(
            ValueError, match=r"batch 0 of query q with 20 rows, digest \w+, .* repeats it with 21 rows"
        ):
            write_batch(table, more, 0, "q")
        others = spark.range(1, 21).selectExpr("0 as partition", "id as offset")
        with pytest.raises(ValueError, match="Use the checkpoint that belongs to the table"):
            delta_writer(table, query_id="q")(others, 0)
        delta_writer(table, query_id="q", fail_on_different_batch=False)(others, 0)
        assert offsets(table) == [(0, n) for n in range(20)]
        assert sorted(str(path) for path in table.glob("*.parquet")) == sorted(DeltaTable(table).file_uris())

    def test_a_batch_that_is_older_than_the_table(self, spark: Any, tmp_path: Path) -> None:
        table = tmp_path / "table"
        rows = spark.range(20).selectExpr("0 as partition", "id as offset")
        for batch in (0, 1, 2):
            assert write_batch(table, rows, batch, "q")
        with pytest.raises(
            ValueError, match=r"has batch 2 of query q, and this is batch 1: .* Use the checkpoint that"
        ):
            delta_writer(table, query_id="q", fail_on_different_batch=False)(rows, 1)

    def test_a_driver_that_is_overtaken(self, spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """The other driver wrote this batch and the next one while this one's tasks ran."""
        table = tmp_path / "table"
        rows = spark.range(20).selectExpr("0 as partition", "id as offset")
        commit = lake.commit_files

        def late(*given: Any) -> None:
            monkeypatch.setattr(lake, "commit_files", commit)
            assert write_batch(table, rows, 0, "q")
            assert write_batch(table, rows, 1, "q")
            commit(*given)

        monkeypatch.setattr(lake, "commit_files", late)
        with pytest.raises(ValueError, match="has batch 1 of query q, and this is batch 0"):
            write_batch(table, rows, 0, "q")
        assert sorted(str(path) for path in table.glob("*.parquet")) == sorted(DeltaTable(table).file_uris())

    def test_a_table_of_an_older_version_without_a_proof(self, spark: Any, tmp_path: Path) -> None:
        table = tmp_path / "table"
        rows = spark.range(20).selectExpr("0 as partition", "id as offset")
        schema = pa.schema([("partition", pa.int32()), ("offset", pa.int64())])
        old = CommitProperties(app_transactions=[Transaction("old", 0)])
        created = DeltaTable.create(table, Schema.from_arrow(schema))
        created.create_write_transaction([], "append", schema, commit_properties=old)
        assert not write_batch(table, rows, 0, "old")

    def test_a_table_that_lacks_batches(self, spark: Any, tmp_path: Path) -> None:
        """It was deleted, or restored from a backup, and the query's checkpoint was not."""
        table = tmp_path / "table"
        rows = spark.range(20).selectExpr("0 as partition", "id as offset")
        with pytest.raises(
            ValueError, match="has no batch of query q, and this is batch 1: rows of the batches before"
        ):
            delta_writer(table, query_id="q")(rows, 1)
        assert write_batch(table, rows, 0, "q")
        assert write_batch(table, rows.limit(0), 1, "q"), "a batch without rows counts"
        assert write_batch(table, rows, 2, "q")
        with pytest.raises(
            ValueError, match=r"has batches up to 2 of query q, and this is batch 4: .* Begin with a new"
        ):
            write_batch(table, rows, 4, "q")
        delta_writer(table, query_id="q", fail_on_missing_batch=False)(rows, 4)
        assert DeltaTable(table).to_pyarrow_table().num_rows == 60


_LIKE_THE_TOPIC = [
    "cast(null as binary) as key", "cast(null as binary) as value", "'t' as topic", "0 as partition", "id as offset",
    "timestamp_millis(0) as timestamp", "0 as timestampType",
    "cast(null as array<struct<key: string, value: binary>>) as headers",
]  # fmt: skip
