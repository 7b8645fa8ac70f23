"""Each node is stopped (SIGTERM) and started in turn under a producer that never stops: what an upgrade does."""

from __future__ import annotations

from tests.cluster.cluster import Cluster
from tests.cluster.load import Load
from tests.cluster.replicas import check_load
from tests.cluster.topics import create_safe_topic
from tests.conform.tool_process import ToolProcess

TOPIC = "rolling-restart"
RECORDS = 100


def play(cluster: Cluster, tools: ToolProcess) -> None:
    create_safe_topic(cluster, TOPIC)
    with Load(cluster.bootstrap_servers, TOPIC, 3) as load:
        for node in list(cluster.nodes.values()):
            load.await_more(RECORDS)
            node.stop()
            if node.is_broker:
                # It has handed over what it led before it ended.
                led = [each.partition for each in cluster.partitions(TOPIC) if each.leader == node.node_id]
                assert not led, f"node {node.node_id} has gone and still leads {led}"
            load.await_more(RECORDS)
            cluster.start_again(node)
            cluster.await_in_sync([TOPIC])
    check_load(tools, cluster, load)
