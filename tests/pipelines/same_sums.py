"""The sums of the shop's stored tables, by three programs: `spark-sql` asks the catalogue, DuckDB and polars read the files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import duckdb
import polars

from barnabas.demo.tables import committed_files

if TYPE_CHECKING:
    from run_pipelines import Shop

STORED = {
    "checked_orders": "amount",
    "payment_events": "amount",
    "stock_events": "level",
    "revenue_by_minute": "revenue",
    "best_sellers": "revenue",
    "payments": "amount",
    "stock": "level",
    "suspicious_orders": "amount",
}
"""Each table that the declarative form stores, and a column of numbers."""

Sums: TypeAlias = dict[str, tuple[int, Decimal]]
"""Of each table the number of its rows, and a column's sum."""


def sums(shop: Shop) -> dict[str, Sums]:
    """Return what each program says of a shop's tables."""
    files = {name: _files(shop.folder / "spark-warehouse" / name) for name in STORED}
    return {"spark-sql": _in_spark(shop), "DuckDB": in_duckdb(files, STORED), "polars": in_polars(files, STORED)}


def _files(folder: Path) -> list[Path]:
    """Return the files of a streaming table or of a materialized view."""
    return committed_files(folder) if (folder / "_spark_metadata").exists() else sorted(folder.glob("*.parquet"))


def _in_spark(shop: Shop) -> Sums:
    asked = (f"SELECT '{name}', count(*), coalesce(sum({column}), 0) FROM {name}" for name, column in STORED.items())
    return {name: (int(rows), Decimal(total)) for name, rows, total in shop.ask(*asked)}


def in_duckdb(files: Mapping[str, Sequence[Path]], columns: Mapping[str, str]) -> Sums:
    """Add up a column of each table's files with DuckDB."""
    found = {}
    for name, column in columns.items():
        read = duckdb.read_parquet([str(each) for each in files[name]], hive_partitioning=False)
        rows, total = read.aggregate(f"count(*), coalesce(sum({column}), 0)").fetchall()[0]
        found[name] = (rows, Decimal(total))
    return found


def in_polars(files: Mapping[str, Sequence[Path]], columns: Mapping[str, str]) -> Sums:
    """Add up a column of each table's files with polars."""
    found = {}
    for name, column in columns.items():
        read = polars.scan_parquet([str(each) for each in files[name]], hive_partitioning=False)
        rows, total = read.select(polars.len(), polars.col(column).sum()).collect().row(0)
        found[name] = (rows, Decimal(total))
    return found
