"""Arrow arrays over buffers, beside pyarrow's own ways; and what a process of the source imports besides PySpark."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest

from barnabas.spark.arrow_buffers import to_arrow, to_binary

_NUMBERS = [
    np.array([], np.int64), np.array([], np.bool_), np.arange(-3, 9, dtype=np.int32), np.arange(9)[::2],
    np.array([2**64 - 1], np.uint64), np.array([True, False, True] * 7),
]  # fmt: skip

_PROGRAM = """
import sys
import numpy, pyarrow, pyspark.worker, pyspark.sql.streaming.python_streaming_source_runner
before = set(sys.modules)
{code}
print(*(name for name in sys.modules if name not in before))
"""

_TASK = """
from barnabas.records.builder import build_batch
from barnabas.records.record_batch import iter_batches
from barnabas.spark.source import columnar, fetcher
columnar.native_library = {native}
records = memoryview(build_batch([(0, b"key", b"value", [("h", b"1")]), (1, None, b"x" * 99, ())]))
columns = ("key", "value", "topic", "partition", "offset", "timestamp", "timestampType", "headers")
for rows in columnar.to_arrow(records, list(iter_batches(records)), 0, 2, topic="t", partition=0, columns=columns):
    assert rows.num_rows == 2
"""


def imported(code: str) -> set[str]:
    """Return the modules that code imports, after those of PySpark's workers."""
    program = _PROGRAM.format(code=code)
    return set(
        subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    )


def packages(modules: set[str]) -> set[str]:
    return {name.partition(".")[0] for name in modules}


@pytest.mark.parametrize("values", _NUMBERS, ids=lambda values: f"{len(values)} {values.dtype}")
def test_numbers(values: np.ndarray) -> None:
    array = to_arrow(values)
    array.validate(full=True)
    assert array.equals(pa.array(values))


@pytest.mark.parametrize("kind", [pa.binary(), pa.string()])
@pytest.mark.parametrize("values", [[], [b""], [None], [b"one", None, "zwölf".encode(), b""]])
def test_bytes(values: list[bytes | None], kind: pa.DataType) -> None:
    array = to_binary(values, kind)
    array.validate(full=True)
    assert array.equals(pa.array(values, pa.binary()).cast(kind))


@pytest.mark.slow
def test_the_process_of_a_stream_imports_little() -> None:
    modules = imported("import pyspark_barnabas, barnabas.spark.source.stream, barnabas.spark.source.options")
    assert "barnabas.spark.source.stream" in modules
    assert packages(modules) <= {"barnabas", "pyspark_barnabas", "cramjam", "crc32c"}
    rooms = {name.split(".")[1] for name in modules if name.startswith("barnabas.")}
    assert rooms <= {"client", "imported_when_used", "protocol", "records", "security", "spark", "version", "words"}
    assert not {name for name in modules if "sink" in name or "decod" in name}


@pytest.mark.slow
@pytest.mark.parametrize("native", ["columnar.native_library", "lambda: None"], ids=["native", "numpy"])
def test_a_task_imports_no_pandas(native: str) -> None:
    modules = imported(_TASK.format(native=native))
    assert "barnabas.spark.source.columnar" in modules
    assert packages(modules) <= {"barnabas", "barnabas_native", "cramjam", "crc32c", "pyarrow"}
