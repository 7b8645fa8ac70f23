"""A client that knows one node reaches the whole cluster: partitions that live on one broker each, and groups of any coordinator."""

from __future__ import annotations

from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from tests.cluster.cluster import Cluster
from tests.cluster.load import QUICK
from tests.cluster.records import read_partition
from tests.cluster.topics import create_topic, delete_topic
from tests.cluster.waiting import wait_for
from tests.conform.tool_process import ToolProcess

TOPIC = "one-copy"
RECORDS = 20
ANSWER_SECONDS = 60.0


def play(cluster: Cluster, _: ToolProcess) -> None:
    ids = [node.node_id for node in cluster.brokers]
    create_topic(cluster, TOPIC, [[each] for each in ids])
    for node in cluster.brokers:
        listed = AdminClient({"bootstrap.servers": node.bootstrap_servers, "log_level": 0}).list_topics(
            TOPIC, ANSWER_SECONDS
        )
        assert sorted(listed.brokers) == ids
        leaders = {index: each.leader for index, each in listed.topics[TOPIC].partitions.items()}
        assert leaders == dict(enumerate(ids)), f"node {node.node_id} says that {leaders} lead"
    expected: dict[int, list[bytes]] = {index: [] for index in range(len(ids))}
    for node in cluster.brokers:
        failed = produce(node.bootstrap_servers, f"from {node.node_id}", expected)
        assert not failed, f"through node {node.node_id}: {failed[:3]}"
    for node in cluster.brokers:
        for index, values in expected.items():
            there = [value for _, value in read_partition(node.bootstrap_servers, TOPIC, index)]
            assert there == values, f"through node {node.node_id}, {TOPIC}-{index} has {there}"
    committed = {group: commit(cluster, number, group) for number, group in enumerate(groups_of(cluster))}
    for node in cluster.brokers:
        for group, offset in committed.items():
            found = committed_offset(node.bootstrap_servers, group)
            assert found == offset, f"through node {node.node_id}, {group} has {found} instead of {offset}"
    # A later scenario takes a disk away: a partition whose only copy was there would wait for an operator.
    delete_topic(cluster, TOPIC)


def produce(bootstrap_servers: str, name: str, expected: dict[int, list[bytes]]) -> list[str]:
    """Send to every partition through one node, and return the errors."""
    failed: list[str] = []
    producer = Producer({"bootstrap.servers": bootstrap_servers, "acks": "all", "enable.idempotence": True, **QUICK})
    for number in range(RECORDS):
        for index, values in expected.items():
            value = f"{name}: {number}".encode()
            producer.produce(
                TOPIC, value, partition=index, on_delivery=lambda error, _: failed.append(str(error)) if error else None
            )
            values.append(value)
    assert not producer.flush(ANSWER_SECONDS)
    return failed


def groups_of(cluster: Cluster) -> list[str]:
    """Return the names of groups, so many that every broker is the coordinator of one."""
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers, "log_level": 0})
    wanted = {node.node_id for node in cluster.brokers}
    found: dict[int, str] = {}

    def ask() -> bool:
        names = [f"group-{number}" for number in range(24)]
        described = admin.describe_consumer_groups(names, request_timeout=ANSWER_SECONDS)
        for name, future in described.items():
            if future.exception(ANSWER_SECONDS) is None:
                found.setdefault(future.result().coordinator.id, name)
        return set(found) >= wanted

    wait_for("each broker is the coordinator of a group", ask)
    return list(found.values())


def commit(cluster: Cluster, number: int, group: str) -> int:
    """Read as a member of a group through one node, commit, and return the offset that was committed."""
    node = cluster.brokers[number % len(cluster.brokers)]
    consumer = Consumer({
        "bootstrap.servers": node.bootstrap_servers, "group.id": group, "auto.offset.reset": "earliest",
        "enable.auto.commit": False, **QUICK,
    })  # fmt: skip
    try:
        consumer.subscribe([TOPIC])
        first = wait_for(f"{group} reads", lambda: consumer.poll(0.5))
        assert first.error() is None, first.error()
        done = consumer.commit(offsets=[TopicPartition(TOPIC, 0, number + 1)], asynchronous=False)
        assert done[0].error is None, done[0].error
    finally:
        consumer.close()
    return number + 1


def committed_offset(bootstrap_servers: str, group: str) -> int:
    """Return the offset that a group has committed in partition 0."""
    admin = AdminClient({"bootstrap.servers": bootstrap_servers, "log_level": 0})
    asked = [ConsumerGroupTopicPartitions(group, [TopicPartition(TOPIC, 0)])]
    answer = admin.list_consumer_group_offsets(asked, request_timeout=ANSWER_SECONDS)[group].result(ANSWER_SECONDS)
    return int(answer.topic_partitions[0].offset)
