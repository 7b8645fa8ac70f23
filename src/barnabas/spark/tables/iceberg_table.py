"""A topic as an Iceberg table: every record once, also if a batch is repeated or two drivers write it.

    catalog = {"type": "sql", "uri": "sqlite:///lake/catalog.db", "warehouse": "file:///lake"}
    query = rows.writeStream.foreachBatch(iceberg_writer("shop.orders", catalog)).option("checkpointLocation", …).start()

`batch_writer` says how a batch is written. Its commit is one snapshot, and sets a property of the table for the query:

    barnabas.batch.QUERY    {"batch": 7, "rows": 100, "digest": "00…ff"}

Properties, unlike the summary of a snapshot, stay when snapshots expire, and a query's next batch replaces its property. The summary has
the same under `barnabas.query`, for people who read the table's history.

A catalogue accepts the commit only if the table's branch is still at the snapshot that the driver read the property from. pyiceberg would
repeat a commit that lost against another one, although the other one may have this very batch. So its repetition is switched off, and
each attempt reads the property first.

Limits: the branch is `main`. A table's partitions are columns as they are, no transforms.
Source: the Iceberg table specification, "Optimistic Concurrency", "Snapshots" and "Table Metadata".
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import CommitFailedException, NoSuchTableError, TableAlreadyExistsError
from pyiceberg.table import Table, TableProperties, Transaction
from pyiceberg.table.update.snapshot import ExpireSnapshots
from pyiceberg.transforms import IdentityTransform

from barnabas.spark.tables.batch_proof import BatchProof
from barnabas.spark.tables.batch_writer import BatchTable, CommitConflict, WrittenBatch, batch_function
from barnabas.spark.tables.columns import check_partition_columns, check_same_partitions, new_columns
from barnabas.spark.tables.data_files import DataFile
from barnabas.spark.tables.iceberg_catalog import open_catalog
from barnabas.spark.tables.iceberg_files import IcebergFiles, manifest_file
from barnabas.spark.tables.iceberg_history import THIN_HISTORY, to_take_out
from barnabas.spark.tables.iceberg_types import columns_of, type_name
from barnabas.spark.tables.store_errors import reached

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_PROPERTY = "barnabas.batch."
_ATTEMPTS = 20
"""Commits of others that one of ours loses against: queries and compactions of the same table."""

_NEW_TABLE = {
    # Without these the list of manifests, and the old versions of the table's metadata, grow with every batch.
    TableProperties.MANIFEST_MERGE_ENABLED: "true",
    TableProperties.METADATA_DELETE_AFTER_COMMIT_ENABLED: "true",
    THIN_HISTORY: "true",
}


def iceberg_writer(
    table: str,
    catalog: str | Mapping[str, str],
    *,
    query_id: str | None = None,
    fail_on_different_batch: bool = True,
    fail_on_missing_batch: bool = True,
    partition_by: Sequence[str] | None = None,
) -> Callable[[DataFrame, int], None]:
    """Return the function with which `foreachBatch` appends each batch to an Iceberg table.

    Args:
        table: its name in the catalogue, with the namespace; the first batch creates both.
        catalog: the properties of pyiceberg's catalogue, or the name of one in pyiceberg's own configuration.
        query_id: as in `delta_writer`, like the rest.

    The function raises ValueError, and writes nothing, in the cases of `delta_writer`.
    """
    names = None if partition_by is None else tuple(partition_by)
    return batch_function(
        lambda: Iceberg(table, open_catalog(catalog), names), query_id, fail_on_different_batch, fail_on_missing_batch
    )


@dataclass
class Iceberg(BatchTable):
    """An Iceberg table, which need not exist yet."""

    identifier: str
    catalog: Catalog
    partition_wanted: tuple[str, ...] | None = None
    table: Table | None = None

    @property
    def name(self) -> str:
        return f"table {self.identifier}"

    @property
    def place(self) -> str:
        """The table and where it is, for errors of its store."""
        where = self.catalog.properties.get("warehouse") if self.table is None else self.table.location()
        return f"{self.name} in {where}" if where else self.name

    def refresh(self) -> None:
        with reached(self.place):
            try:
                self.table = self.catalog.load_table(self.identifier)
            except NoSuchTableError:
                self.table = None

    def has_records(self) -> bool:
        snapshot = None if self.table is None else self.table.current_snapshot()
        if snapshot is None:
            return False
        total = None if snapshot.summary is None else snapshot.summary["total-records"]
        return total is None or int(total) > 0

    def written(self, query_id: str) -> WrittenBatch | None:
        kept = None if self.table is None else self.table.properties.get(_PROPERTY + query_id)
        if kept is None:
            return None
        found = json.loads(kept)
        return WrittenBatch(found["batch"], BatchProof(found["rows"], int(found["digest"], 16)))

    def prepare(self, schema: pa.Schema) -> IcebergFiles:
        if self.table is None:
            self._create(schema)
        table = self.opened()
        for each in table.spec().fields:
            if not isinstance(each.transform, IdentityTransform):
                raise ValueError(
                    f"{self.name} is partitioned by {each.name}, a {each.transform} of a column, which iceberg_writer does not support: "
                    "write to another table"
                )
        partition_by = IcebergFiles.of(table).partition_by
        check_same_partitions(self.name, partition_by, self.partition_wanted)
        self._add_columns(schema)
        check_partition_columns(self.name, schema, partition_by)
        target = IcebergFiles.of(self.opened())
        if not target.location.startswith(("file:", "/")):
            with reached(self.place):
                target.try_to_write()
        return target

    def _create(self, schema: pa.Schema) -> None:
        partition_by = self.partition_wanted or ()
        check_partition_columns(self.name, schema, partition_by)
        with reached(self.place):
            self.catalog.create_namespace_if_not_exists(Catalog.namespace_from(self.identifier))
            try:
                new = self.catalog.create_table_transaction(self.identifier, schema, properties=_NEW_TABLE)
                with new.update_spec() as spec:
                    for column in partition_by:
                        spec.add_identity(column)
                new.commit_transaction()
            except (CommitFailedException, TableAlreadyExistsError):
                pass  # another driver created it meanwhile
            self.refresh()

    def _add_columns(self, schema: pa.Schema) -> None:
        there = columns_of(self.opened().schema())
        new = new_columns(self.name, there, {each.name: type_name(each.type) for each in schema})
        if new:
            with self.opened().update_schema() as change:
                change.union_by_name(pa.schema([schema.field(name) for name in new]))
            self.refresh()

    def commit(self, files: Sequence[DataFile], query_id: str, batch_id: int, proof: BatchProof) -> None:
        what = {"batch": batch_id, "rows": proof.rows, "digest": f"{proof.digest:016x}"}
        for _ in range(_ATTEMPTS):
            last = self.written(query_id)
            if last is not None and last.number >= batch_id:
                raise CommitConflict(f"{self.name} has batch {last.number} of query {query_id}")
            try:
                self._commit_once(files, query_id, what)
            except CommitFailedException:
                self.refresh()
            else:
                return
        raise CommitConflict(f"{self.name} was changed by others during each of {_ATTEMPTS} attempts to commit")

    def _commit_once(self, files: Sequence[DataFile], query_id: str, what: Mapping[str, object]) -> None:
        table = self.opened()
        # Of this copy of the properties only: the table's own stay as they are.
        table.metadata.properties[TableProperties.COMMIT_NUM_RETRIES] = "0"
        summary = {"barnabas.query": query_id} | {f"barnabas.{name}": str(value) for name, value in what.items()}
        with table.transaction() as transaction:
            transaction.set_properties({_PROPERTY + query_id: json.dumps(what)})
            with transaction.update_snapshot(snapshot_properties=summary).merge_append() as append:
                for each in files:
                    append.append_data_file(manifest_file(each.entry))
            if table.properties.get(THIN_HISTORY) == "true":
                _thin(transaction)

    def names(self, files: Sequence[DataFile]) -> bool:
        ours = {each.path for each in files}
        return any(task.file.file_path in ours for task in self.opened().scan().plan_files())

    def delete(self, files: Sequence[DataFile]) -> None:
        for each in files:
            self.opened().io.delete(each.path)

    def opened(self) -> Table:
        """Return the table as it was read last.

        Raises:
            ValueError: there was none.
        """
        if self.table is None:
            raise ValueError(f"there is no {self.name}")
        return self.table


def _thin(transaction: Transaction) -> None:
    metadata = transaction.table_metadata
    heads = {each.snapshot_id for each in metadata.refs.values()}
    snapshots = [(each.snapshot_id, each.timestamp_ms) for each in metadata.snapshots if each.snapshot_id not in heads]
    if found := to_take_out(snapshots, metadata.last_updated_ms):
        with ExpireSnapshots(transaction) as expiring:
            expiring.by_ids(found)
