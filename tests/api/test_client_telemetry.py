"""Client telemetry over the wire: settings to subscription to push to /metrics."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import (
    GetTelemetrySubscriptionsRequest,
    IncrementalAlterConfigsRequest,
    PushTelemetryRequest,
)
from barnabas.protocol.primitives import ZERO_UUID
from barnabas.records.compression import compress
from tests.metrics.monitored import Monitored, value
from tests.telemetry.otlp_writer import DELTA, GAUGE, SUM, attributes, double, metric, metrics_data

ZSTD = 4


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Monitored]:
    made = Monitored(tmp_path)
    yield made
    made.close()


def subscribe(node: Monitored, name: str, **settings: str) -> None:
    resource = IncrementalAlterConfigsRequest.AlterConfigsResource(
        resource_type=16,
        resource_name=name,
        configs=[
            IncrementalAlterConfigsRequest.AlterableConfig(
                name=key.replace("_", "."), config_operation=0 if text else 1, value=text or None
            )
            for key, text in settings.items()
        ],
    )
    assert node.ask(IncrementalAlterConfigsRequest(resources=[resource])).responses[0].error_code == 0


def test_from_settings_to_the_metrics(node: Monitored) -> None:
    subscribe(node, "all", metrics="org.apache.kafka.", interval_ms="1000", match="client_id=te.*")
    told = node.ask(GetTelemetrySubscriptionsRequest(client_instance_id=ZERO_UUID))
    assert told.error_code == 0
    assert told.client_instance_id != ZERO_UUID
    assert told.requested_metrics == ["org.apache.kafka."]
    assert (told.push_interval_ms, told.telemetry_max_bytes, told.delta_temporality) == (1000, 1048576, True)
    assert told.accepted_compression_types == [4, 3, 1, 2]
    payload = metrics_data(
        metric(
            "org.apache.kafka.consumer.poll.idle.ratio.avg", GAUGE, double(4, 0.25) + attributes(7, {"node-id": "1"})
        ),
        metric("org.apache.kafka.consumer.polls", SUM, double(4, 3.0), temporality=DELTA, monotonic=True),
        resource={"group_id": "g"},
    )
    push = PushTelemetryRequest(
        client_instance_id=told.client_instance_id,
        subscription_id=told.subscription_id,
        compression_type=ZSTD,
        metrics=compress(ZSTD, payload),
    )
    assert node.ask(push).error_code == 0
    assert node.ask(push).error_code == ErrorCode.THROTTLING_QUOTA_EXCEEDED
    node.now_ms += 1000
    assert node.ask(push).error_code == 0
    samples = node.samples()
    (tags,) = [dict(tags) for name, tags in samples if name == "org_apache_kafka_consumer_poll_idle_ratio_avg"]
    assert (tags["client_id"], tags["group_id"], tags["node_id"]) == ("test", "g", "1")
    assert value(samples, "org_apache_kafka_consumer_poll_idle_ratio_avg", **tags) == 0.25
    (polls,) = [samples[key] for key in samples if key[0] == "org_apache_kafka_consumer_polls_total"]
    assert polls == 6.0
    assert value(samples, "kafka_server_client_metrics_export_total") == 2
    assert value(samples, "kafka_server_client_metrics_throttle_total") == 1


def test_removed_settings_leave_nothing_to_push(node: Monitored) -> None:
    subscribe(node, "all", metrics="*", interval_ms="1000")
    told = node.ask(GetTelemetrySubscriptionsRequest(client_instance_id=ZERO_UUID))
    assert told.requested_metrics == ["*"]
    subscribe(node, "all", metrics="", interval_ms="")
    again = GetTelemetrySubscriptionsRequest(client_instance_id=told.client_instance_id)
    # The changed subscription is a new instance, so that it may be asked for at once.
    later = node.ask(again)
    assert (later.error_code, later.requested_metrics, later.push_interval_ms) == (0, [], 300_000)


def test_nothing_is_loaded_until_a_client_asks(node: Monitored) -> None:
    assert node.server.client_metrics is None
    subscribe(node, "all", metrics="*")
    node.samples()
    assert node.server.client_metrics is None
