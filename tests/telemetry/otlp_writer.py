"""Writes OpenTelemetry's MetricsData, for tests: the other direction of the reader, from the same tables."""

from __future__ import annotations

import struct
from collections.abc import Mapping

GAUGE, SUM, HISTOGRAM = 5, 7, 9
DELTA, CUMULATIVE = 1, 2


def varint(value: int) -> bytes:
    out = bytearray()
    value &= (1 << 64) - 1
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def message(number: int, body: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(body)) + body


def double(number: int, value: float) -> bytes:
    return varint(number << 3 | 1) + struct.pack("<d", value)


def fixed(number: int, value: int) -> bytes:
    return varint(number << 3 | 1) + struct.pack("<q", value)


def flag(number: int, value: int) -> bytes:
    return varint(number << 3) + varint(value)


def attributes(number: int, pairs: Mapping[str, str]) -> bytes:
    return b"".join(
        message(number, message(1, k.encode()) + message(2, message(1, v.encode()))) for k, v in pairs.items()
    )


def metric(name: str, kind: int, *points: bytes, temporality: int = 0, monotonic: bool = False) -> bytes:
    body = b"".join(message(1, point) for point in points)
    if temporality:
        body += flag(2, temporality)
    if monotonic:
        body += flag(3, 1)
    return message(2, message(1, name.encode()) + message(kind, body))


def metrics_data(*metrics: bytes, resource: Mapping[str, str] | None = None) -> bytes:
    scope = message(2, b"".join(metrics))
    return message(1, message(1, attributes(1, resource or {})) + scope)
