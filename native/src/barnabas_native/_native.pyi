from collections.abc import Callable
from typing import TypeAlias, TypeVar

from typing_extensions import Buffer as _Buffer

_Made = TypeVar("_Made", bound=_Buffer)
_Column: TypeAlias = tuple[_Made | None, _Made, _Made]
"""Arrow's buffers of a binary array: validity (None without nulls), offsets of 32 bits, bytes."""
_Headers: TypeAlias = tuple[_Made | None, _Made, _Column[_Made], _Column[_Made]]
"""Of a list array of headers: validity, offsets of 32 bits, and the headers' keys and values. Keys may not be UTF-8."""

INTERFACE: int
"""Another number: other arguments or results."""

KEY: int
VALUE: int
HEADERS: int
TIMESTAMP: int

def decode(
    data: _Buffer, batches: _Buffer, columns: int, allocate: Callable[[int], _Made]
) -> tuple[_Made, _Made | None, _Column[_Made] | None, _Column[_Made] | None, _Headers[_Made] | None] | None:
    """Decode the records of batches that are not compressed.

    Args:
        data: bytes in which the batches are.
        batches: six numbers of 64 bits for each batch: start and end of its records in `data`, record count, base
            offset, timestamp (the records' deltas are added to it), and whether it is the time of the append (then they
            are not).
        columns: the sum of `KEY`, `VALUE`, `HEADERS` and `TIMESTAMP`, as far as they are wanted.
        allocate: makes a buffer of a number of bytes, such as `bytearray`.

    Returns:
        Offsets (64 bits each), timestamps (64 bits, microseconds), keys, values and headers; None for each column that
        is not wanted. None for the whole if the records are damaged or unusual: numpy's decoder then decides.
    """

def digest(data: _Buffer, starts: _Buffer, ends: _Buffer, marks: _Buffer | None) -> int | None:
    """Return the digest of rows, modulo 2**64, None if a row is empty or not within `data`.

    Args:
        starts, ends: where the rows are, and `marks` what else belongs to each: a number of 64 bits for each row.
    """
