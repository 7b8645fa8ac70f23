"""`topic list --sizes --rates` on a real broker."""

from __future__ import annotations

import json
import time
from typing import Any

from click.testing import CliRunner

import barnabas
from barnabas.cli.topic import list_
from barnabas.cli.topic_sizes import seconds_of
from barnabas.client.admin import Admin, NewTopic, OffsetAndTimestamp, TopicPartition
from barnabas.client.partition_records import append_batch
from barnabas.records.builder import build_batch


def listed(broker: barnabas.Broker, *arguments: str) -> dict[str, Any]:
    result = CliRunner().invoke(list_, [*arguments, "-b", broker.bootstrap_servers, "-o", "json"])
    assert result.exit_code == 0, result.output
    return {each.pop("name"): each for each in json.loads(result.stdout)}


def test_sizes_and_rates_are_those_of_the_logs() -> None:
    now_ms = time.time_ns() // 1_000_000
    with barnabas.Broker() as broker, Admin(broker.bootstrap_servers) as admin:
        admin.create_topics([NewTopic(name, 2, 1) for name in ("busy", "old", "empty")])
        sizes = {"busy": 0, "old": 0, "empty": 0}
        for name, age_ms in (("busy", 100_000), ("old", 7_200_000)):
            for partition in (0, 1):
                records = [(now_ms - age_ms, None, b"v" * 100, ())] * 50
                batch = build_batch(records)
                sizes[name] += len(batch)
                append_batch(admin.cluster, TopicPartition(name, partition), batch)
        found = listed(broker, "--sizes", "--rates", "--window", "10m")
        table = CliRunner().invoke(list_, ["bus.*", "--sizes", "--rates", "-b", broker.bootstrap_servers]).stdout
        assert list(listed(broker, "old")["old"]) == ["partitions", "replicas"]
    assert {name: each["records"] for name, each in found.items()} == {"busy": 100, "old": 100, "empty": 0}
    assert {name: each["size_bytes"] for name, each in found.items()} == sizes
    assert {name: each["replicas_bytes"] for name, each in found.items()} == sizes
    assert found["old"]["records_per_sec"] == found["empty"]["bytes_per_sec"] == 0
    # All of its records are within the window: the time since the first one counts.
    assert 0.5 < found["busy"]["records_per_sec"] <= 1
    assert 0.5 < found["busy"]["bytes_per_sec"] * 100 / sizes["busy"] <= 1
    assert table.split()[:8] == [
        "NAME",
        "PARTITIONS",
        "REPLICAS",
        "RECORDS",
        "SIZE",
        "REPLICAS-SIZE",
        "RECORDS/S",
        "BYTES/S",
    ]


def test_the_time_of_a_rate_is_the_window_unless_the_topic_is_younger() -> None:
    here, there = TopicPartition("orders", 0), TopicPartition("orders", 1)
    bounds = {here: (0, 10), there: (5, 9)}
    first = {here: OffsetAndTimestamp(0, 40_000, 0), there: OffsetAndTimestamp(5, 50_000, 0)}
    assert seconds_of(first, bounds, window_ms=90_000, now_ms=100_000) == 60
    assert (
        seconds_of({**first, there: OffsetAndTimestamp(6, 50_000, 0)}, bounds, window_ms=90_000, now_ms=100_000) == 90
    )
    assert seconds_of(first, bounds, window_ms=90_000, now_ms=40_100) == 1
