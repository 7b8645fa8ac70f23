"""Requests, quotas and the quorum."""

from __future__ import annotations

from barnabas.protocol.messages import AlterClientQuotasRequest
from tests.metrics.monitored import Monitored, value


def test_quotas_show_which_clients_are_throttled(node: Monitored) -> None:
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


def test_the_quorum_shows_what_was_appended_since_the_last_scrape(node: Monitored) -> None:
    rate = "kafka_server_raftmetrics_append_records_rate"
    node.samples()
    assert value(node.samples(), rate) == 0
    node.create_topic("t")
    samples = node.samples()
    assert value(samples, rate) > 0
    end = value(samples, "kafka_server_raftmetrics_log_end_offset")
    assert value(samples, "kafka_server_raftmetrics_high_watermark") == end
    assert value(samples, "kafka_server_raft_metrics_high_watermark") == end
    assert value(samples, "kafka_server_raftmetrics_current_state", current_state="leader") == 1
    assert value(samples, "kafka_server_raftmetrics_current_leader") == node.server.config.node_id


def test_the_only_node_is_the_active_controller(node: Monitored) -> None:
    samples = node.samples()
    assert value(samples, "kafka_controller_kafkacontroller_activecontrollercount") == 1
    assert value(samples, "kafka_controller_kafkacontroller_offlinepartitionscount") == 0
    assert value(samples, "kafka_controller_controllerstats_uncleanleaderelections_total") == 0
    node.server.controller.counts.unclean_elections = 2
    assert value(node.samples(), "kafka_controller_controllerstats_uncleanleaderelections_total") == 2
    assert 0 <= value(samples, "kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent") <= 1
