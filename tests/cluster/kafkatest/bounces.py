"""Nodes that end and return, as `bounce_brokers` of kafkatest."""

from __future__ import annotations

from tests.cluster import views
from tests.cluster.cluster import Cluster
from tests.cluster.node_process import NodeProcess
from tests.cluster.waiting import wait_for


def bounce(cluster: Cluster, node: NodeProcess, *, is_clean: bool) -> None:
    """Restart a node, and wait until nothing is under-replicated.

    A killed node is started again when the others know that it is gone.
    """
    take_down(cluster, node, is_clean=is_clean)
    cluster.start_again(node)
    cluster.await_brokers()
    cluster.await_in_sync(sorted(cluster.all_topics()))


def wipe(cluster: Cluster, node: NodeProcess, *, is_clean: bool) -> None:
    """As `bounce`, and the node loses its disk meanwhile."""
    take_down(cluster, node, is_clean=is_clean)
    node.wipe()
    cluster.start_again(node)
    cluster.await_brokers()
    cluster.await_in_sync(sorted(cluster.all_topics()))


def pause(cluster: Cluster, node: NodeProcess) -> None:
    """Pause a node until the others have replaced it; then it goes on, and still believes that it leads."""
    node.pause()
    wait_for(
        f"node {node.node_id} is fenced",
        lambda: node.node_id not in views.metadata(cluster.any_address(but=node.node_id)).brokers,
    )
    node.go_on()
    cluster.await_brokers()
    cluster.await_in_sync(sorted(cluster.all_topics()))


def take_down(cluster: Cluster, node: NodeProcess, *, is_clean: bool) -> None:
    """End a node, by SIGTERM or by SIGKILL; wait until the others know that it is gone."""
    if is_clean:
        node.stop()
    else:
        node.kill()
        cluster.await_brokers()
