"""Requests, quotas and the quorum."""

from __future__ import annotations

from prometheus_client.parser import text_string_to_metric_families

from barnabas.metrics.node_families import _raft
from barnabas.metrics.source import QuorumState
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
    assert value(samples, "kafka_controller_controllerstats_uncleanleaderelectionspersec_total") == 0
    assert value(samples, "kafka_controller_kafkacontroller_activebrokercount") == 1
    assert value(samples, "kafka_controller_kafkacontroller_fencedbrokercount") == 0


def test_idle_is_a_share_and_for_the_newer_boards_a_count_of_nanoseconds(node: Monitored) -> None:
    pool = "kafka_server_kafkarequesthandlerpool_requesthandleravgidle"
    first, second = node.samples(), node.samples()
    share = value(second, f"{pool}_percent")
    assert 0 <= share <= 1
    for spelling in ("idle_percent", "idlepercent"):
        assert value(second, f"kafka_network_socketserver_networkprocessoravg{spelling}") == share
    assert value(second, f"{pool}percent_total") >= value(first, f"{pool}percent_total") >= 0


def test_the_role_has_the_three_names_that_boards_know(node: Monitored) -> None:
    samples = node.samples()
    for name in ("raftmetrics_current_state", "raft_metrics_current_state", "raft_metrics_current_state_info"):
        assert value(samples, f"kafka_server_{name}", current_state="leader") == 1


def state(**changes: int | str) -> QuorumState:
    alone = QuorumState(
        leader=1,
        epoch=1,
        vote=1,
        state="follower",
        high_watermark=10,
        log_end_offset=10,
        commits=0,
        commit_ms=0,
        unclean_elections=0,
        requests=0,
        responses=0,
        bytes_out=0,
        bytes_in=0,
    )
    return alone._replace(**changes)


def raft(before: QuorumState, now: QuorumState, seconds: float) -> dict[str, float]:
    """Return what a scrape shows of the quorum, by name."""
    text = "".join(_raft(now, before, seconds))
    return {s.name: s.value for metric in text_string_to_metric_families(text) for s in metric.samples}


def test_a_leader_appends_and_a_follower_fetches() -> None:
    rates = [f"kafka_server_raftmetrics_{name}_records_rate" for name in ("append", "fetch")]
    before = state()
    for role, expected in (("Leader", [5, 0]), ("Follower", [0, 5]), ("Observer", [0, 5])):
        found = raft(before, state(state=role, log_end_offset=20), 2)
        assert [found[name] for name in rates] == expected
    cut = raft(before, state(log_end_offset=4), 2)
    assert [cut[name] for name in rates] == [0, 0], "a follower whose log was cut has fetched nothing"


def test_the_traffic_of_the_quorum_has_three_names_each() -> None:
    found = raft(state(), state(requests=3, responses=2, bytes_out=300, bytes_in=200), 1)
    for name, count in (("request", 3), ("response", 2), ("outgoing_byte", 300), ("incoming_byte", 200)):
        for whole in (f"channelmetrics_{name}_total", f"_channel_metrics_{name}_total", f"_channel_metrics_{name}"):
            assert found[f"kafka_server_raft{whole}"] == count
