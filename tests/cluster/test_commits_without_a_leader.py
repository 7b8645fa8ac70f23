"""A transaction commits while one of its partitions has no leader: its marker is written when there is one again.

Apache Kafka 4.3.1 takes such a partition for one that was deleted, and leaves the marker out (KAFKA-20734): the transaction counts as
complete, and stays open in the partition for ever. barnabas asks again until the partition has a leader.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from confluent_kafka import Producer

from barnabas.client.admin import Admin, TopicPartition
from barnabas.client.offsets import LATEST, READ_COMMITTED, READ_UNCOMMITTED, OffsetAndTimestamp
from barnabas.client.transactions import TransactionDescription
from tests.cluster.cluster import Cluster
from tests.cluster.node_process import KINDS
from tests.cluster.topics import create_topic
from tests.cluster.waiting import wait_for

pytestmark = [pytest.mark.conform, pytest.mark.long, pytest.mark.timeout(600)]

APART = TopicPartition("apart", 0)
TRANSACTIONAL_ID = "writer"
CALL_SECONDS = 120


@pytest.mark.parametrize("kind", list(KINDS))
def test_a_commit_while_a_partition_has_no_leader(tmp_path: Path, kind: str) -> None:
    with Cluster(kind, tmp_path) as cluster:
        create_topic(cluster, APART.topic, [[3]])
        settings = {"bootstrap.servers": cluster.bootstrap_servers, "transactional.id": TRANSACTIONAL_ID}
        producer = Producer(settings)
        producer.init_transactions(CALL_SECONDS)
        producer.begin_transaction()
        producer.produce(APART.topic, "acknowledged", partition=APART.partition)
        assert producer.flush(CALL_SECONDS) == 0
        cluster[3].kill()
        cluster.await_partition(APART.topic, APART.partition, lambda found: found.leader == -1)
        producer.commit_transaction(CALL_SECONDS)
        if kind == "apache-kafka":
            # It leaves the marker out before the partition has a leader again.
            wait_for("the transaction counts as complete", lambda: _state(cluster) == "CompleteCommit")
        cluster.start_again(cluster[3])
        cluster.leader_of(APART.topic, APART.partition)
        wait_for("the transaction counts as complete", lambda: _state(cluster) == "CompleteCommit")
        stable, end = (_end(cluster, level) for level in (READ_COMMITTED, READ_UNCOMMITTED))
        assert (stable, end) == ((0, 1) if kind == "apache-kafka" else (2, 2))


def _state(cluster: Cluster) -> str:
    with Admin(cluster.bootstrap_servers) as admin:
        found = admin.describe_transactions([TRANSACTIONAL_ID])[TRANSACTIONAL_ID]
    return found.state if isinstance(found, TransactionDescription) else ""


def _end(cluster: Cluster, isolation_level: int) -> int:
    """Return where readers of this level find the partition's end."""

    def find() -> OffsetAndTimestamp | None:
        with Admin(cluster.bootstrap_servers) as admin:
            found = admin.list_offsets({APART: LATEST}, isolation_level=isolation_level)[APART]
        return found if isinstance(found, OffsetAndTimestamp) else None

    return wait_for(f"{APART} has an end", find).offset
