"""A topic as a Delta table: each record once, after failures, repetitions and with two drivers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from barnabas.spark import lake, start
from barnabas.spark.lake import _Statistics, delta_writer, write_batch
from tests.spark.session import SPARK, Topics


def offsets(table: Path) -> list[tuple[int, int]]:
    found = DeltaTable(table).to_pyarrow_table(columns=["partition", "offset"])
    return sorted(zip(found["partition"].to_pylist(), found["offset"].to_pylist(), strict=True))


def test_statistics_of_a_file() -> None:
    found = _Statistics()
    found.add(pa.table({"partition": [1, 1], "offset": [7, 8], "value": [b"a", b"b"]}))
    found.add(pa.table({"partition": [0], "offset": [9], "value": [b"a"]}))
    found.add(pa.table({"partition": pa.array([None], pa.int32()), "offset": [8]}))
    assert found.to_json() == (
        '{"numRecords": 4, "minValues": {"partition": 0, "offset": 7}, "maxValues": {"partition": 1, "offset": 9}, "nullCount": {}}'
    )


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
        with pytest.raises(ValueError, match="has other columns than this query"):
            write_batch(table, spark.range(1), 1, "q")
        with pytest.raises(ValueError, match="belongs to no streaming query"):
            delta_writer(table)(rows, 1)


_LIKE_THE_TOPIC = [
    "cast(null as binary) as key", "cast(null as binary) as value", "'t' as topic", "0 as partition", "id as offset",
    "timestamp_millis(0) as timestamp", "0 as timestampType",
    "cast(null as array<struct<key: string, value: binary>>) as headers",
]  # fmt: skip
