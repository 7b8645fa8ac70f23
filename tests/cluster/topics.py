"""Topics of a scenario, created through an ordinary client."""

from __future__ import annotations

from collections.abc import Iterable

from confluent_kafka.admin import AdminClient, NewTopic

from tests.cluster.cluster import Cluster
from tests.cluster.waiting import wait_for
from tests.cluster.way_in import way_in

CREATE_SECONDS = 60.0
REPLICAS = 3
"""Of a partition of a safe topic; it has as many partitions too."""
SAFE = {"min.insync.replicas": "2"}


def create_topic(cluster: Cluster, name: str, replicas: list[list[int]], configs: dict[str, str] | None = None) -> None:
    """Create a topic whose replicas are where the scenario wants them, and wait until all are in sync.

    Args:
        replicas: of each partition; the first leads.
    """
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers, "log_level": 0, **way_in.library})
    topic = NewTopic(name, len(replicas), replica_assignment=replicas, config=configs or {})
    admin.create_topics([topic], operation_timeout=CREATE_SECONDS)[name].result(CREATE_SECONDS)
    cluster.await_in_sync([name])


def delete_topic(cluster: Cluster, name: str) -> None:
    """Delete a topic, and wait until no broker knows it."""
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers, "log_level": 0, **way_in.library})
    admin.delete_topics([name], operation_timeout=CREATE_SECONDS)[name].result(CREATE_SECONDS)
    wait_for(f"{name} is gone", lambda: name not in cluster.all_topics())


def create_safe_topic(cluster: Cluster, name: str) -> None:
    """Create a topic of three partitions, led by different brokers, with three replicas of which two must have each write."""
    create_topic(cluster, name, _safe_replicas(cluster), SAFE)


def _safe_replicas(cluster: Cluster) -> list[list[int]]:
    """Return brokers 1, 2, 3; 2, 3, 4; 3, 4, 5 of five, and of three each in turn."""
    ids = sorted(each.node_id for each in cluster.brokers)
    return [[ids[(first + step) % len(ids)] for step in range(REPLICAS)] for first in range(REPLICAS)]


def create_safe_topics(cluster: Cluster, names: Iterable[str]) -> None:
    """Create topics as `create_safe_topic` does, all at once."""
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers, "log_level": 0, **way_in.library})
    wanted = [NewTopic(name, REPLICAS, replica_assignment=_safe_replicas(cluster), config=SAFE) for name in names]
    for future in admin.create_topics(wanted, operation_timeout=CREATE_SECONDS).values():
        future.result(CREATE_SECONDS)
    cluster.await_in_sync([each.topic for each in wanted])
