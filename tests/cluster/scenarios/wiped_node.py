"""A node returns with an empty disk and copies everything; then the node it copied from dies, and nothing is missing."""

from __future__ import annotations

from tests.cluster.cluster import Cluster
from tests.cluster.load import Load
from tests.cluster.replicas import check_load
from tests.cluster.topics import create_topic
from tests.conform.tool_process import ToolProcess

TOPIC = "wiped-node"
RECORDS = 300


def play(cluster: Cluster, tools: ToolProcess) -> None:
    # One partition, so that the follower leads nothing. A small segment: what it copies has several.
    create_topic(cluster, TOPIC, [[1, 2, 3]], {"min.insync.replicas": "2", "segment.bytes": "1048576"})
    follower = cluster[2]
    with Load(cluster.bootstrap_servers, TOPIC, 1) as load:
        load.await_more(RECORDS)
        follower.kill()
        follower.wipe()
        load.await_more(RECORDS)
        cluster.start_again(follower)
        cluster.await_in_sync([TOPIC])
        load.await_more(RECORDS)
        leader = cluster.leader_of(TOPIC, 0)
        leader.kill()
        load.await_more(RECORDS)
        cluster.start_again(leader)
    check_load(tools, cluster, load)
