"""librdkafka, an independent client, asks for its subscription and pushes; what it pushes is in the metrics."""

from __future__ import annotations

import urllib.request

import pytest
from confluent_kafka import Producer
from prometheus_client.parser import text_string_to_metric_families

import barnabas
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.messages import IncrementalAlterConfigsRequest


@pytest.mark.slow
def test_without_a_subscription_librdkafka_does_not_ask_for_an_id_and_prints_nothing(
    capfd: pytest.CaptureFixture[str],
) -> None:
    with barnabas.Broker(config={"barnabas.metrics.listen": "127.0.0.1:0"}) as broker:
        node = broker._node
        assert node is not None
        producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
        # Where telemetry is served, it asks as soon as a connection is up, so before its third produce request.
        for _ in range(3):
            producer.produce("t", b"x")
            assert producer.flush(60) == 0
        assert node.broker.client_metrics is None
        del producer
    assert "GETSUBSCRIPTIONS" not in capfd.readouterr().err


@pytest.mark.slow
def test_librdkafka_pushes_its_metrics() -> None:
    with barnabas.Broker(config={"barnabas.metrics.listen": "127.0.0.1:0"}) as broker:
        node = broker._node
        assert node is not None
        assert node.metrics is not None
        resource = IncrementalAlterConfigsRequest.AlterConfigsResource(
            resource_type=16,
            resource_name="all",
            configs=[
                IncrementalAlterConfigsRequest.AlterableConfig(name=name, config_operation=0, value=value)
                for name, value in (("metrics", "org.apache.kafka.producer."), ("interval.ms", "100"))
            ],
        )

        async def subscribe() -> None:
            request = IncrementalAlterConfigsRequest(resources=[resource])
            await node.broker.controller.handle(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, request)

        broker._call(subscribe)
        producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "client.id": "pushing"})
        url = f"http://127.0.0.1:{node.metrics.http.port}/metrics"
        found: dict[str, str] = {}
        while not found:
            producer.produce("t", b"x")
            producer.flush(60)
            text = urllib.request.urlopen(url, timeout=60).read().decode()
            for metric in text_string_to_metric_families(text):
                for sample in metric.samples:
                    if sample.name.startswith("org_apache_kafka_producer_"):
                        found = dict(sample.labels)
        assert found["client_id"] == "pushing"
        assert found["software_name"]
        assert node.broker.client_metrics is not None
        assert node.broker.client_metrics.export_errors == 0
