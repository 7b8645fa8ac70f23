"""Which folders and tables of Delta's a batch may be written to; every other one is an error before a file is written.

The driver names its files in the table's log and says little else about them. So a table with constraints, or with columns that are mapped
to other names, would be damaged without an error: a writer has to heed them, and this one does not.
"""

from __future__ import annotations

from pathlib import Path

from deltalake import DeltaTable

_NOT_HEEDED = ("delta.constraints.", "delta.columnMapping.mode")


def check_folder(folder: Path) -> None:
    """Raise ValueError if a folder has something that is not a Delta table."""
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"{folder} is a file: give delta_writer the folder of a table")
    if folder.is_dir() and not (folder / "_delta_log").is_dir() and any(folder.iterdir()):
        raise ValueError(
            f"{folder} has files and is not a Delta table: delta_writer would put a table among them. Give it a folder of its own"
        )


def check_properties(name: str, table: DeltaTable) -> None:
    """Raise ValueError if a table needs what this writer does not do."""
    for key, value in table.metadata().configuration.items():
        if key.startswith(_NOT_HEEDED) and value != "none":
            raise ValueError(
                f"{name} has the property {key}, which delta_writer does not support: write to another table, or remove it"
            )
