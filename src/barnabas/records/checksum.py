"""CRC-32C (Castagnoli), the checksum of record batches.

`crc32c` is the native routine if the `crc32c` package is installed, else `crc32c_plain`. Both are tested against each
other. Reflected polynomial 0x82F63B78, initial value and final xor of all ones (RFC 3720).
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.machinery import PathFinder
from importlib.util import module_from_spec
from typing import cast

Buffer = bytes | bytearray | memoryview


def _make_table() -> tuple[int, ...]:
    table = []
    for value in range(256):
        for _ in range(8):
            value = (value >> 1) ^ 0x82F63B78 if value & 1 else value >> 1
        table.append(value)
    return tuple(table)


_table: tuple[int, ...] = ()


def crc32c_plain(data: Buffer, value: int = 0) -> int:
    """Compute the checksum in plain Python, continuing from `value`."""
    global _table
    if not _table:
        _table = _make_table()
    table = _table
    value ^= 0xFFFFFFFF
    for byte in memoryview(data).cast("B"):
        value = table[(value ^ byte) & 0xFF] ^ (value >> 8)
    return value ^ 0xFFFFFFFF


def _native() -> Callable[..., int] | None:
    """Return the routine of the package's extension module, None if it is not installed.

    The package itself would import a command line and read its own version, which takes a sixth of a broker's start.
    """
    package = PathFinder.find_spec("crc32c")
    extension = package and PathFinder.find_spec("_crc32c", package.submodule_search_locations)
    if not extension or not extension.loader:  # pragma: no cover - the twin is tested directly
        return None
    module = module_from_spec(extension)
    extension.loader.exec_module(module)
    return cast(Callable[..., int], module.crc32c)


crc32c: Callable[..., int] = _native() or crc32c_plain
