"""A query that writes a table of each format: every record once, after failures around the commit and repeated batches."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from barnabas.spark import start
from barnabas.spark.tables import delta_writer, iceberg_writer
from barnabas.spark.tables.batch_writer import write_batch
from barnabas.spark.tables.delta_table import Delta
from barnabas.spark.tables.iceberg_table import Iceberg
from tests.spark.session import SPARK, Topics
from tests.spark.tables.appending import catalog_in, data_files, files_named, open_table, rows_of

KINDS = ["delta", pytest.param("iceberg", marks=pytest.mark.conform)]
pytestmark = [*SPARK, pytest.mark.parametrize("kind", KINDS)]


class _Once(Exception):
    pass


def writer(kind: str, folder: Path, **options: Any) -> Any:
    if kind == "delta":
        return delta_writer(folder / "table", **options)
    return iceberg_writer("shop.orders", catalog_in(folder), **options)


def offsets(kind: str, folder: Path) -> list[tuple[int, int]]:
    found = rows_of(open_table(kind, folder))
    return sorted(zip(found["partition"].to_pylist(), found["offset"].to_pylist(), strict=True))


@pytest.mark.conform
def test_a_query_that_is_killed_around_its_commit(
    spark: Any, topics: Topics, tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Batch 0 fails before the commit, then after it; batch 1 follows, with a column more. Each offset is in the table once."""
    topic = topics.create(partitions=2)
    for partition in (0, 1):
        topics.values(topic, ["x"] * 50, partition)
    table = Delta if kind == "delta" else Iceberg
    commit = table.commit

    def run(*more: str) -> None:
        options = {"kafka.bootstrap.servers": topics.servers, "subscribe": topic, "startingOffsets": "earliest"}
        rows = spark.readStream.format("barnabas").options(**options, includeHeaders="true").load()
        query = rows.selectExpr("*", *more).writeStream.foreachBatch(writer(kind, tmp_path, partition_by=["partition"]))
        query = query.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True)
        start(query).awaitTermination()

    def before(*given: Any) -> None:
        raise _Once

    def after(*given: Any) -> None:
        commit(*given)
        raise _Once

    for trouble in (before, after):
        monkeypatch.setattr(table, "commit", trouble)
        with pytest.raises(Exception, match="_Once"):
            run()
    monkeypatch.setattr(table, "commit", commit)
    run()
    topics.values(topic, ["y"] * 10, 1)
    run("length(value) as bytes")
    assert offsets(kind, tmp_path) == [(0, n) for n in range(50)] + [(1, n) for n in range(60)]
    found = open_table(kind, tmp_path)
    assert sorted(map(str, rows_of(found)["bytes"].to_pylist())) == ["1"] * 10 + ["None"] * 100
    assert spark.read.parquet(*files_named(found)).count() == 110
    assert len(data_files(tmp_path)) > len(files_named(found)), "the files of the first failure"


def test_a_batch_that_is_repeated(spark: Any, tmp_path: Path, kind: str) -> None:
    """With the same rows in another order and from other tasks it is skipped; with others it is an error."""
    rows = spark.range(20).selectExpr("int(id % 2) as partition", "id as offset")
    assert write_batch(open_table(kind, tmp_path), rows, 0, "q")
    again = rows.repartition(3).sort("offset", ascending=False)
    assert not write_batch(open_table(kind, tmp_path), again, 0, "q")
    more = spark.range(21).selectExpr("int(id % 2) as partition", "id as offset")
    with pytest.raises(ValueError, match=r"batch 0 of query q with 20 rows, digest \w+, .* repeats it with 21 rows"):
        write_batch(open_table(kind, tmp_path), more, 0, "q")
    writer(kind, tmp_path, query_id="q", fail_on_different_batch=False)(more, 0)
    assert offsets(kind, tmp_path) == sorted((n % 2, n) for n in range(20))
    with pytest.raises(ValueError, match="belongs to no streaming query: give the writer a query_id"):
        writer(kind, tmp_path)(rows, 1)
