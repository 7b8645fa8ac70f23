"""A batch that is appended without Spark: one task, and the driver."""

from __future__ import annotations

import pickle
from pathlib import Path

import pyarrow as pa
import pytest

from barnabas.spark.tables.batch_proof import BatchProof
from barnabas.spark.tables.batch_writer import BatchTable, commit_batch, is_written
from barnabas.spark.tables.data_files import ROW_DIGEST, DataFile, task_writer
from barnabas.spark.tables.delta_table import Delta
from barnabas.spark.tables.iceberg_catalog import open_catalog
from barnabas.spark.tables.iceberg_table import Iceberg

KINDS = ("delta", pytest.param("iceberg", marks=pytest.mark.slow))


def open_table(kind: str, folder: Path, partition_by: tuple[str, ...] | None = None) -> BatchTable:
    """Return a table in a folder, as one more driver opens it."""
    if kind == "delta":
        return Delta.at(folder / "table", partition_by)
    return Iceberg("shop.orders", open_catalog(catalog_in(folder)), partition_by)


def catalog_in(folder: Path) -> dict[str, str]:
    """Return the properties of a catalogue in a folder."""
    return {"type": "sql", "uri": f"sqlite:///{folder}/catalog.db", "warehouse": f"file://{folder}/warehouse"}


def rows_of(table: BatchTable) -> pa.Table:
    """Return a table's rows, as its format's own library reads them."""
    table.refresh()
    if isinstance(table, Delta):
        assert table.table is not None
        return table.table.to_pyarrow_table()
    assert isinstance(table, Iceberg)
    assert table.table is not None
    return table.table.scan().to_arrow()


def data_files(folder: Path) -> list[str]:
    """Return the Parquet files under a folder."""
    return sorted(str(path) for path in folder.rglob("*.parquet") if "_delta_log" not in path.parts)


def files_named(table: BatchTable) -> list[str]:
    """Return the paths of the files that a table names."""
    table.refresh()
    if isinstance(table, Delta):
        assert table.table is not None
        return sorted(table.table.file_uris())
    assert isinstance(table, Iceberg)
    assert table.table is not None
    return sorted(task.file.file_path.removeprefix("file://") for task in table.table.scan().plan_files())


def proof(rows: pa.Table) -> BatchProof:
    """Return a batch's proof, with hashes that any number will do for."""
    return BatchProof(rows.num_rows, sum(range(rows.num_rows)))


def write_files(table: BatchTable, rows: pa.Table) -> list[DataFile]:
    """Write rows as a task in another process does."""
    target = pickle.loads(pickle.dumps(table.prepare(rows.schema)))
    hashed = rows.append_column(ROW_DIGEST, pa.array(range(rows.num_rows), pa.int64()))
    return [DataFile(**each) for found in task_writer(target)(hashed.to_batches()) for each in found.to_pylist()]


def append(table: BatchTable, rows: pa.Table, batch_id: int, query_id: str = "q") -> bool:
    """Append rows as one batch; return False if the table has it already."""
    if is_written(table, query_id, batch_id, lambda: proof(rows)):
        return False
    return commit_batch(table, write_files(table, rows), query_id, batch_id)


def rows(first: int, count: int = 2) -> pa.Table:
    """Return rows whose lists are null and empty in turn, an even number of them."""
    lists = pa.array([None, []] * (count // 2), pa.list_(pa.field("element", pa.int32())))
    return pa.table({"offset": pa.array(range(first, first + count)), "headers": lists})
