"""Reads the tables that Spark's streaming queries write, without Spark: only rows of finished batches.

A query writes each batch into new Parquet files and then commits it: a file in the table's `_spark_metadata` names them.
Files that no commit names are what a killed query left behind.

    checked_orders/part-00000-….parquet
                   _spark_metadata/0            the files of batch 0, one JSON object a line after the line "v1"
                                   9.compact    those of batches 0 to 9
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pyarrow.parquet as pq


def read_table(folder: Path, columns: Sequence[str]) -> pa.Table | None:
    """Return a table's committed rows, or None if no batch is committed yet."""
    parts = [pq.read_table(file, columns=list(columns), partitioning=None) for file in committed_files(folder)]
    return pa.concat_tables(parts) if parts else None


def committed_files(folder: Path) -> list[Path]:
    """Return the files of a table's finished batches."""
    log = folder / "_spark_metadata"
    commits = {int(path.stem): path for path in sorted(log.glob("*")) if path.stem.isdigit()}
    compacted = max((number for number, path in commits.items() if path.suffix == ".compact"), default=-1)
    wanted = [path for number, path in sorted(commits.items()) if number >= compacted]
    return [file for path in wanted for file in _named_by(path)]


def _named_by(commit: Path) -> list[Path]:
    entries = [json.loads(line) for line in commit.read_text().splitlines()[1:]]
    return [Path(unquote(urlsplit(entry["path"]).path)) for entry in entries]
