"""Partitions with everything that decides who leads them, and why some have no leader.

Limits: a broker without DescribeTopicPartitions (before Kafka 3.7) names no eligible leader replicas; the lists are empty then.
Source: DescribeTopicPartitions (75), KIP-966.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from typing import NamedTuple

from barnabas.client.cluster import Cluster
from barnabas.client.cluster_metadata import ClusterMetadata, PartitionMetadata, TopicPartition, is_internal
from barnabas.protocol import messages
from barnabas.protocol.api_keys import ApiKey
from barnabas.words.leaderless import Leaderless, why_leaderless

_PAGE = 2000


class PartitionDescription(NamedTuple):
    """One partition.

    Attributes:
        leader: -1 if it has none.
        elr: the eligible leader replicas, which have every committed record although they are not in sync.
        last_known_elr: the last known leader of a partition that has none.
        offline: the replicas whose broker or directory is not there.
    """

    leader: int
    leader_epoch: int
    replicas: list[int]
    isr: list[int]
    elr: list[int]
    last_known_elr: list[int]
    offline: list[int]

    @property
    def why_leaderless(self) -> Leaderless | None:
        """The reason why it has no leader, and what helps; None if it has one."""
        return self.why_leaderless_among(())

    def why_leaderless_among(self, serving: Collection[int]) -> Leaderless | None:
        """Return the same, where it is known which brokers serve: one that does needs no start, but its directory back."""
        if self.leader >= 0:
            return None
        return why_leaderless(
            self.replicas, self.offline, isr=self.isr, elr=self.elr, last_known=self.last_known_elr, serving=serving
        )


class TopicDescription(NamedTuple):
    """One topic.

    Attributes:
        is_internal: as `TopicMetadata` has it.
        partitions: by index.
    """

    is_internal: bool
    partitions: dict[int, PartitionDescription]


def describe_partitions(
    cluster: Cluster, topics: Iterable[str] | None = None
) -> dict[TopicPartition, PartitionDescription]:
    """Return the partitions of topics, or of all topics; a topic that does not exist has none."""
    names = None if topics is None else sorted(topics)
    if names == []:
        return {}
    if not cluster.retry(cluster.any_connection).supports(ApiKey.DESCRIBE_TOPIC_PARTITIONS):
        return _from_metadata(cluster.retry(lambda: cluster.metadata(names)))
    return cluster.retry(lambda: _partitions_of(_pages(cluster, names or [], _PAGE)))


def describe_all_topics(
    cluster: Cluster, page: int = _PAGE, between: Callable[[], object] = lambda: None
) -> dict[str, TopicDescription]:
    """Return every topic by its name.

    Args:
        page: how many partitions one answer may have; a broker before Kafka 3.7 returns all of them.
        between: is called between two answers.
    """
    if not cluster.retry(cluster.any_connection).supports(ApiKey.DESCRIBE_TOPIC_PARTITIONS):
        metadata = cluster.retry(cluster.metadata)
        return {
            name: TopicDescription(each.is_internal, {one.partition: _of_metadata(one) for one in each.partitions})
            for name, each in metadata.topics.items()
        }
    return cluster.retry(lambda: _topics_of(_pages(cluster, [], page), between))


def leaderless_partitions(cluster: Cluster) -> dict[TopicPartition, Leaderless]:
    """Return the partitions without a leader, with the reason and what helps."""
    described = describe_partitions(cluster).items()
    return {at: why for at, partition in described if (why := partition.why_leaderless) is not None}


_Topic = messages.DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponseTopic


def _pages(cluster: Cluster, names: list[str], page: int) -> Iterator[list[_Topic]]:
    request_class = messages.DescribeTopicPartitionsRequest
    cursor: messages.DescribeTopicPartitionsRequest.Cursor | None = None
    while True:
        # Those before the cursor have been answered.
        left = [name for name in names if cursor is None or name >= cursor.topic_name]
        request = request_class(
            topics=[request_class.TopicRequest(name=name) for name in left],
            response_partition_limit=page,
            cursor=cursor,
        )
        response: messages.DescribeTopicPartitionsResponse = cluster.any_connection().request(request)
        yield response.topics
        following = response.next_cursor
        if following is None:
            return
        cursor = request_class.Cursor(topic_name=following.topic_name, partition_index=following.partition_index)


def _partitions_of(pages: Iterator[list[_Topic]]) -> dict[TopicPartition, PartitionDescription]:
    return {
        TopicPartition(topic.name or "", each.partition_index): _described(each)
        for topics in pages
        for topic in topics
        for each in topic.partitions
    }


def _topics_of(pages: Iterator[list[_Topic]], between: Callable[[], object]) -> dict[str, TopicDescription]:
    found: dict[str, TopicDescription] = {}
    for number, topics in enumerate(pages):
        if number:
            between()
        for topic in topics:
            name = topic.name or ""
            # A page may end within a topic.
            of_topic = found.setdefault(name, TopicDescription(is_internal(name, topic.is_internal), {}))
            of_topic.partitions.update((each.partition_index, _described(each)) for each in topic.partitions)
    return found


def _described(
    partition: messages.DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponsePartition,
) -> PartitionDescription:
    return PartitionDescription(
        partition.leader_id,
        partition.leader_epoch,
        list(partition.replica_nodes),
        list(partition.isr_nodes),
        list(partition.eligible_leader_replicas or ()),
        list(partition.last_known_elr or ()),
        list(partition.offline_replicas),
    )


def _from_metadata(metadata: ClusterMetadata) -> dict[TopicPartition, PartitionDescription]:
    return {
        TopicPartition(topic.name, each.partition): _of_metadata(each)
        for topic in metadata.topics.values()
        for each in topic.partitions
    }


def _of_metadata(found: PartitionMetadata) -> PartitionDescription:
    return PartitionDescription(found.leader, found.leader_epoch, found.replicas, found.isr, [], [], found.offline)
