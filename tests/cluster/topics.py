"""Topics of a scenario, created through an ordinary client."""

from __future__ import annotations

from confluent_kafka.admin import AdminClient, NewTopic

from tests.cluster.cluster import Cluster

CREATE_SECONDS = 60.0


def create_topic(cluster: Cluster, name: str, replicas: list[list[int]], configs: dict[str, str] | None = None) -> None:
    """Create a topic whose replicas are where the scenario wants them, and wait until all are in sync.

    Args:
        replicas: of each partition; the first leads.
    """
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers, "log_level": 0})
    topic = NewTopic(name, len(replicas), replica_assignment=replicas, config=configs or {})
    admin.create_topics([topic], operation_timeout=CREATE_SECONDS)[name].result(CREATE_SECONDS)
    cluster.await_in_sync([name])


def create_safe_topic(cluster: Cluster, name: str) -> None:
    """Create a topic of three partitions, one led by each broker, with three replicas of which two must have each write."""
    create_topic(cluster, name, [[1, 2, 3], [2, 3, 1], [3, 1, 2]], {"min.insync.replicas": "2"})
