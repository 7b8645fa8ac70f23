"""Requests, quotas and the quorum."""

from __future__ import annotations

from barnabas.protocol.messages import AlterClientQuotasRequest
from tests.metrics.monitored import Monitored, value


def test_quotas_show_who_is_throttled(node: Monitored) -> None:
    node.create_topic("t")
    entry = AlterClientQuotasRequest.EntryData(
        entity=[AlterClientQuotasRequest.EntityData(entity_type="client-id", entity_name="test")],
        ops=[AlterClientQuotasRequest.OpData(key="producer_byte_rate", value=10.0)],
    )
    node.ask(AlterClientQuotasRequest(entries=[entry]))
    node.produce("t", bytes(1000), timestamp=node.now_ms)
    samples = node.samples()
    assert value(samples, "kafka_server_produce_byte_rate", user="", client_id="test") > 100
    throttled = value(samples, "kafka_server_produce_throttle_time_total", user="", client_id="test")
    assert throttled > 0
    assert value(samples, "kafka_network_requestmetrics_throttletimems_total", request="Produce") == throttled
