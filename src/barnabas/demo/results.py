"""The pipeline's results: tables written per micro-batch, so that a repeated batch changes nothing.

A streaming query may run its last batch again after a crash. Therefore each batch has a file named by its number, which
a second run replaces. Every row has a key, and the newest row of a key counts. So the results are exactly-once although
the batches are only at-least-once.

    results/revenue/000000000.parquet      the rows that batch 0 changed
                    000000001.parquet      …
"""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq

Row: TypeAlias = dict[str, Any]


class ResultTable:
    """Rows by key, in memory and on disk. Spark's threads write batches, other threads read.

    Args:
        folder: only for this table; results of earlier runs in it are loaded.
        key: the columns that identify a row.
    """

    def __init__(self, folder: Path, key: Sequence[str]) -> None:
        self._folder = folder
        self._key = tuple(key)
        self._rows: dict[tuple[Any, ...], Row] = {}
        self._lock = threading.Lock()
        folder.mkdir(parents=True, exist_ok=True)
        for path in sorted(folder.glob("*.parquet")):
            self._take(pq.read_table(path))

    def __repr__(self) -> str:
        return f"<ResultTable name={self._folder.name} rows={len(self._rows)}>"

    def put(self, batch_id: int, rows: pa.Table) -> None:
        """Store the rows that a batch changed, and replace what the same batch stored before."""
        path = self._folder / f"{batch_id:09d}.parquet"
        unfinished = path.with_suffix(".unfinished")
        pq.write_table(rows, unfinished)
        os.replace(unfinished, path)
        self._take(rows)

    def rows(self) -> list[Row]:
        """Return the newest row of every key, in no particular order."""
        with self._lock:
            return list(self._rows.values())

    def _take(self, rows: pa.Table) -> None:
        key = self._key
        new = {tuple(row[column] for column in key): row for row in rows.to_pylist()}
        with self._lock:
            self._rows.update(new)
