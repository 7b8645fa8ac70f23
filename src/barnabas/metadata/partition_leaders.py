"""Choosing partition leaders when brokers are fenced and unfenced.

- When a leader is fenced, the first usable replica of the ISR, in the order of the replica list, leads.
- The last member of an ISR stays in it when it is fenced, and the partition has no leader (-1) until that member is
  unfenced: electing another replica could lose acknowledged records.
- An unclean election takes any usable replica and makes it the whole ISR; it happens only on demand, or where
  unclean.leader.election.enable is set.

Sources: Kafka's `PartitionChangeBuilder`, `ReplicationControlManager.generateLeaderAndIsrUpdates`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from barnabas.metadata.image import MetadataImage
from barnabas.metadata.record_codec import MetadataRecord
from barnabas.metadata.topics_image import NO_LEADER, PartitionRegistration, TopicImage
from barnabas.protocol import messages


def partitions_of(image: MetadataImage, broker_id: int) -> Iterator[tuple[TopicImage, int, PartitionRegistration]]:
    """Yield every partition with a replica on this broker, in topic and partition order."""
    for name in sorted(image.topics.by_name):
        topic = image.topics.by_name[name]
        for index, partition in topic.partitions.items():
            if broker_id in partition.replicas:
                yield topic, index, partition


def best_leader(partition: PartitionRegistration, usable: Callable[[int], bool]) -> int:
    """Return the first usable in-sync replica in replica order, or -1."""
    return next((r for r in partition.replicas if r in partition.isr and usable(r)), NO_LEADER)


def on_broker_gone(image: MetadataImage, broker_id: int) -> list[MetadataRecord]:
    """Return the changes when a broker is fenced: it leaves each ISR with other members, and leads nothing."""
    brokers = image.cluster.brokers

    def usable(replica: int) -> bool:
        return replica != broker_id and replica in brokers and not brokers[replica].fenced

    records: list[MetadataRecord] = []
    for topic, index, partition in partitions_of(image, broker_id):
        if broker_id not in partition.isr:
            continue
        change = messages.PartitionChangeRecord(partition_id=index, topic_id=topic.topic_id)
        rest = [replica for replica in partition.isr if replica != broker_id]
        if rest:
            change.isr = rest
        if partition.leader == broker_id:
            change.leader = best_leader(partition, usable)
        if change.isr is not None or partition.leader == broker_id:
            records.append(change)
    return records


def on_broker_back(image: MetadataImage, broker_id: int) -> list[MetadataRecord]:
    """Return the changes when a broker is unfenced: it leads the leaderless partitions whose ISR it is in."""
    records: list[MetadataRecord] = []
    for topic, index, partition in partitions_of(image, broker_id):
        if partition.leader == NO_LEADER and broker_id in partition.isr:
            records.append(
                messages.PartitionChangeRecord(partition_id=index, topic_id=topic.topic_id, leader=broker_id)
            )
    return records
