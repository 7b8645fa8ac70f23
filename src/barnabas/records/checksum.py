"""CRC-32C (Castagnoli), the checksum of record batches. Data plane, pure.

:func:`crc32c` is the native routine where the ``crc32c`` package is present and the plain table twin otherwise; both
are tested against each other. Reflected polynomial 0x82F63B78, initial value and final xor of all ones (RFC 3720).
"""

from __future__ import annotations

from collections.abc import Callable

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
    """Computes the checksum in plain Python, continuing from ``value``."""
    global _table
    if not _table:
        _table = _make_table()
    table = _table
    value ^= 0xFFFFFFFF
    for byte in memoryview(data).cast("B"):
        value = table[(value ^ byte) & 0xFF] ^ (value >> 8)
    return value ^ 0xFFFFFFFF


crc32c: Callable[..., int]
try:
    from crc32c import crc32c
except ImportError:  # pragma: no cover - the twin is tested directly
    crc32c = crc32c_plain
