"""The leader of a partition dies while an idempotent producer writes with acks=all; the producer goes on, the node returns."""

from __future__ import annotations

from tests.cluster.cluster import Cluster
from tests.cluster.load import Load
from tests.cluster.replicas import check_load
from tests.cluster.topics import create_safe_topic
from tests.cluster.waiting import wait_for
from tests.conform.tool_process import ToolProcess

TOPIC = "leader-killed"
RECORDS = 200


def play(cluster: Cluster, tools: ToolProcess) -> None:
    create_safe_topic(cluster, TOPIC)
    with Load(cluster.bootstrap_servers, TOPIC, 3) as load:
        load.await_more(RECORDS)
        leader = cluster.leader_of(TOPIC, 0)
        epoch = cluster.partition(TOPIC, 0).leader_epoch
        leader.kill()
        load.await_more(RECORDS)
        assert cluster.leader_of(TOPIC, 0) is not leader
        assert cluster.partition(TOPIC, 0).leader_epoch > epoch
        wait_for(
            f"node {leader.node_id} has left the in-sync replicas",
            lambda: all(leader.node_id not in each.isr for each in cluster.partitions(TOPIC)),
        )
        cluster.start_again(leader)
        cluster.await_in_sync([TOPIC])
        load.await_more(RECORDS)
    check_load(tools, cluster, load)
