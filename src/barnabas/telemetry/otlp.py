"""The payload of a push: the part of OpenTelemetry's MetricsData that client metrics use.

    MetricsData          1 ResourceMetrics *
    ResourceMetrics      1 Resource, 2 ScopeMetrics *
    Resource             1 KeyValue *
    ScopeMetrics         2 Metric *
    Metric               1 name, 5 Gauge, 7 Sum, 9 Histogram
    Gauge                1 NumberDataPoint *
    Sum                  1 NumberDataPoint *, 2 temporality (1 delta, 2 cumulative), 3 is monotonic
    Histogram            1 HistogramDataPoint *, 2 temporality
    NumberDataPoint      7 KeyValue *, 4 double or 6 sfixed64
    HistogramDataPoint   9 KeyValue *, 4 fixed64 count, 5 double sum
    KeyValue             1 key, 2 AnyValue
    AnyValue             1 string, 2 bool, 3 int64, 4 double

- Protocol buffers are decoded by hand: a message is a list of (number, wire type, value). Forty lines replace a dependency with
  generated code. Unknown fields are skipped, as the format demands.
- A histogram becomes two sums: its count and its sum. Exponential histograms and summaries, which no client sends, are skipped.

Sources: opentelemetry-proto `metrics.proto`, `common.proto`; the encoding page of Protocol Buffers; KIP-714.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

__all__ = ["BadPayload", "Point", "read_metrics"]

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
DELTA = 1
_double = struct.Struct("<d")
_sfixed64 = struct.Struct("<q")

Value = int | memoryview
Attributes = tuple[tuple[str, str], ...]


class BadPayload(Exception):
    """The bytes are not a valid MetricsData; the broker returns INVALID_RECORD."""


class Point(NamedTuple):
    """One value.

    Attributes:
        name: the metric's name, such as `org.apache.kafka.consumer.poll.idle.ratio.avg`.
        attributes: those of the resource and of the point, sorted by name.
        is_sum: whether the value only grows.
        is_delta: whether the value is the increase since the previous push.
    """

    name: str
    attributes: Attributes
    value: float
    is_sum: bool
    is_delta: bool


def read_metrics(data: bytes | bytearray | memoryview) -> Iterator[Point]:
    """Yield each value of a push.

    Raises:
        BadPayload: possibly after some values.
    """
    try:
        for resource_metrics in _messages(memoryview(data), 1):
            resource: dict[str, str] = {}
            for found in _messages(resource_metrics, 1):
                resource.update(_attributes(found, 1))
            for scope_metrics in _messages(resource_metrics, 2):
                for metric in _messages(scope_metrics, 2):
                    yield from _points(metric, resource)
    except (struct.error, IndexError, UnicodeDecodeError, ValueError) as error:
        raise BadPayload(f"not a valid MetricsData: {error}") from None


def _points(metric: memoryview, resource: dict[str, str]) -> Iterator[Point]:
    name, kinds = "", []
    for number, wire, value in _fields(metric):
        if wire != BYTES or not isinstance(value, memoryview):
            continue
        if number == 1:
            name = str(value, "utf-8")
        elif number in (5, 7, 9):
            kinds.append((number, value))
    for number, body in kinds:
        temporality, is_monotonic = 0, False
        for field, wire, value in _fields(body):
            if wire == VARINT and isinstance(value, int):
                temporality = value if field == 2 else temporality
                is_monotonic = bool(value) if field == 3 else is_monotonic
        is_delta = temporality == DELTA
        for point in _messages(body, 1):
            if number == 9:
                yield from _histogram(name, point, resource, is_delta)
            else:
                attributes = _sorted({**resource, **_attributes(point, 7)})
                yield Point(name, attributes, _number(point), number == 7 and (is_delta or is_monotonic), is_delta)


def _histogram(name: str, point: memoryview, resource: dict[str, str], is_delta: bool) -> Iterator[Point]:
    attributes = _sorted({**resource, **_attributes(point, 9)})
    for number, wire, value in _fields(point):
        if wire == FIXED64 and isinstance(value, memoryview):
            if number == 4:
                yield Point(f"{name}.count", attributes, float(_sfixed64.unpack(value)[0]), True, is_delta)
            elif number == 5:
                yield Point(f"{name}.sum", attributes, float(_double.unpack(value)[0]), True, is_delta)


def _number(point: memoryview) -> float:
    for number, wire, value in _fields(point):
        if wire == FIXED64 and isinstance(value, memoryview):
            if number == 4:
                return float(_double.unpack(value)[0])
            if number == 6:
                return float(_sfixed64.unpack(value)[0])
    return 0.0


def _attributes(message: memoryview, field: int) -> dict[str, str]:
    found: dict[str, str] = {}
    for pair in _messages(message, field):
        key, text = "", ""
        for number, wire, value in _fields(pair):
            if wire == BYTES and isinstance(value, memoryview):
                if number == 1:
                    key = str(value, "utf-8")
                elif number == 2:
                    text = _any_value(value)
        found[key] = text
    return found


def _any_value(message: memoryview) -> str:
    for number, wire, value in _fields(message):
        if isinstance(value, int):
            if number == 2:
                return str(bool(value)).lower()
            return str(value - (1 << 64) if value >= 1 << 63 else value)
        if number == 1 and wire == BYTES:
            return str(value, "utf-8")
        if number == 4 and wire == FIXED64:
            return str(_double.unpack(value)[0])
    return ""


def _sorted(attributes: dict[str, str]) -> Attributes:
    return tuple(sorted(attributes.items()))


def _messages(message: memoryview, number: int) -> Iterator[memoryview]:
    """Yield the embedded messages of one field."""
    for field, wire, value in _fields(message):
        if field == number and wire == BYTES and isinstance(value, memoryview):
            yield value


def _fields(message: memoryview) -> Iterator[tuple[int, int, Value]]:
    """Yield number, wire type and value of each field; eight-byte values stay bytes, since only the caller knows their type."""
    position, end = 0, len(message)
    while position < end:
        key, position = _varint(message, position)
        wire = key & 7
        if wire == VARINT:
            value, position = _varint(message, position)
            yield key >> 3, wire, value
            continue
        if wire == BYTES:
            size, position = _varint(message, position)
        elif wire in (FIXED64, FIXED32):
            size = 8 if wire == FIXED64 else 4
        else:
            raise ValueError(f"wire type {wire}")
        if position + size > end:
            raise ValueError(f"a field of {size} bytes where {end - position} remain")
        yield key >> 3, wire, message[position : position + size]
        position += size


def _varint(message: memoryview, position: int) -> tuple[int, int]:
    result = shift = 0
    while True:
        byte = message[position]
        position += 1
        result |= (byte & 0x7F) << shift
        if byte < 0x80:
            return result, position
        shift += 7
        if shift > 63:
            raise ValueError("a number of more than ten bytes")
