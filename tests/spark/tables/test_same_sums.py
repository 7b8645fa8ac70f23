"""A table that a query wrote, half of it compacted: Spark, DuckDB and polars give the sums of the records that were sent."""

from __future__ import annotations

import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import polars
import pytest

from barnabas.spark import start
from barnabas.spark.tables import Delta, Iceberg, compact, delta_writer, iceberg_writer
from tests.spark.session import SPARK, Topics
from tests.spark.tables.appending import catalog_in, files_named, open_table

pytestmark = [*SPARK, pytest.mark.conform]
AMOUNTS = [Decimal(n) / 100 - 20 for n in range(5_000)]


@pytest.mark.parametrize("kind", ["delta", "iceberg"])
def test_three_programs_give_the_same_sums(spark: Any, topics: Topics, tmp_path: Path, kind: str) -> None:
    topic = topics.create(partitions=2)
    write = delta_writer(tmp_path / "table") if kind == "delta" else iceberg_writer("shop.orders", catalog_in(tmp_path))
    half = len(AMOUNTS) // 2
    for part, amounts in enumerate((AMOUNTS[:half], AMOUNTS[half:])):
        topics.produce(topic, [{"value": str(each)} for each in amounts])
        options = {"kafka.bootstrap.servers": topics.servers, "subscribe": topic, "startingOffsets": "earliest"}
        read = spark.readStream.format("barnabas").options(**options, maxOffsetsPerTrigger="500").load()
        rows = read.selectExpr("partition", "offset", "cast(cast(value AS string) AS decimal(12,2)) AS amount")
        query = rows.writeStream.foreachBatch(write).option("checkpointLocation", str(tmp_path / "checkpoint"))
        start(query.trigger(availableNow=True)).awaitTermination()
        if part == 0:
            found = compact(open_table(kind, tmp_path), 1 << 20, datetime.datetime.now(datetime.UTC))
            assert found.before > found.after == 1
    expected = (len(AMOUNTS), sum(AMOUNTS))
    assert in_spark(spark, kind, tmp_path) == expected
    assert in_duckdb(kind, tmp_path) == expected
    assert in_polars(kind, tmp_path) == expected


def in_spark(spark: Any, kind: str, folder: Path) -> tuple[Any, ...]:
    """Ask Spark's SQL, which reads the files that the table names."""
    spark.read.parquet(*files_named(open_table(kind, folder))).createOrReplaceTempView("orders_in_a_table")
    return tuple(spark.sql("SELECT count(*), sum(amount) FROM orders_in_a_table").first())


def in_duckdb(kind: str, folder: Path) -> tuple[Any, ...]:
    table = open_table(kind, folder)
    table.refresh()
    if isinstance(table, Delta):
        rows = duckdb.from_arrow(table.opened().to_pyarrow_dataset())
    else:
        assert isinstance(table, Iceberg)
        rows = table.opened().scan().to_duckdb("orders").table("orders")
    (found,) = rows.aggregate("count(*), sum(amount)").fetchall()
    return tuple(found)


def in_polars(kind: str, folder: Path) -> tuple[Any, ...]:
    table = open_table(kind, folder)
    table.refresh()
    if isinstance(table, Delta):
        rows = polars.scan_delta(str(folder / "table"))
    else:
        assert isinstance(table, Iceberg)
        rows = polars.scan_iceberg(table.opened())
    return tuple(rows.select(polars.len(), polars.col("amount").sum()).collect().row(0))
