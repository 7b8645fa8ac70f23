"""What queries skipped, from the records of the losses topic."""

from __future__ import annotations

import json
from typing import Any

from prometheus_client import CollectorRegistry

from barnabas.spark.source.skipped_ranges import SkippedRanges


class Given:
    def __init__(self) -> None:
        self.values: list[bytes] = []

    def new(self) -> list[bytes]:
        values, self.values = self.values, []
        return values


def loss(**more: Any) -> bytes:
    given = {"topic": "orders", "partition": 0, "from": 10, "to": 15, "reason": "cut", "query": "1-2", "batch": "7"}
    return json.dumps(given | more).encode()


def counts(registry: CollectorRegistry) -> dict[tuple[str, str, str], float]:
    return {
        (sample.name.removeprefix("barnabas_spark_query_skipped_"), *sample.labels.values()): sample.value
        for family in registry.collect()
        for sample in family.samples
    }


def test_ranges_and_offsets_add_up_over_scrapes():
    records, registry = Given(), CollectorRegistry()
    registry.register(SkippedRanges(records.new, {"1-2": "counts"}.__getitem__))
    assert counts(registry) == {}
    records.values = [loss(), loss(to=None), loss(topic="payments", query=None, to=11)]
    expected = {
        ("ranges_total", "counts", "orders"): 2.0,
        ("offsets_total", "counts", "orders"): 5.0,
        ("ranges_total", "", "payments"): 1.0,
        ("offsets_total", "", "payments"): 1.0,
    }
    assert counts(registry) == expected
    records.values = [loss()]
    assert counts(registry) == expected | {
        ("ranges_total", "counts", "orders"): 3.0,
        ("offsets_total", "counts", "orders"): 10.0,
    }


def test_other_records_are_left_out():
    records, registry = Given(), CollectorRegistry()
    registry.register(SkippedRanges(records.new, str))
    records.values = [b"", b"\xff", b"[]", b"7", b"{}", loss(**{"from": "x"}), loss(to=[])]
    assert counts(registry) == {}
