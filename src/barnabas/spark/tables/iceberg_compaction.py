"""Compaction of an Iceberg table: its small files become few, in one snapshot, while a query writes.

Files of one partition are put together until they have the wanted size. The rows are copied as they are in the files: pyiceberg's own
reader would make null lists empty. The snapshot names the new files and no longer the old ones, which stay for older snapshots until a
vacuum.

A commit counts only if the table is as it was read. If a query has committed meanwhile, the commit is repeated as long as each of the old
files is still the table's, and no rows of it were deleted; otherwise the new files are deleted, and the caller must begin again.

Left as they are: files with rows that were deleted, files of an earlier partitioning, and files whose columns have other types than the
table's, as an engine may have widened them.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.exceptions import CommitFailedException, ValidationException
from pyiceberg.manifest import DataFile
from pyiceberg.table import TableProperties

from barnabas.spark.tables.iceberg_files import IcebergFiles
from barnabas.spark.tables.iceberg_table import Iceberg
from barnabas.spark.tables.iceberg_types import type_name
from barnabas.spark.tables.small_files import SmallFile, groups, is_small

_ATTEMPTS = 20


def compact(table: Iceberg, target_bytes: int) -> tuple[int, int]:
    """Put a table's small files together.

    Returns:
        How many files there were of those that were put together, and how many they are now.

    Raises:
        ValueError: there is no such table, or others changed the files meanwhile.
    """
    target = IcebergFiles.of(table.opened())
    old: list[DataFile] = []
    new: list[DataFile] = []
    for group in groups(_small_files(table, target, target_bytes), target_bytes):
        old += group
        new.append(_together(target, group))
    if old:
        _replace(table, old, new)
    return len(old), len(new)


def _whole_files(table: Iceberg) -> dict[str, DataFile]:
    """Return the files of the table that no rows were deleted of, by path."""
    return {task.file.file_path: task.file for task in table.opened().scan().plan_files() if not task.delete_files}


def _small_files(table: Iceberg, target: IcebergFiles, target_bytes: int) -> list[SmallFile[DataFile]]:
    return [
        SmallFile(each.partition, each.file_size_in_bytes, each.file_path, each)
        for each in _whole_files(table).values()
        if is_small(each.file_size_in_bytes, target_bytes)
        and each.spec_id == target.spec.spec_id
        and _has_the_tables_types(target, each)
    ]


def _has_the_tables_types(target: IcebergFiles, file: DataFile) -> bool:
    with target.io.new_input(file.file_path).open() as stream:
        schema = pq.read_schema(stream)
    there = {_field_id(each): each for each in target.schema}
    return all(
        (column := there.get(_field_id(each))) is not None and type_name(column.type) == type_name(each.type)
        for each in schema
    )


def _field_id(column: pa.Field) -> bytes | None:
    found: bytes | None = (column.metadata or {}).get(b"PARQUET:field_id")
    return found


def _together(target: IcebergFiles, files: Sequence[DataFile]) -> DataFile:
    """Copy the rows of some files into a new one."""
    path, stream = target.create()
    with stream, pq.ParquetWriter(stream, target.schema, **target.parquet) as writer:
        for file in files:
            with target.io.new_input(file.file_path).open() as source:
                for batch in pq.ParquetFile(source).iter_batches():
                    writer.write_table(_in_the_tables_columns(batch, target.schema))
        writer.close()
        size = stream.tell()
    return target.describe(path, size, files[0].partition, writer.writer.metadata)


def _in_the_tables_columns(batch: pa.RecordBatch, schema: pa.Schema) -> pa.Table:
    """Return rows with the table's columns, which a file may have by older names, or may lack."""
    there = {_field_id(each): column for each, column in zip(batch.schema, batch.columns, strict=True)}
    columns = [
        column.cast(each.type)
        if (column := there.get(_field_id(each))) is not None
        else pa.nulls(len(batch), each.type)
        for each in schema
    ]
    return pa.Table.from_arrays(columns, schema=schema)


def _replace(table: Iceberg, old: Sequence[DataFile], new: Sequence[DataFile]) -> None:
    for _ in range(_ATTEMPTS):
        there = _whole_files(table)
        if any(each.file_path not in there for each in old):
            break
        current = table.opened()
        current.metadata.properties[TableProperties.COMMIT_NUM_RETRIES] = (
            "0"  # as for a batch: each attempt looks first
        )
        try:
            with current.transaction() as transaction, transaction.update_snapshot().overwrite() as snapshot:
                for each in old:
                    snapshot.delete_data_file(each)
                for each in new:
                    snapshot.append_data_file(each)
        except (CommitFailedException, ValidationException):
            table.refresh()
        else:
            return
    for each in new:
        table.opened().io.delete(each.file_path)
    raise ValueError(f"{table.name} was changed by others while its files were put together, so nothing was: try again")
