"""Whatever takes an Arrow stream takes the records: pyarrow, polars, DuckDB; each reading has the same ones."""

from __future__ import annotations

import confluent_kafka
import duckdb
import polars as pl
import pyarrow as pa
import pytest

import barnabas
from barnabas.arrow import NotText
from tests.arrow.conftest import SALES, create
from tests.arrow.consumed import consumed

SUM = sum(range(300))


@pytest.fixture(scope="module")
def sales(servers):
    return barnabas.read("sales", bootstrap=servers, value="text")


def test_pyarrow_polars_and_duckdb_sum_as_an_independent_consumer_does(servers, sales):
    wanted = sum(int(each.value.decode()[6:-1]) for each in consumed(servers, "sales", 3))
    assert wanted == SUM
    stream = pa.RecordBatchReader.from_stream(sales)
    assert sum(int(text[6:-1]) for batch in stream for text in batch["value"].to_pylist()) == wanted
    frame = pl.DataFrame(sales).select(pl.col("value").str.json_path_match("$.n").cast(pl.Int64).sum())
    assert frame.item() == wanted
    assert duckdb.sql("SELECT sum((value->>'$.n')::int) FROM sales").fetchall() == [(wanted,)]


def test_every_column_is_that_of_the_consumer(servers):
    table = barnabas.read("sales", bootstrap=servers).table()
    found = table.select(["partition", "offset", "key", "value"]).to_pylist()
    wanted = consumed(servers, "sales", 3)
    assert [tuple(row.values()) for row in found] == [each[:4] for each in wanted]
    times = table["timestamp"].cast(pa.timestamp("ms", "UTC")).cast(pa.int64()).to_pylist()
    assert times == [each.timestamp_ms for each in wanted]
    assert table["headers"].to_pylist().count([{"key": "shop", "value": b"1"}]) == 150
    assert set(table["topic"].to_pylist()) == {"sales"}
    assert table["timestampType"].to_pylist() == [0] * 300


def test_each_reading_has_the_same_records(servers):
    create(servers, "growing")
    producer = confluent_kafka.Producer({"bootstrap.servers": servers})
    producer.produce("growing", b"1")
    producer.flush()
    growing = barnabas.read("growing", bootstrap=servers)
    producer.produce("growing", b"2")
    producer.flush()
    assert [growing.table().num_rows, growing.table().num_rows, sum(batch.num_rows for batch in growing)] == [1, 1, 1]
    assert repr(growing) == "<Records topics=growing offsets=1>"


def test_a_join_with_itself_has_every_row_on_both_sides(sales):
    (row,) = duckdb.sql(
        'SELECT count(*), count(DISTINCT (a.partition, a."offset")) FROM sales a JOIN sales b USING (partition, "offset")'
    ).fetchall()
    assert row == (300, 300)


def test_only_the_columns_that_are_chosen(servers):
    chosen = barnabas.read("sales", bootstrap=servers, columns=["offset", "partition"])
    assert chosen.schema.names == chosen.table().schema.names == ["offset", "partition"]
    assert chosen.table().num_rows == len(SALES)


def test_a_topic_without_records_is_a_table_without_rows(servers):
    create(servers, "empty", 2)
    empty = barnabas.read("empty", bootstrap=servers)
    assert (empty.table().num_rows, empty.table().schema, len(empty.ranges)) == (0, empty.schema, 2)


def test_a_reading_that_is_left_closes_its_connection(sales):
    batches = sales.batches(["offset"])
    next(batches)
    batches.close()
    assert list(batches) == []


def test_a_value_that_is_not_text(servers):
    create(servers, "bytes")
    producer = confluent_kafka.Producer({"bootstrap.servers": servers})
    for value in (b"a", b"\xff"):
        producer.produce("bytes", value)
    producer.flush()
    read = barnabas.read("bytes", bootstrap=servers, value="text", columns=["value"])
    with pytest.raises(NotText, match="the value at offset 1 of bytes-0 is not UTF-8"):
        read.table()
