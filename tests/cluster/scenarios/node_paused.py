"""The leader of a partition is paused and fenced, and then goes on, believing that it still leads: nothing that it answers may count."""

from __future__ import annotations

from tests.cluster.cluster import Cluster
from tests.cluster.load import Load
from tests.cluster.replicas import check_load
from tests.cluster.topics import create_safe_topic
from tests.conform.tool_process import ToolProcess

TOPIC = "leader-paused"
RECORDS = 200


def play(cluster: Cluster, tools: ToolProcess) -> None:
    create_safe_topic(cluster, TOPIC)
    with Load(cluster.bootstrap_servers, TOPIC, 3) as load:
        load.await_more(RECORDS)
        leader = cluster.leader_of(TOPIC, 0)
        leader.pause()
        load.await_more(RECORDS)
        assert cluster.partition(TOPIC, 0).leader != leader.node_id
        leader.go_on()
        cluster.await_in_sync([TOPIC])
        load.await_more(RECORDS)
    check_load(tools, cluster, load)
