"""`cluster move`, `throttle` and `cancel` on three nodes of either kind."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner
from confluent_kafka import Producer

from barnabas.client.admin import Admin, TopicPartition
from barnabas.client.replication_throttle import Moving, Throttle
from barnabas.main import command_group
from tests.cluster.cluster import Cluster
from tests.cluster.conftest import Clusters
from tests.cluster.node_process import KINDS
from tests.cluster.topics import create_topic
from tests.cluster.waiting import wait_for

pytestmark = [pytest.mark.conform, pytest.mark.xdist_group("clusters"), pytest.mark.timeout(600)]

AT = TopicPartition("moving", 0)
ON_TWO = TopicPartition("moving", 1)


def run(cluster: Cluster, *words: str) -> str:
    arguments = ["cluster", *words, "-b", cluster.bootstrap_servers]
    result = CliRunner().invoke(command_group(), arguments, prog_name="barnabas")
    assert result.exit_code == 0, result.output
    return result.stdout


def is_off(throttle: Throttle) -> bool:
    return set(throttle.rates.values()) == {(None, None)} and not throttle.replicas


@pytest.mark.parametrize("kind", KINDS)
def test_a_throttled_move_is_cancelled_and_begun_again(kind: str, clusters: Clusters) -> None:
    cluster = clusters.get(kind, has_own_controller=False)
    create_topic(cluster, "moving", [[1], [3]])
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers, "acks": "all", "linger.ms": 50})
    for _ in range(100):
        producer.produce("moving", bytes(100_000), partition=0)
    assert producer.flush(120) == 0
    with Admin(cluster.bootstrap_servers) as admin:
        # So slow that the copy does not end while the test looks.
        assert set(admin.set_throttle(1000, {AT: Moving([1], [2])}).values()) == {None}
        assert admin.alter_reassignments({AT: [2]}) == {AT: None}
        assert json.loads(run(cluster, "throttle", "-o", "json")) == {
            "brokers": [{"broker": each, "leader_rate": 1000, "follower_rate": 1000} for each in (1, 2, 3)],
            "topics": [{"topic": "moving", "leaders": "0:1", "followers": "0:2"}],
        }
        assert "would be cancelled" in run(cluster, "cancel", "moving:0", "--dry-run")
        assert admin.list_reassignments()[AT].adding == [2]
        assert "cancelled" in run(cluster, "cancel", "--all")
        cluster.await_in_sync(["moving"])
        assert admin.describe_partitions(["moving"])[AT].replicas == [1]
        run(cluster, "throttle", "off")
        wait_for("every broker knows that the throttle is off", lambda: is_off(admin.describe_throttle()))
        assert "moved" in run(cluster, "move", "moving", "--to", "3,2", "--throttle", "50MB")
        found = admin.describe_partitions(["moving"])
        assert [found[AT].replicas, found[ON_TWO].replicas] == [[3, 2], [3, 2]]
        wait_for("nothing is throttled any more", lambda: admin.describe_throttle().replicas == {})
        for by, column in (("bytes", "bytes"), ("load", "bytes_last_hour")):
            brokers = json.loads(run(cluster, "rebalance", "--by", by, "--dry-run", "-o", "json"))["brokers"]
            assert {each["broker"] for each in brokers if each[column] >= 10_000_000} == {2, 3}, brokers
    cluster.await_in_sync(["moving"])
