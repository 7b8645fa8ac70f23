"""Nodes that end and return, as `bounce_brokers` of kafkatest."""

from __future__ import annotations

from tests.cluster.cluster import Cluster
from tests.cluster.node_process import NodeProcess


def bounce(cluster: Cluster, node: NodeProcess, *, is_clean: bool) -> None:
    """Restart a node, and wait until nothing is under-replicated.

    One that is killed is started again when the others know that it is gone.
    """
    take_down(cluster, node, is_clean=is_clean)
    cluster.start_again(node)
    cluster.await_brokers()
    cluster.await_in_sync(sorted(cluster.all_topics()))


def take_down(cluster: Cluster, node: NodeProcess, *, is_clean: bool) -> None:
    """End a node, by SIGTERM or by SIGKILL; wait until the others know that it is gone."""
    if is_clean:
        node.stop()
    else:
        node.kill()
        cluster.await_brokers()
