"""Which folders and tables a batch may be written to; every other one is an error before a file is written.

The driver names its files in the table's log and says nothing else about them. So these tables would be damaged without an error:

- a partitioned table: readers take the values of its columns from the log, not from the files;
- a table with constraints, or with columns that are mapped to other names: a writer has to heed them, and this one does not.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable, Schema

_NOT_HEEDED = ("delta.constraints.", "delta.columnMapping.mode")


def check_folder(folder: Path) -> None:
    """Raise ValueError if a folder has something that is not a Delta table."""
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"{folder} is a file: give delta_writer the folder of a table")
    if folder.is_dir() and not (folder / "_delta_log").is_dir() and any(folder.iterdir()):
        raise ValueError(
            f"{folder} has files and is not a Delta table: delta_writer would put a table among them. Give it a folder of its own"
        )


def check_table(folder: Path, table: DeltaTable, schema: pa.Schema) -> None:
    """Raise ValueError if a table needs what this writer does not do, or has other columns."""
    about = table.metadata()
    if about.partition_columns:
        raise ValueError(
            f"{folder} is partitioned by {', '.join(about.partition_columns)}, which delta_writer does not support: write to another table"
        )
    for name, value in about.configuration.items():
        if name.startswith(_NOT_HEEDED) and value != "none":
            raise ValueError(
                f"{folder} has the property {name}, which delta_writer does not support: write to another table, or remove it"
            )
    wanted = Schema.from_arrow(schema)
    if table.schema() != wanted:
        raise ValueError(
            f"{folder} has other columns than this query: {_difference(table.schema(), wanted)}. Give the query the table's columns "
            "again, or write to another table"
        )


def _difference(there: Schema, wanted: Schema) -> str:
    """Return the columns that differ, by name and type."""
    ours, theirs = ({each.name: _type(each.type) for each in schema.fields} for schema in (wanted, there))
    found = [
        f"{name} is {theirs.get(name, 'absent')} in the table and {ours.get(name, 'absent')} in the query"
        for name in [*theirs, *(name for name in ours if name not in theirs)]
        if theirs.get(name) != ours.get(name)
    ]
    return "; ".join(found) or "the table has columns that may not be null"


def _type(kind: object) -> str:
    return str(getattr(kind, "type", kind))
