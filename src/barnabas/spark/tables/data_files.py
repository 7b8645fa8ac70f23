"""The Parquet files of a batch: a task writes its rows into them, and they are part of no table until the driver commits them.

A task writes one file for each partition of the table that it has rows of. It keeps at most `_OPEN_FILES` of them open, and closes the file
without rows for the longest time; so a task whose rows belong to many partitions in turn writes more files. Spark's `repartition` by
the table's partition columns makes fewer.

A file's name has no partition in it: both formats keep the values in the table's log.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import IO, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from barnabas.spark.tables.batch_proof import BatchProof

ROW_DIGEST = "barnabas row digest"
"""The column of each row's hash; no file has it."""

_ROW_NUMBER = "barnabas row number"
_OPEN_FILES = 32

Values = tuple[Any, ...]
"""The values of a table's partition columns."""


@dataclass(frozen=True, slots=True)
class DataFile:
    """A file that a task wrote.

    Attributes:
        path: as the table's log names it.
        digest: the sum of its rows' hashes, with a sign.
        entry: what the table's log says of the file, in the format's own words.
    """

    path: str
    rows: int
    digest: int
    entry: bytes


FILES_IN_SPARK = "path string, rows bigint, digest bigint, entry binary"
_FILES = pa.schema([("path", pa.string()), ("rows", pa.int64()), ("digest", pa.int64()), ("entry", pa.binary())])


class FileTarget(ABC):
    """Where the tasks of a batch put their files; the driver sends it to them.

    Attributes:
        schema: of the files.
        partition_by: the table's partition columns.
        parquet: more arguments of `pyarrow.parquet.ParquetWriter`.
    """

    schema: pa.Schema
    partition_by: tuple[str, ...]
    parquet: Mapping[str, Any]

    @abstractmethod
    def create(self) -> tuple[str, IO[bytes]]:
        """Create a file, and return its path and its open end."""

    @abstractmethod
    def entry(self, path: str, size: int, values: Values, footer: pq.FileMetaData) -> bytes:
        """Return what the table's log is to say of a file."""


def task_writer(target: FileTarget) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return the function of a task, which writes its rows into files and yields what the driver needs to know of them."""

    def write(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        files = _OpenFiles(target)
        for batch in batches:
            if batch.num_rows:
                files.write(pa.Table.from_batches([batch]))
        files.close_all()
        if files.done:
            yield pa.RecordBatch.from_pylist(
                [{name: getattr(each, name) for name in _FILES.names} for each in files.done], schema=_FILES
            )

    return write


class _OpenFiles:
    def __init__(self, target: FileTarget) -> None:
        self.done: list[DataFile] = []
        self._target = target
        self._open: dict[Values, _OpenFile] = {}  # in the order of their last rows

    def write(self, rows: pa.Table) -> None:
        for values, part in split(rows, self._target.partition_by):
            file = self._open.pop(values, None)
            if file is None:
                if len(self._open) >= _OPEN_FILES:
                    self._close(next(iter(self._open)))
                file = _OpenFile.create(self._target)
            file.write(part, self._target.schema)
            self._open[values] = file

    def close_all(self) -> None:
        for values in list(self._open):
            self._close(values)

    def _close(self, values: Values) -> None:
        self.done.append(self._open.pop(values).close(self._target, values))


@dataclass
class _OpenFile:
    path: str
    stream: IO[bytes]
    parquet: pq.ParquetWriter
    digest: int = 0
    rows: int = field(default=0)

    @classmethod
    def create(cls, target: FileTarget) -> _OpenFile:
        path, stream = target.create()
        return cls(path, stream, pq.ParquetWriter(stream, target.schema, **target.parquet))

    def write(self, rows: pa.Table, schema: pa.Schema) -> None:
        self.rows += rows.num_rows
        self.digest += pc.sum(rows[ROW_DIGEST]).as_py()  # modulo 2**64, as Arrow adds
        self.parquet.write_table(rows.select(schema.names).cast(schema))

    def close(self, target: FileTarget, values: Values) -> DataFile:
        self.parquet.close()
        size = self.stream.tell()
        self.stream.close()
        proof = BatchProof(self.rows, self.digest)
        entry = target.entry(self.path, size, values, self.parquet.writer.metadata)
        return DataFile(self.path, proof.rows, proof.signed_digest, entry)


def split(rows: pa.Table, names: tuple[str, ...]) -> Iterator[tuple[Values, pa.Table]]:
    """Yield the rows of each partition, in the order in which they were."""
    if not names:
        yield (), rows
        return
    numbered = rows.select(names).append_column(_ROW_NUMBER, pa.array(range(rows.num_rows), pa.int64()))
    groups = numbered.group_by(list(names), use_threads=False).aggregate([(_ROW_NUMBER, "list")]).to_pylist()
    for group in groups:
        yield tuple(group[name] for name in names), rows.take(pa.array(group[f"{_ROW_NUMBER}_list"], pa.int64()))
