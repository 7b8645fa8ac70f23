"""Compaction of a Delta table: its small files become few, in one commit, while a query writes.

The commit names the new files and no longer the old ones, which stay for older versions until a vacuum. deltalake repeats a commit that
lost against another one, and does not see that the other one may have put the same files together: each row would be there twice. So its
repetition is switched off, and each attempt looks first whether each of the old files is still the table's.

Left as they are: files whose columns have other types than the table's, and those of other writers whose names need decoding.
Source: the Delta protocol, "Add File and Remove File".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import CommitProperties, DeltaTable, Schema
from deltalake.exceptions import CommitFailedError
from deltalake.transaction import AddAction, RemoveAction

from barnabas.spark.tables.data_files import Values
from barnabas.spark.tables.delta_checks import check_properties
from barnabas.spark.tables.delta_table import Delta, DeltaFiles, add_action, type_name
from barnabas.spark.tables.small_files import SmallFile, groups, is_small

_ATTEMPTS = 20


@dataclass(frozen=True)
class _File:
    path: str
    size: int
    partition: dict[str, Any]


def compact(table: Delta, target_bytes: int, now_ms: int) -> tuple[int, int]:
    """Put a table's small files together.

    Returns:
        How many files there were of those that were put together, and how many they are now.

    Raises:
        ValueError: there is no such table, it needs what we do not do, or others changed the files meanwhile.
    """
    opened = table.opened()
    check_properties(table.name, opened)
    if "deletionVectors" in (opened.protocol().reader_features or ()):
        raise ValueError(
            f"{table.name} has deletion vectors, which this compaction does not read: use another engine's"
        )
    target = DeltaFiles.of(table)
    old: list[_File] = []
    new: list[AddAction] = []
    for group in groups(_small_files(target, opened, target_bytes), target_bytes):
        old += group
        new.append(_together(target, group, now_ms))
    if old:
        _replace(table, target, old, new, now_ms)
    return len(old), len(new)


def _small_files(target: DeltaFiles, table: DeltaTable, target_bytes: int) -> list[SmallFile[_File]]:
    return [
        SmallFile(_values(target, each), each.size, each.path, each)
        for each in _files(table)
        if is_small(each.size, target_bytes) and "%" not in each.path and _has_the_tables_types(target, each)
    ]


def _files(table: DeltaTable) -> list[_File]:
    return [
        _File(each["path"], each["size_bytes"], each.get("partition") or {})
        for each in pa.table(table.get_add_actions()).to_pylist()
    ]


def _has_the_tables_types(target: DeltaFiles, file: _File) -> bool:
    with target.store().open_input_file(file.path) as stream:
        found = Schema.from_arrow(pq.read_schema(stream))
    there = {each.name: type_name(each) for each in Schema.from_arrow(target.schema).fields}
    return all(there.get(each.name) == type_name(each) for each in found.fields)


def _together(target: DeltaFiles, files: Sequence[_File], now_ms: int) -> AddAction:
    """Copy the rows of some files into a new one."""
    store = target.store()
    path, stream = target.create()
    with stream, pq.ParquetWriter(stream, target.schema, **target.parquet) as writer:
        for file in files:
            with store.open_input_file(file.path) as source:
                for batch in pq.ParquetFile(source).iter_batches():
                    writer.write_table(_in_the_tables_columns(batch, target.schema))
        writer.close()
        size = stream.tell()
    entry = target.entry(path, size, _values(target, files[0]), writer.writer.metadata)
    return add_action(path, entry, now_ms, data_change=False)


def _values(target: DeltaFiles, file: _File) -> Values:
    return tuple(file.partition[name] for name in target.partition_by)


def _in_the_tables_columns(batch: pa.RecordBatch, schema: pa.Schema) -> pa.Table:
    """Return rows with the table's columns, of which an old file may lack some."""
    there = set(batch.schema.names)
    columns = [
        batch.column(each.name).cast(each.type) if each.name in there else pa.nulls(len(batch), each.type)
        for each in schema
    ]
    return pa.Table.from_arrays(columns, schema=schema)


def _replace(table: Delta, target: DeltaFiles, old: Sequence[_File], new: Sequence[AddAction], now_ms: int) -> None:
    removed = [
        RemoveAction(each.path, False, now_ms, each.size, target.partition_texts(_values(target, each))) for each in old
    ]
    for _ in range(_ATTEMPTS):
        opened = table.opened()
        if not {each.path for each in old} <= {each.path for each in _files(opened)}:
            break
        try:
            opened.create_write_transaction(
                [*removed, *new],
                "append",
                opened.schema(),
                partition_by=list(target.partition_by),
                commit_properties=CommitProperties(max_commit_retries=0),
            )
        except CommitFailedError:
            table.refresh()
        else:
            return
    for each in new:
        target.store().delete_file(each.path)
    raise ValueError(f"{table.name} was changed by others while its files were put together, so nothing was: try again")
