"""Groups and their lag, in records and in seconds."""

from __future__ import annotations

from barnabas.client.lag_verdicts import Verdict
from tests.metrics.monitored import Monitored, coordinate, value


def test_lag_in_records_and_seconds(node: Monitored) -> None:
    node.create_topic("t")
    coordinate(node)
    for age_s in (30, 20, 10):
        node.produce("t", b"a", b"b", timestamp=node.now_ms - age_s * 1000)
    node.commit("g", "t", 2)
    samples = node.samples()
    here = {"consumergroup": "g", "topic": "t", "partition": "0"}
    assert value(samples, "kafka_consumergroup_current_offset", **here) == 2
    assert value(samples, "kafka_consumergroup_lag", **here) == 4
    assert value(samples, "kafka_consumergroup_lag_sum", consumergroup="g", topic="t") == 4
    cluster = {"cluster_name": node.node.cluster_id, "group": "g"}
    assert value(samples, "kafka_consumergroup_group_max_lag_seconds", **cluster) == 20
    assert value(samples, "kafka_consumergroup_group_sum_lag", **cluster) == 4
    assert (
        value(samples, "kafka_partition_latest_offset", cluster_name=cluster["cluster_name"], topic="t", partition="0")
        == 6
    )
    node.now_ms += 5000
    assert value(node.samples(), "kafka_consumergroup_group_max_lag_seconds", **cluster) == 25
    node.commit("g", "t", 4)
    assert value(node.samples(), "kafka_consumergroup_group_max_lag_seconds", **cluster) == 15
    node.commit("g", "t", 6)
    caught_up = node.samples()
    assert value(caught_up, "kafka_consumergroup_lag", **here) == 0
    assert value(caught_up, "kafka_consumergroup_group_max_lag_seconds", **cluster) == 0


def test_an_offset_beyond_the_log_has_no_lag(node: Monitored) -> None:
    node.create_topic("t")
    coordinate(node)
    node.produce("t", b"a", timestamp=node.now_ms)
    node.commit("g", "t", 77)
    samples = node.samples()
    here = {"consumergroup": "g", "topic": "t", "partition": "0"}
    assert value(samples, "kafka_consumergroup_current_offset", **here) == 77
    assert ("kafka_consumergroup_lag", tuple(sorted(here.items()))) not in samples


def test_a_group_with_any_name_has_right_labels(node: Monitored) -> None:
    group = 'a "quoted" \\ name\nbarnabas_forged{x="y"} 1\x1b[2J'
    node.create_topic("t")
    coordinate(node)
    node.produce("t", b"a", b"b", timestamp=node.now_ms)
    node.commit(group, "t", 1)
    samples = node.samples()
    assert value(samples, "kafka_consumergroup_lag", consumergroup=group, topic="t", partition="0") == 1
    assert not [name for name, _ in samples if "forged" in name]


def test_a_group_that_stands_still_is_judged_once_its_samples_reach_back(node: Monitored) -> None:
    node.create_topic("t")
    coordinate(node)
    node.produce("t", b"a", b"b", b"c", timestamp=node.now_ms)
    node.commit("g", "t", 1)
    name, tags = "barnabas_consumergroup_verdict", {"consumergroup": "g"}
    began_ms = node.now_ms
    for age_ms in (0, 10_000, 29_999):
        node.now_ms = began_ms + age_ms
        assert (name, tuple(sorted(tags.items()))) not in node.samples(), age_ms
    node.now_ms = began_ms + 30_000
    samples = node.samples()
    assert value(samples, name, **tags) == Verdict.STOP
    assert value(samples, "barnabas_consumergroup_partition_verdict", **tags, topic="t", partition="0") == Verdict.STOP
    node.commit("g", "t", 3)
    assert value(node.samples(), name, **tags) == Verdict.OK
