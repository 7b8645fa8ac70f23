"""A topic as a Delta table: every record once, also if a batch is repeated or two drivers write it.

    query = rows.writeStream.foreachBatch(delta_writer("lake/orders")).option("checkpointLocation", …).start()

A batch is written in two steps. Its tasks write Parquet files into the folder of the table, where no reader looks yet. Then the driver
commits one entry of the table's log, which names the files and an application transaction: the query's id with the number of the batch.
So the rows become visible together, and a batch whose number is in the log is not written again. `batch_proof` shows that it is the
same batch. A batch with other rows, or with a lower number, is an error: the checkpoint is not the table's.

Each cut ends well:

    killed while tasks write    files that no log names; the batch is repeated with new ones
    killed after the commit     the repeated batch finds its number and is read to be compared; it writes nothing
    two drivers, one batch      both write files, one commit wins; the other finds the number then, and deletes its files
    a driver is overtaken       it finds a higher number, deletes its files and fails

The rows do not pass through the driver, only the names and sizes of the files. `deltalake` commits, so no jar is needed.

Readers skip files by the statistics in the log. A file has them for `partition` and `offset` only, and the table says so in
`delta.dataSkippingStatsColumns`. Without that property deltalake takes a statistic that is absent for one that matches nothing, and a
filter on `topic` finds no row. A table without the property gets it with the next batch.

Limits: the folder is one that the driver and all tasks see, no object store; the table is not partitioned; a crash leaves files, which
`DeltaTable.vacuum` removes.
Source: the Delta protocol, "Transaction Identifiers", "Add File" and "Per-file Statistics".
"""

from __future__ import annotations

import json
import logging
import os
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake import CommitProperties, DeltaTable, Schema, Transaction
from deltalake.exceptions import CommitFailedError
from deltalake.transaction import AddAction, RemoveAction

from barnabas.spark.lake.batch_proof import BatchProof, proof_in, proof_of, row_digest
from barnabas.spark.lake.table_checks import check_folder, check_table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

logger = logging.getLogger("barnabas.spark")

_FILES = pa.schema(
    [("path", pa.string()), ("size", pa.int64()), ("stats", pa.string()), ("rows", pa.int64()), ("digest", pa.int64())]
)
_FILES_IN_SPARK = "path string, size bigint, stats string, rows bigint, digest bigint"
ROW_DIGEST = "barnabas row digest"
_QUERY_ID = "sql.streaming.queryId"
# Readers skip files by the least and the greatest value of these.
_COLUMNS_WITH_STATISTICS = ("partition", "offset")
_STATISTICS_PROPERTY = "delta.dataSkippingStatsColumns"


def delta_writer(
    path: str | os.PathLike[str],
    *,
    query_id: str | None = None,
    fail_on_different_batch: bool = True,
    fail_on_missing_batch: bool = True,
) -> Callable[[DataFrame, int], None]:
    """Return the function with which `foreachBatch` appends each batch to a Delta table.

    Args:
        path: the table's folder; the first batch creates the table.
        query_id: names the sequence of batches in the table; None takes the id that Spark keeps in the query's checkpoint.
        fail_on_different_batch: False skips a batch that the table has without reading it. Rows with a value that is computed each
            time (`uuid()`) need this: they are never the same again.
        fail_on_missing_batch: False is for a table that gets only some of the query's batches.

    The function raises ValueError, and writes nothing, if

    - the folder has files and no table; the table has other columns, or was made with partitions, constraints or mapped columns;
    - the table has records, and none of this query: the query's checkpoint was deleted or moved, so it would write them a second time;
    - the table has a later batch of the query, or this batch with other rows: the checkpoint is older than the table;
    - the table does not have the batch before this one: the table was deleted, or is older than the checkpoint.
    """
    folder = Path(path).absolute()

    def write(batch: DataFrame, batch_id: int) -> None:
        write_batch(
            folder, batch, batch_id, query_id or _id_of_query(batch), fail_on_different_batch, fail_on_missing_batch
        )

    return write


def write_batch(
    folder: Path,
    batch: DataFrame,
    batch_id: int,
    query_id: str,
    fail_on_different_batch: bool = True,
    fail_on_missing_batch: bool = True,
) -> bool:
    """Append a batch to a table; return False if the table has it already.

    Raises:
        ValueError: as `delta_writer` says.
    """
    schema = _arrow_schema(batch)
    table = _open(folder, schema, query_id)
    if _has(folder, table, query_id, batch_id):
        if fail_on_different_batch:
            _check_same(folder, table, query_id, batch_id, lambda: proof_of(batch))
        logger.info("%s has batch %d of query %s already", folder, batch_id, query_id)
        return False
    if fail_on_missing_batch:
        _check_next(folder, table, query_id, batch_id)
    rows = batch.withColumn(ROW_DIGEST, row_digest(batch))
    found = rows.mapInArrow(_file_writer(folder, schema), _FILES_IN_SPARK).collect()
    files = {row.path: (row.size, row.stats) for row in found}
    proof = BatchProof(sum(row.rows for row in found), sum(row.digest for row in found))
    try:
        commit_files(table, schema, files, query_id, batch_id, proof)
    except CommitFailedError:
        table = DeltaTable(folder)
        last = table.transaction_version(query_id)
        if last is None or last < batch_id:
            raise
        for name in files:
            (folder / name).unlink()
        if _has(folder, table, query_id, batch_id) and fail_on_different_batch:
            _check_same(folder, table, query_id, batch_id, lambda: proof)
        logger.warning("another driver has written batch %d of query %s to %s", batch_id, query_id, folder)
        return False
    return True


def commit_files(
    table: DeltaTable,
    schema: pa.Schema,
    files: Mapping[str, tuple[int, str]],
    query_id: str,
    batch_id: int,
    proof: BatchProof,
) -> None:
    """Make files part of the table, as one batch.

    Args:
        files: size in bytes and Delta's statistics, by path within the table's folder.
        proof: of the batch.

    Raises:
        CommitFailedError: another commit has this batch, or contradicts this one.
    """
    now_ms = time.time_ns() // 1_000_000
    actions: list[AddAction | RemoveAction] = [
        AddAction(name, size, {}, now_ms, True, stats) for name, (size, stats) in sorted(files.items())
    ]
    transactions = [Transaction(query_id, batch_id), *proof.transactions(query_id)]
    properties = CommitProperties(app_transactions=transactions)
    table.create_write_transaction(actions, "append", schema, commit_properties=properties)


def _id_of_query(batch: DataFrame) -> str:
    found = batch.sparkSession.sparkContext.getLocalProperty(_QUERY_ID)
    if not found:
        raise ValueError("this batch belongs to no streaming query: give delta_writer a query_id")
    return str(found)


def _arrow_schema(batch: DataFrame) -> pa.Schema:
    """Return the table's columns: Spark's timestamps in UTC, which Delta requires, and everything nullable."""
    return pa.schema([pa.field(each.name, _in_utc(each.type)) for each in batch.limit(0).toArrow().schema])


def _in_utc(kind: pa.DataType) -> pa.DataType:
    return pa.timestamp("us", "UTC") if pa.types.is_timestamp(kind) and kind.tz is not None else kind


def _open(folder: Path, schema: pa.Schema, query_id: str) -> DeltaTable:
    properties = _properties(schema)
    check_folder(folder)
    DeltaTable.create(folder, Schema.from_arrow(schema), mode="ignore", configuration=properties)
    table = DeltaTable(folder)
    check_table(folder, table, schema)
    if table.transaction_version(query_id) is None and table.file_uris():
        raise ValueError(
            f"{folder} has records, and none of query {query_id}: its checkpoint is new, so it would write records a second time. "
            "Use the checkpoint that belongs to the table, or another table"
        )
    if not properties.items() <= table.metadata().configuration.items():
        table.alter.set_table_properties(properties)
    return table


def _properties(schema: pa.Schema) -> dict[str, str]:
    names = _with_statistics(schema)
    return {_STATISTICS_PROPERTY: ",".join(names)} if names else {}


def _with_statistics(schema: pa.Schema) -> list[str]:
    return [
        name
        for name in _COLUMNS_WITH_STATISTICS
        if name in schema.names and pa.types.is_integer(schema.field(name).type)
    ]


def _has(folder: Path, table: DeltaTable, query_id: str, batch_id: int) -> bool:
    """Return whether a batch is the last one of its query in a table.

    Raises:
        ValueError: the table has a later one.
    """
    last = table.transaction_version(query_id)
    if last is not None and last > batch_id:
        raise ValueError(
            f"{folder} has batch {last} of query {query_id}, and this is batch {batch_id}: the query's checkpoint is older than "
            "the table, or is another one's. Use the checkpoint that belongs to the table, or another table"
        )
    return last == batch_id


def _check_next(folder: Path, table: DeltaTable, query_id: str, batch_id: int) -> None:
    """Raise ValueError if a table does not have the batch before."""
    last = table.transaction_version(query_id)
    # Older versions of this writer kept no batch without rows, and no proof.
    if last is not None and proof_in(table, query_id) is None:
        return
    if batch_id > (0 if last is None else last + 1):
        there = "no batch" if last is None else f"batches up to {last}"
        raise ValueError(
            f"{folder} has {there} of query {query_id}, and this is batch {batch_id}: rows of the batches before it are not in the table. "
            "It was deleted, or is older than the query's checkpoint. Begin with a new checkpointLocation and another table; "
            "delta_writer(…, fail_on_missing_batch=False) is for a table that gets only some of the batches"
        )


def _check_same(folder: Path, table: DeltaTable, query_id: str, batch_id: int, proof: Callable[[], BatchProof]) -> None:
    """Raise ValueError if the table's last batch of a query has other rows than the batch that repeats it."""
    there = proof_in(table, query_id)
    if there is None:
        return
    now = proof()
    if now != there:
        raise ValueError(
            f"{folder} has batch {batch_id} of query {query_id} with {there}, and Spark repeats it with {now}: the query's checkpoint is "
            "older than the table, or rows are computed otherwise each time. Use the checkpoint that belongs to the table, or another "
            "table; delta_writer(…, fail_on_different_batch=False) skips such a batch, with the rows that the table does not have"
        )


def _file_writer(folder: Path, schema: pa.Schema) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return the function of a task, which writes its rows into one file and yields the file's name, size and statistics."""

    def write(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        filled = (batch for batch in batches if batch.num_rows)
        first = next(filled, None)
        if first is None:
            return
        name = f"part-{uuid.uuid4()}.parquet"
        statistics = _Statistics()
        digest = 0
        with pq.ParquetWriter(folder / name, schema) as writer:
            while first is not None:
                rows = pa.Table.from_batches([first])
                digest += pc.sum(rows[ROW_DIGEST]).as_py()  # modulo 2**64, as Arrow adds
                rows = rows.drop_columns(ROW_DIGEST).cast(schema)
                writer.write_table(rows)
                statistics.add(rows)
                first = next(filled, None)
        size = (folder / name).stat().st_size
        of_rows = BatchProof(statistics.rows, digest)
        signed = of_rows.signed_digest
        yield pa.RecordBatch.from_arrays(
            [[name], [size], [statistics.to_json()], [of_rows.rows], [signed]], schema=_FILES
        )

    return write


class _Statistics:
    """Delta's statistics of a file: the number of rows; the least and the greatest partition and offset, and how many are null."""

    def __init__(self) -> None:
        self.rows = 0
        self._least: dict[str, int] = {}
        self._greatest: dict[str, int] = {}
        self._nulls: dict[str, int] = {}

    def add(self, rows: pa.Table) -> None:
        self.rows += rows.num_rows
        for name in _with_statistics(rows.schema):
            column = rows.column(name)
            self._nulls[name] = self._nulls.get(name, 0) + column.null_count
            found = pc.min_max(column).as_py()
            if found["min"] is not None:
                self._least[name] = min(found["min"], self._least.get(name, found["min"]))
                self._greatest[name] = max(found["max"], self._greatest.get(name, found["max"]))

    def to_json(self) -> str:
        """Return them as an entry of the table's log has them."""
        found: dict[str, object] = {"numRecords": self.rows}
        if self._nulls:  # without a column the three are left out: empty ones would count as statistics of every column
            found |= {"minValues": self._least, "maxValues": self._greatest, "nullCount": self._nulls}
        return json.dumps(found)
