"""Arrow arrays of numpy arrays and of bytes, over their buffers.

pyarrow's own ways (`pa.array`, `pa.scalar`, `np.asarray` of an Arrow array) import pandas where it is installed, in case
the value is one of pandas'. That takes 0.9 s of CPU and 50 MB in each Python worker of Spark, before its first row. So
the source's tasks use these. The sink's tasks need not: PySpark itself calls `pa.array` at the end of each of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa


def to_arrow(values: np.ndarray[Any, Any]) -> pa.Array:
    """Return a numpy array of integers or booleans as an Arrow array; integers are not copied."""
    is_boolean = values.dtype == np.bool_
    data = np.packbits(values, bitorder="little") if is_boolean else np.ascontiguousarray(values)
    kind = pa.bool_() if is_boolean else pa.from_numpy_dtype(values.dtype)
    return pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(data)])


def to_binary(values: Sequence[bytes | None], kind: pa.DataType | None = None) -> pa.Array:
    """Return bytes as an Arrow array of type binary or string; a string's are UTF-8."""
    ends = np.cumsum([0, *(len(value or b"") for value in values)], dtype=np.int32)
    valid = to_arrow(np.array([value is not None for value in values], np.bool_)).buffers()[1]
    data = pa.py_buffer(b"".join(value or b"" for value in values))
    return pa.Array.from_buffers(kind or pa.binary(), len(values), [valid, pa.py_buffer(ends), data])
