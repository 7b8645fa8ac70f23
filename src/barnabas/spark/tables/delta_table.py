"""A topic as a Delta table: every record once, also if a batch is repeated or two drivers write it.

    query = rows.writeStream.foreachBatch(delta_writer("lake/orders")).option("checkpointLocation", …).start()

`batch_writer` says how a batch is written. Of each query the table's log keeps, as versions of three application transactions,

    QUERY           the number of its last batch
    QUERY~rows      how many rows the batch had
    QUERY~digest    its digest, as a signed number

Transactions, unlike the information of a commit, survive checkpoints of the log and its clean-up, and a query's next batch replaces them.
deltalake rejects a commit with a transaction that another commit has changed since the table was read. `deltalake` writes files and
commits, so no jar is needed, and a table's place may be an object store: of two drivers, the store lets one create the log's next entry.

Readers skip files by their statistics (`delta_statistics`). A table without the property that names them gets it with the next batch.

Limits: partition columns are not in the files, and an empty text cannot be the value of one, because Delta reads it as null.
Source: the Delta protocol, "Transaction Identifiers", "Add File" and "Partition Value Serialization".
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any
from uuid import uuid4

import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq
from deltalake import CommitProperties, DeltaTable, Field, Schema, Transaction
from deltalake.exceptions import CommitFailedError, TableNotFoundError
from deltalake.fs import DeltaStorageHandler
from deltalake.transaction import AddAction, RemoveAction

from barnabas.spark.tables import delta_statistics
from barnabas.spark.tables.batch_proof import BatchProof
from barnabas.spark.tables.batch_writer import BatchTable, CommitConflict, WrittenBatch, batch_function
from barnabas.spark.tables.columns import Column, check_partition_columns, check_same_partitions, new_columns
from barnabas.spark.tables.data_files import DataFile, FileTarget, Values
from barnabas.spark.tables.delta_checks import check_folder, check_properties
from barnabas.spark.tables.store_errors import reached

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def delta_writer(
    path: str | os.PathLike[str],
    *,
    query_id: str | None = None,
    fail_on_different_batch: bool = True,
    fail_on_missing_batch: bool = True,
    partition_by: Sequence[str] | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> Callable[[DataFrame, int], None]:
    """Return the function with which `foreachBatch` appends each batch to a Delta table.

    Args:
        path: the table's folder, or its place in an object store (`s3://…`); the first batch creates the table.
        query_id: names the sequence of batches in the table; None takes the id that Spark keeps in the query's checkpoint,
            which Spark Connect does not tell.
        fail_on_different_batch: False skips a batch that the table has without reading it. Rows with a value that is computed each
            time (`uuid()`) need this: they are never the same again.
        fail_on_missing_batch: False is for a table that gets only some of the query's batches.
        partition_by: columns that a new table is partitioned by; None takes those of the table.
        storage_options: what deltalake needs to reach an object store.

    The function raises ValueError, and writes nothing, if

    - the folder has files and no table, or the store refuses;
    - a column of the table has another type, or is not in the query; the table was made with constraints or mapped columns;
    - the table has records, and none of this query: the query's checkpoint was deleted or moved, so it would write them a second time;
    - the table has a later batch of the query, or this batch with other rows: the checkpoint is older than the table;
    - the table does not have the batch before this one: the table was deleted, or is older than the checkpoint.

    A column that is new in the query is added to the table.
    """
    names = None if partition_by is None else tuple(partition_by)
    return batch_function(
        lambda: Delta.at(path, names, storage_options), query_id, fail_on_different_batch, fail_on_missing_batch
    )


@dataclass
class Delta(BatchTable):
    """A Delta table, which need not exist yet."""

    place: str
    partition_by: tuple[str, ...] | None = None
    options: dict[str, str] = field(default_factory=dict)
    table: DeltaTable | None = None

    @classmethod
    def at(
        cls,
        path: str | os.PathLike[str],
        partition_by: tuple[str, ...] | None = None,
        options: Mapping[str, str] | None = None,
    ) -> Delta:
        place = os.fspath(path)
        return cls(place if "://" in place else str(Path(place).absolute()), partition_by, dict(options or {}))

    @property
    def name(self) -> str:
        return self.place

    @property
    def is_local(self) -> bool:
        return "://" not in self.place

    def refresh(self) -> None:
        with reached(self.name):
            try:
                self.table = DeltaTable(self.place, storage_options=self.options)
            except TableNotFoundError:
                self.table = None

    def has_records(self) -> bool:
        return self.table is not None and bool(self.table.file_uris())

    def written(self, query_id: str) -> WrittenBatch | None:
        if self.table is None or (number := self.table.transaction_version(query_id)) is None:
            return None
        rows, digest = (self.table.transaction_version(f"{query_id}~{name}") for name in ("rows", "digest"))
        return WrittenBatch(number, None if rows is None or digest is None else BatchProof(rows, digest))

    def prepare(self, schema: pa.Schema) -> DeltaFiles:
        if self.table is None:
            self._create(schema)
        table = self.opened()
        check_properties(self.name, table)
        partition_by = tuple(table.metadata().partition_columns)
        check_same_partitions(self.name, partition_by, self.partition_by)
        self._add_columns(schema)
        check_partition_columns(self.name, schema, partition_by)
        properties = delta_statistics.properties(schema, partition_by)
        if not properties.items() <= table.metadata().configuration.items():
            self.opened().alter.set_table_properties(properties)
        target = DeltaFiles.of(self, schema)
        if not self.is_local:
            with reached(self.name):
                target.try_to_write()
        return target

    def _create(self, schema: pa.Schema) -> None:
        if self.is_local:
            check_folder(Path(self.place))
        partition_by = self.partition_by or ()
        check_partition_columns(self.name, schema, partition_by)
        with reached(self.name):
            self.table = DeltaTable.create(
                self.place,
                Schema.from_arrow(schema),
                mode="ignore",
                partition_by=list(partition_by),
                configuration=delta_statistics.properties(schema, partition_by),
                storage_options=self.options,
            )
            self.refresh()  # another driver may have created it

    def _add_columns(self, schema: pa.Schema) -> None:
        there, ours = self.opened().schema(), Schema.from_arrow(schema)
        types = {each.name: type_name(each) for each in ours.fields}
        columns = {each.name: Column(type_name(each), each.nullable) for each in there.fields}
        new = new_columns(self.name, columns, types)
        if new:
            self.opened().alter.add_columns([each for each in ours.fields if each.name in new])
            self.refresh()

    def commit(self, files: Sequence[DataFile], query_id: str, batch_id: int, proof: BatchProof) -> None:
        now_ms = time.time_ns() // 1_000_000
        actions: list[AddAction | RemoveAction] = [
            add_action(each.path, each.entry, now_ms, data_change=True)
            for each in sorted(files, key=lambda each: each.path)
        ]
        transactions = [
            Transaction(query_id, batch_id),
            Transaction(f"{query_id}~rows", proof.rows),
            Transaction(f"{query_id}~digest", proof.signed_digest),
        ]
        table = self.opened()
        try:
            table.create_write_transaction(
                actions,
                "append",
                table.schema(),
                partition_by=list(table.metadata().partition_columns),
                commit_properties=CommitProperties(app_transactions=transactions),
            )
        except CommitFailedError as error:
            raise CommitConflict(str(error)) from error

    def names(self, files: Sequence[DataFile]) -> bool:
        there = {uri.rsplit("/", 1)[-1] for uri in self.opened().file_uris()}
        return any(each.path in there for each in files)

    def delete(self, files: Sequence[DataFile]) -> None:
        store = DeltaFiles.of(self).store()
        for each in files:
            store.delete_file(each.path)

    def opened(self) -> DeltaTable:
        """Return the table as it was read last.

        Raises:
            ValueError: there was none.
        """
        if self.table is None:
            raise ValueError(f"{self.name} is not a Delta table")
        return self.table


def type_name(column: Field) -> str:
    """Return a column's type as Delta names it."""
    return str(getattr(column.type, "type", column.type))


@dataclass(frozen=True)
class DeltaFiles(FileTarget):
    """Where the tasks of a batch put the files of a Delta table."""

    place: str
    options: dict[str, str]
    schema: pa.Schema
    partition_by: tuple[str, ...] = ()
    parquet: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, table: Delta, schema: pa.Schema | None = None) -> DeltaFiles:
        """Return where files of a table go; None takes the table's columns."""
        opened = table.opened()
        partition_by = tuple(opened.metadata().partition_columns)
        schema = pa.schema(opened.schema().to_arrow()) if schema is None else schema
        in_files = pa.schema([each for each in schema if each.name not in partition_by])
        return cls(table.place, table.options, in_files, partition_by)

    def create(self) -> tuple[str, IO[bytes]]:
        name = f"part-{uuid4()}.parquet"
        return name, self.store().open_output_stream(name)

    def try_to_write(self) -> None:
        """Raise OSError if the store does not let the query write here; it may let it read all the same."""
        store, name = self.store(), f"_barnabas-{uuid4()}"
        # deltalake's stream takes what Parquet's writer gives it, and not what `NativeFile.write` does.
        with store.open_output_stream(name) as stream:
            pq.write_table(self.schema.empty_table(), stream)
        store.delete_file(name)

    def entry(self, path: str, size: int, values: Values, footer: pq.FileMetaData) -> bytes:
        partition = self.partition_texts(values)
        return json.dumps({"size": size, "partition": partition, "stats": delta_statistics.of_file(footer)}).encode()

    def partition_texts(self, values: Values) -> dict[str, str | None]:
        """Return the values of a file's partition as the log has them."""
        return {name: _partition_text(name, value) for name, value in zip(self.partition_by, values, strict=True)}

    def store(self) -> pafs.FileSystem:
        """Return the table's folder."""
        return pafs.PyFileSystem(DeltaStorageHandler(self.place, self.options))


def add_action(path: str, entry: bytes, now_ms: int, *, data_change: bool) -> AddAction:
    """Return what the table's log says of a new file; the entry is that of `DeltaFiles`."""
    found = json.loads(entry)
    return AddAction(path, found["size"], found["partition"], now_ms, data_change, found["stats"])


def _partition_text(name: str, value: object) -> str | None:
    """Return a value of a partition column as Delta writes it."""
    if value == "":
        raise ValueError(f"a row has an empty text in the partition column {name}, which Delta would read as null")
    if isinstance(value, bool):
        return str(value).lower()
    return None if value is None else str(value)
