"""Replicas that move to other directories of their broker: begin, and wait until no copy is under way.

The broker copies a replica while clients use it, and then puts the copy in its place. A move that has begun goes on without the
client, also after a restart of the broker.

Sources: AlterReplicaLogDirs (34), DescribeLogDirs (35); KIP-113.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping

from barnabas.client.brokers import describe_log_dirs
from barnabas.client.cluster import Cluster
from barnabas.client.cluster_metadata import TopicPartition, by_topic
from barnabas.client.outcome import outcome_of, result
from barnabas.client.wire import BlockingConnection
from barnabas.protocol import messages
from barnabas.protocol.errors import KafkaError

_FIRST_PAUSE_S = 0.05
_LONGEST_PAUSE_S = 1.0


def alter_replica_log_dirs(
    cluster: Cluster, broker_id: int, wanted: Mapping[TopicPartition, str]
) -> dict[TopicPartition, KafkaError | None]:
    """Begin to move replicas of a broker; None for each that has begun.

    Args:
        wanted: by partition a directory, as DescribeLogDirs spells it. The one where the replica is now cancels its move.
    """
    request_class = messages.AlterReplicaLogDirsRequest

    def ask(connection: BlockingConnection, batch: list[TopicPartition]) -> dict[TopicPartition, KafkaError | None]:
        directories: dict[str, list[TopicPartition]] = {}
        for at in batch:
            directories.setdefault(wanted[at], []).append(at)
        request = request_class(
            dirs=[
                request_class.AlterReplicaLogDir(
                    path=path,
                    topics=[
                        request_class.AlterReplicaLogDirTopic(name=name, partitions=indexes)
                        for name, indexes in by_topic(partitions).items()
                    ],
                )
                for path, partitions in directories.items()
            ]
        )
        return {
            TopicPartition(topic.topic_name, each.partition_index): outcome_of(each.error_code)
            for topic in connection.request(request).results
            for each in topic.partitions
        }

    return cluster.ask_each(wanted, lambda items: dict.fromkeys(items, broker_id), ask)


def await_directory_moves(
    cluster: Cluster,
    broker_id: int,
    partitions: Collection[TopicPartition],
    *,
    looked: Callable[[dict[TopicPartition, int]], object] = lambda copied: None,
    sleep: Callable[[float], None] = time.sleep,
) -> dict[TopicPartition, str]:
    """Wait until none of a broker's replicas is being copied; return the directory of each that the broker has then.

    A replica that is where it was before has not moved: somebody ended its move, or the broker gave it up.

    Args:
        looked: called after each look with the bytes copied so far, by partition that is being copied.
        sleep: pauses between two looks.

    Raises:
        KafkaError: the broker does not answer.
    """
    pause_s = _FIRST_PAUSE_S
    while True:
        found = result(describe_log_dirs(cluster, [broker_id], partitions)[broker_id])
        copied = {each.partition: each.size_in_bytes for there in found for each in there.replicas if each.is_future}
        if not copied:
            return {each.partition: there.path for there in found for each in there.replicas}
        looked(copied)
        sleep(pause_s)
        pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)
