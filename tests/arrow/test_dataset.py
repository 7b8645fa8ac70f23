"""The records as a dataset: only the columns of a query are decoded, and its filters are kept."""

from __future__ import annotations

import duckdb
import polars as pl
import pyarrow.compute as pc
import pytest

import barnabas
from barnabas.arrow import records as module
from barnabas.arrow.dataset import RecordsDataset
from barnabas.spark.source.fetcher import RangeFetcher

CLOSED = ("get_fragments", "replace_schema", "filter", "sort_by", "join", "join_asof", "take")


@pytest.fixture
def decoded(monkeypatch) -> list[tuple[str, ...]]:
    """The columns of each reading of a partition."""
    found: list[tuple[str, ...]] = []

    def fetcher(options, wanted, leader):
        found.append(options.columns)
        return RangeFetcher(options, wanted, leader)

    monkeypatch.setattr(module, "RangeFetcher", fetcher)
    return found


@pytest.fixture
def sales(servers) -> RecordsDataset:
    return RecordsDataset(barnabas.read("sales", bootstrap=servers, value="text"))


def test_duckdb_decodes_the_columns_of_the_query(sales, decoded):
    assert duckdb.sql('SELECT sum("offset") FROM sales').fetchall() == [(3 * sum(range(100)),)]
    assert set(decoded) == {("offset",)}


def test_a_filter_on_another_column_is_kept(sales, decoded):
    rows = duckdb.sql('SELECT count(*), min(key) FROM sales WHERE partition = 0 AND "offset" >= 90').fetchall()
    assert rows == [(10, b"k270")]
    assert {"value", "headers"} & {name for columns in decoded for name in columns} == set()


def test_pyarrow_scans_it(sales):
    only = pc.field("offset") >= 99
    assert sales.to_table(columns=["value"], filter=only)["value"].to_pylist() == [
        '{"n": 297}', '{"n": 298}', '{"n": 299}'
    ]  # fmt: skip
    assert (sales.count_rows(), sales.count_rows(filter=only), sales.head(2)["offset"].to_pylist()) == (300, 3, [0, 1])


def test_polars_scans_it(sales):
    found = pl.scan_pyarrow_dataset(sales).filter(pl.col("offset") >= 99).select(pl.len()).collect()
    assert found.item() == 3


@pytest.mark.parametrize("name", CLOSED)
def test_what_a_topic_cannot_do_is_an_error_and_not_the_end_of_the_process(sales, name):
    with pytest.raises(NotImplementedError, match=f"a topic has no {name}"):
        getattr(sales, name)()


def test_a_topic_has_no_partition_expression(sales):
    with pytest.raises(NotImplementedError):
        _ = sales.partition_expression


def test_an_error_that_ends_a_scan_is_noted(servers, monkeypatch):
    noted: list[Exception] = []
    broken = RecordsDataset(barnabas.read("sales", bootstrap=servers), noted.append)  # noqa: F841  (DuckDB finds it by name)

    def fetcher(options, wanted, leader):
        raise ValueError("the disk is gone")

    monkeypatch.setattr(module, "RangeFetcher", fetcher)
    with pytest.raises(duckdb.Error, match="the disk is gone"):
        duckdb.sql("SELECT count(*) FROM broken").fetchall()
    assert [str(each) for each in noted] == ["the disk is gone"]
