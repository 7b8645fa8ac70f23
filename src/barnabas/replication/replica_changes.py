"""The changes of a broker's replicas by a delta of the metadata, partition by partition.

    deleted topics ──► changed topics ──► brokers ──► settings

- Deletions come first: a topic that was created again under its old name begins when the old one is gone.
- Each step changes one partition. What a request sees between two steps is valid.

Source: Kafka's `ReplicaManager.applyDelta`.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from barnabas.protocol.errors import KafkaError
from barnabas.protocol.primitives import Uuid
from barnabas.replication.hosted_topic import HostedTopic
from barnabas.replication.partition import Partition
from barnabas.turns import REPLICA, pace

if TYPE_CHECKING:
    from barnabas.metadata.delta import MetadataDelta
    from barnabas.metadata.image import MetadataImage
    from barnabas.metadata.partition_registration import PartitionRegistration
    from barnabas.metadata.topics_image import TopicDelta
    from barnabas.replication.replica_manager import ReplicaManager

__all__ = ["apply_delta"]

logger = logging.getLogger(__name__)

TOPIC_RESOURCE = 2
BROKER_RESOURCE = 4


async def apply_delta(replicas: ReplicaManager, delta: MetadataDelta, image: MetadataImage) -> None:
    """Apply committed metadata: create, change and delete replicas, and pass on new settings.

    The loop has turns meanwhile; a partition that is not reached yet is as it was before, but `image` is new.
    """
    replicas.image = image
    for _ in _changes(replicas, delta):
        await pace(REPLICA)
        if replicas.is_closed:
            return


def _changes(replicas: ReplicaManager, delta: MetadataDelta) -> Iterator[None]:
    """Apply a delta to the replicas; yield after each partition, and after a topic that has none here."""
    if delta.topics is not None:
        for topic_id in delta.topics.deleted:
            yield from _delete_topic(replicas, topic_id)
        for changed in delta.topics.changed.values():
            yield from _change_topic(replicas, changed)
    if delta.cluster is not None:
        for key in list(replicas.delayed_deletions.watchers):
            replicas.delayed_deletions.notify(key)  # Nobody waits any longer for a broker that is gone.
    if replicas.replicated_partitions is not None:
        replicas.replicated_partitions.delta_applied(brokers_changed=delta.cluster is not None)
    if delta.configs is not None:
        for topic in _reconfigured(replicas, delta.configs.changed):
            yield from _config_changed(replicas, topic)


def _change_topic(replicas: ReplicaManager, changed: TopicDelta) -> Iterator[None]:
    topic = replicas.topics_by_id.get(changed.topic_id)
    if topic is None:
        topic = HostedTopic(changed.name, Uuid(changed.topic_id), replicas.config_of)
        replicas.topics[topic.name] = replicas.topics_by_id[topic.topic_id] = topic
    for index in sorted(changed.partition_changes):
        _change_partition(replicas, topic, index, changed.partition_changes[index])
        yield


def _change_partition(
    replicas: ReplicaManager, topic: HostedTopic, index: int, registration: PartitionRegistration
) -> None:
    partition = topic.partitions.get(index)
    if replicas.node_id not in registration.replicas:
        if partition is not None:
            _delete_partition(replicas, topic, partition)
        return
    if partition is None:
        partition = topic.partitions[index] = Partition(topic, index, replicas.node_id, replicas)
    if replicas.place is not None and partition.lost is None:
        replicas.place(partition, registration)
    partition.update(registration)
    replicas.replicate(partition)
    replicas.notify_changed(partition)


def _delete_topic(replicas: ReplicaManager, topic_id: bytes) -> Iterator[None]:
    topic = replicas.topics_by_id.pop(topic_id, None)
    if topic is None:
        return
    replicas.departed_traffic.add(topic.traffic)
    if replicas.topics.get(topic.name) is topic:
        del replicas.topics[topic.name]
    if not topic.partitions:
        yield
    for partition in list(topic.partitions.values()):
        _delete_partition(replicas, topic, partition)
        yield


def _delete_partition(replicas: ReplicaManager, topic: HostedTopic, partition: Partition) -> None:
    del topic.partitions[partition.index]
    partition.is_deleted = True
    partition.is_leader = False
    if replicas.replicated_partitions is not None:
        replicas.replicated_partitions.gone(partition)
    try:
        replicas.log_manager.delete(topic.name, partition.index)
    except KafkaError as error:
        # The replica is deleted all the same; the next start sets its files aside.
        logger.error("%s-%d: %s", topic.name, partition.index, error.message)
    replicas.notify_changed(partition)


def _reconfigured(replicas: ReplicaManager, changed: Iterable[tuple[int, str]]) -> Iterator[HostedTopic]:
    """Yield the topics whose settings may have changed."""
    for kind, name in changed:
        if kind == TOPIC_RESOURCE and name in replicas.topics:
            yield replicas.topics[name]
        elif kind == BROKER_RESOURCE:
            yield from list(replicas.topics.values())


def _config_changed(replicas: ReplicaManager, topic: HostedTopic) -> Iterator[None]:
    topic.config_changed()
    if not topic.partitions:
        yield
    for partition in list(topic.partitions.values()):
        partition.config_changed()
        replicas.notify_changed(partition)  # A smaller min.insync.replicas may have moved the high watermark.
        yield
