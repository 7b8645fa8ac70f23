"""MetricsData is read field by field, and what is none is refused."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.telemetry.otlp import BadPayload, Point, read_metrics
from tests.telemetry.otlp_writer import (
    CUMULATIVE,
    DELTA,
    GAUGE,
    HISTOGRAM,
    SUM,
    attributes,
    double,
    fixed,
    flag,
    message,
    metric,
    metrics_data,
    varint,
)


def test_annotated_bytes() -> None:
    data = bytes.fromhex(
        "0a 2c"  # MetricsData.resource_metrics, 44 bytes
        "0a 0c 0a 0a 0a 01 6b 12 05 0a 03 76 61 6c"  # resource: k = "val"
        "12 1c 12 1a"  # scope_metrics, a metric
        "0a 03 61 2e 62"  # name a.b
        "3a 13"  # sum
        "0a 0d 31 05 00 00 00 00 00 00 00 3a 02 0a 00"  # a point: as_int 5, an attribute without a name
        "10 01 18 01"  # delta, monotonic
    )
    assert list(read_metrics(data)) == [Point("a.b", (("", ""), ("k", "val")), 5.0, True, True)]


def test_gauges_sums_and_histograms() -> None:
    point = double(4, 1.5) + attributes(7, {"node": "1"})
    counts = fixed(4, 3) + double(5, 7.5) + attributes(9, {"node": "2"})
    data = metrics_data(
        metric("g", GAUGE, point),
        metric("d", SUM, point, temporality=DELTA, monotonic=True),
        metric("c", SUM, point, temporality=CUMULATIVE, monotonic=True),
        metric("level", SUM, point, temporality=CUMULATIVE),
        metric("h", HISTOGRAM, counts, temporality=DELTA),
        resource={"client_rack": "r"},
    )
    one, two = (("client_rack", "r"), ("node", "1")), (("client_rack", "r"), ("node", "2"))
    assert list(read_metrics(data)) == [
        Point("g", one, 1.5, False, False),
        Point("d", one, 1.5, True, True),
        Point("c", one, 1.5, True, False),
        Point("level", one, 1.5, False, False),
        Point("h.count", two, 3.0, True, True),
        Point("h.sum", two, 7.5, True, True),
    ]


def test_values_of_every_kind_and_fields_unknown() -> None:
    any_values = {
        "string": message(1, b"text"),
        "bool": flag(2, 1),
        "int": flag(3, -7),
        "double": double(4, 0.5),
        "list": message(5, b""),
    }
    pairs = b"".join(message(7, message(1, key.encode()) + message(2, body)) for key, body in any_values.items())
    unknown = varint(99 << 3 | 5) + bytes(4) + message(98, b"x") + flag(97, 3)
    (point,) = read_metrics(metrics_data(metric("g", GAUGE, unknown + pairs + fixed(6, -2))))
    assert point.value == -2.0
    assert dict(point.attributes) == {"string": "text", "bool": "true", "int": "-7", "double": "0.5", "list": ""}


def test_nothing_is_no_points() -> None:
    assert list(read_metrics(b"")) == []


@pytest.mark.parametrize("data", [b"\x0a", b"\x0a\x05", b"\x0b", b"\xff" * 11, message(1, b"\x12\xff")])
def test_what_is_none_is_refused(data: bytes) -> None:
    with pytest.raises(BadPayload):
        list(read_metrics(data))


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    with contextlib.suppress(BadPayload):
        list(read_metrics(data))


def test_every_truncation_is_read_or_refused() -> None:
    whole = metrics_data(metric("g", GAUGE, double(4, 1.5) + attributes(7, {"node": "1"})), resource={"a": "b"})
    for end in range(len(whole)):
        try:
            points = list(read_metrics(whole[:end]))
        except BadPayload:
            continue
        assert points == []
