"""What clients pushed, as Prometheus reads it."""

from __future__ import annotations

import random

import pytest
from prometheus_client.parser import text_string_to_metric_families

from barnabas.metrics import client_families
from barnabas.telemetry.client_metrics_manager import ClientMetricsManager
from barnabas.telemetry.otlp import Point
from barnabas.telemetry.pushed_metrics import Pusher

PUSHER = Pusher("id-1", "app", "java", "4.3")


def samples(*points: Point) -> dict[tuple[str, str | None], float]:
    """Values by name and the label `topic`, without the broker's own counts."""
    manager = ClientMetricsManager(1000, random.Random(1))
    manager.pushed.take(b"1", PUSHER, points, 1000, 0)
    metrics = text_string_to_metric_families("".join(client_families.families(manager)))
    return {
        (sample.name, sample.labels.get("topic")): sample.value
        for metric in metrics
        for sample in metric.samples
        if not sample.name.startswith("kafka_server_client_metrics_")
    }


@pytest.mark.parametrize(
    ("pushed", "is_sum", "served"),
    [
        ("org.apache.kafka.consumer.poll.idle.ratio.avg", False, "org_apache_kafka_consumer_poll_idle_ratio_avg"),
        ("a.records", True, "a_records_total"),
        ("a.records.total", True, "a_records_total"),
        ("1st-metric", False, "_1st_metric"),
    ],
)
def test_names_are_those_that_prometheus_allows(pushed: str, is_sum: bool, served: str) -> None:
    assert samples(Point(pushed, (), 1.5, is_sum, False)) == {(served, None): 1.5}


def test_labels_of_the_client_come_beside_the_pushers() -> None:
    found = samples(Point("m", (("topic", "t"),), 1.0, False, False), Point("m", (("topic", "u"),), 2.0, False, False))
    assert found == {("m", "t"): 1.0, ("m", "u"): 2.0}


def test_a_client_cannot_take_another_clients_labels() -> None:
    manager = ClientMetricsManager(1000, random.Random(1))
    manager.pushed.take(b"1", PUSHER, [Point("m", (("client_id", "other"),), 1.0, False, False)], 1000, 0)
    assert 'client_id="app"' in "".join(client_families.families(manager)).splitlines()[-1]


def test_the_brokers_own_counts_are_served_without_a_push() -> None:
    manager = ClientMetricsManager(1000, random.Random(1))
    manager.throttles = 3
    assert "kafka_server_client_metrics_throttle_total 3" in "".join(client_families.families(manager))
