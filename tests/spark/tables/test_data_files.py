"""What a task writes: one file for each partition, as few of them open as the bound says, and digests that add up."""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import IO, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from barnabas.spark.tables import data_files
from barnabas.spark.tables.data_files import ROW_DIGEST, FileTarget, Values, split, task_writer


class _Kept(io.BytesIO):
    def close(self) -> None:
        """Stay readable."""


@dataclass
class Memory(FileTarget):
    """Files in memory, and the values that each one's entry was made of."""

    schema: pa.Schema
    partition_by: tuple[str, ...] = ()
    parquet: Mapping[str, Any] = field(default_factory=dict)
    files: dict[str, _Kept] = field(default_factory=dict)
    values: dict[str, Values] = field(default_factory=dict)

    def create(self) -> tuple[str, IO[bytes]]:
        name = str(len(self.files))
        self.files[name] = _Kept()
        return name, self.files[name]

    def entry(self, path: str, size: int, values: Values, footer: pq.FileMetaData) -> bytes:
        assert size == len(self.files[path].getvalue())
        self.values[path] = values
        return f"{footer.num_rows} rows".encode()

    def offsets(self, path: str) -> list[int]:
        return pq.read_table(io.BytesIO(self.files[path].getvalue()))["offset"].to_pylist()


def batches(partitions: list[int | None], digests: list[int] | None = None, per_batch: int = 2) -> list[pa.RecordBatch]:
    columns = {
        "partition": pa.array(partitions, pa.int32()),
        "offset": pa.array(range(len(partitions)), pa.int64()),
        ROW_DIGEST: pa.array(digests or [1] * len(partitions), pa.int64()),
    }
    return pa.table(columns).to_batches(max_chunksize=per_batch)


SCHEMA = pa.schema([("offset", pa.int64())])


def written(target: Memory, rows: list[pa.RecordBatch]) -> list[dict[str, Any]]:
    return [each for found in task_writer(target)(rows) for each in found.to_pylist()]


def test_a_task_without_rows_writes_nothing() -> None:
    target = Memory(SCHEMA)
    assert written(target, batches([])) == []
    assert written(target, [each.slice(0, 0) for each in batches([0])]) == []
    assert target.files == {}


def test_one_file_without_partitions() -> None:
    target = Memory(SCHEMA)
    (found,) = written(target, batches([0, 1, 0, 1, 0], [2**62, 2**62, 2**62, 1, 1]))
    assert (found["path"], found["rows"], found["entry"]) == ("0", 5, b"5 rows")
    assert found["digest"] == 3 * 2**62 + 2 - 2**64, "a signed number of 64 bits"
    assert target.offsets("0") == [0, 1, 2, 3, 4]


def test_one_file_for_each_partition_in_order() -> None:
    target = Memory(SCHEMA, ("partition",))
    found = written(target, batches([0, None, 0, 1, None]))
    by_values = {target.values[each["path"]]: target.offsets(each["path"]) for each in found}
    assert by_values == {(0,): [0, 2], (None,): [1, 4], (1,): [3]}
    assert sum(each["digest"] for each in found) == sum(each["rows"] for each in found) == 5


def test_the_file_without_rows_for_the_longest_time_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(data_files, "_OPEN_FILES", 2)
    target = Memory(SCHEMA, ("partition",))
    found = written(target, batches([0, 1, 0, 2, 0, 1], per_batch=1))
    assert [target.offsets(each["path"]) for each in found] == [[1], [3], [0, 2, 4], [5]]


def test_rows_of_several_columns_are_split() -> None:
    rows = pa.table({"a": [1, 1, 2], "b": ["x", "y", "x"], "n": [1, 2, 3]})
    assert [(values, part["n"].to_pylist()) for values, part in split(rows, ("a", "b"))] == [
        ((1, "x"), [1]), ((1, "y"), [2]), ((2, "x"), [3]),
    ]  # fmt: skip
