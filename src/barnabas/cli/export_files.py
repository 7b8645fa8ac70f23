"""Data files of an export: the formats, the writing of a file with its checksum, the check of a file before an import.

| format | module | a record is |
|---|---|---|
| `jsonl` | `export_json_lines` | a line, as `consume -f json` prints it, with `timestampType` |
| `parquet` | `export_parquet` | a row; needs pyarrow |

Columns have the names of `barnabas.read`. `timestampType` is 0 for the producer's time, 1 for the time of the append.
"""

from __future__ import annotations

import hashlib
import io
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from barnabas.cli.export_manifest import DataFile, data_file_name
from barnabas.cli.failure import Failure
from barnabas.retries.record import Record
from barnabas.words.requirements import needed_by

FORMATS = {"jsonl": "barnabas.cli.export_json_lines", "parquet": "barnabas.cli.export_parquet"}
_READ_BYTES = 1 << 20


class Writer(ABC):
    """Writes records of one partition to a file."""

    @abstractmethod
    def add(self, record: Record, timestamp_type: int) -> None:
        """Write a record, or keep it until there are more."""

    @abstractmethod
    def end(self) -> None:
        """Write what is left; the file stays open."""


class FileFormat(NamedTuple):
    """A format of data files.

    Attributes:
        columns: name and type of each field of a record.
        writer: makes a writer for an open file, which is to have about so many bytes at most.
        count: returns how many records a file has; raises ValueError if it is not of this format.
        read: yields the records of a file, those of a topic's partition, without the first ones.
    """

    columns: Mapping[str, str]
    writer: Callable[[io.RawIOBase, int], Writer]
    count: Callable[[Path], int]
    read: Callable[[Path, str, int], Iterator[Record]]


def file_format(name: str) -> FileFormat:
    """Return a format.

    Raises:
        NotInstalled: it needs a package that is missing.
    """
    with needed_by(f"The format {name}", "read"):
        found: FileFormat = import_module(FORMATS[name]).FORMAT
    return found


class HashedFile(io.RawIOBase):
    """A file that is written from its begin to its end; it knows the size and the SHA-256 of its content."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.size_bytes = 0
        self._hash = hashlib.sha256()
        self._file = path.open("wb")
        self._is_discarded = False

    def __repr__(self) -> str:
        return f"<HashedFile size_bytes={self.size_bytes}>"

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        if not self._is_discarded:
            self._file.write(data)
        self._hash.update(data)
        self.size_bytes += memoryview(data).nbytes
        return memoryview(data).nbytes

    def tell(self) -> int:
        return self.size_bytes

    def flush(self) -> None:
        if not self._file.closed:
            self._file.flush()

    def sync(self) -> None:
        """Bring all to the disk."""
        self._file.flush()
        os.fsync(self._file.fileno())

    def discard(self) -> None:
        """Ignore all that is written from now on: a writer may still have something to write when it is closed."""
        self._is_discarded = True

    def close(self) -> None:
        self._file.close()
        super().close()

    def sha256(self) -> str:
        return self._hash.hexdigest()


class UnfinishedFile:
    """A data file that is being written, under another name.

    Args:
        folder: where it lies.
        record: its first record, which `add` adds.
        max_bytes: `is_full` from that size on.
    """

    def __init__(self, folder: Path, format_name: str, made: FileFormat, record: Record, max_bytes: int) -> None:
        self.name = data_file_name(record.partition, record.offset, format_name)
        self.path = folder / f"{self.name}.tmp"
        self._first = self._last = record
        self._records = 0
        self._file = HashedFile(self.path)
        self._max_bytes = max_bytes
        self._writer = made.writer(self._file, max_bytes)

    def __repr__(self) -> str:
        return f"<UnfinishedFile {self.name} records={self._records}>"

    @property
    def size_bytes(self) -> int:
        return self._file.size_bytes

    @property
    def is_full(self) -> bool:
        return self._file.size_bytes >= self._max_bytes

    def add(self, record: Record, timestamp_type: int) -> None:
        self._writer.add(record, timestamp_type)
        self._last = record
        self._records += 1

    def end(self) -> DataFile:
        """Write what is left, sync and close it; it still has to be renamed."""
        self._writer.end()
        self._file.sync()
        self._file.close()
        return DataFile(
            self.name,
            self._first.partition,
            self._first.offset,
            self._last.offset,
            self._records,
            self._file.size_bytes,
            self._file.sha256(),
        )

    def abandon(self) -> None:
        """Close and remove it."""
        self._file.discard()
        with suppress(OSError):
            self._writer.end()
        with suppress(OSError):  # what was not written fails again
            self._file.close()
        with suppress(OSError):
            self.path.unlink()


def check_file(folder: Path, file: DataFile, made: FileFormat, progress: Callable[[int], None]) -> None:
    """Check that a file is as the manifest says.

    Args:
        progress: called with the bytes of each piece that was read.

    Raises:
        Failure: it is not.
    """
    path = folder / file.name
    hint = "copy the folder again, or export again into another one"
    found = hashlib.sha256()
    try:
        with path.open("rb") as opened:
            while piece := opened.read(_READ_BYTES):
                found.update(piece)
                progress(len(piece))
    except FileNotFoundError:
        raise Failure(f"file {path} of the export is gone", hint) from None
    if found.hexdigest() != file.sha256:
        raise Failure(f"file {path} was changed since the export: its SHA-256 is another one", hint)
    try:
        records = made.count(path)
    except ValueError as error:
        raise Failure(f"file {path} cannot be read: {error}", hint) from None
    if records != file.records:
        raise Failure(f"file {path} has {records} records, and the manifest says {file.records}", hint)
