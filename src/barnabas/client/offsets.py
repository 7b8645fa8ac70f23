"""Offsets of partitions: look up by position or time, delete the records before one.

Sources: ListOffsets (2), DeleteRecords (21); KIP-79, KIP-107, KIP-734 (maximum timestamp), KIP-405 (tiers).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from barnabas.client.cluster import Cluster
from barnabas.client.cluster_metadata import TopicPartition, by_topic
from barnabas.client.outcome import outcome_of
from barnabas.client.wire import BlockingConnection
from barnabas.protocol import messages
from barnabas.protocol.errors import ErrorCode, KafkaError, error_for

LATEST = -1
EARLIEST = -2
MAX_TIMESTAMP = -3
EARLIEST_LOCAL = -4
LATEST_TIERED = -5
EARLIEST_PENDING_UPLOAD = -6

_NEEDS_VERSION = {MAX_TIMESTAMP: 7, EARLIEST_LOCAL: 8, LATEST_TIERED: 9, EARLIEST_PENDING_UPLOAD: 11}

READ_UNCOMMITTED = 0
READ_COMMITTED = 1


class OffsetAndTimestamp(NamedTuple):
    """A position. Offset -1 means that no record is that late; an unknown timestamp or epoch is -1."""

    offset: int
    timestamp: int
    leader_epoch: int


def list_offsets(
    cluster: Cluster, timestamps: Mapping[TopicPartition, int], *, isolation_level: int = READ_UNCOMMITTED
) -> dict[TopicPartition, OffsetAndTimestamp | KafkaError]:
    """Look up a position in each partition.

    Args:
        timestamps: epoch milliseconds (the first record at or after it), or EARLIEST, LATEST, MAX_TIMESTAMP, ….
        isolation_level: READ_COMMITTED makes LATEST the last stable offset.
    """
    request_class = messages.ListOffsetsRequest

    def ask(
        connection: BlockingConnection, batch: list[TopicPartition]
    ) -> dict[TopicPartition, OffsetAndTimestamp | KafkaError]:
        answers: dict[TopicPartition, OffsetAndTimestamp | KafkaError] = {}
        request = request_class(replica_id=-1, isolation_level=isolation_level, timeout_ms=cluster.timeout_ms)
        version = connection.version_for(request)
        topics: dict[str, list[messages.ListOffsetsRequest.ListOffsetsPartition]] = {}
        for each in batch:
            timestamp = timestamps[each]
            if version < _NEEDS_VERSION.get(timestamp, 0):
                answers[each] = error_for(
                    ErrorCode.UNSUPPORTED_VERSION, f"the broker does not know the position {timestamp}"
                )
                continue
            topics.setdefault(each.topic, []).append(
                request_class.ListOffsetsPartition(partition_index=each.partition, timestamp=timestamp)
            )
        request.topics = [
            request_class.ListOffsetsTopic(name=name, partitions=partitions) for name, partitions in topics.items()
        ]
        if topics:
            for topic in connection.request(request, version=version).topics:
                for found in topic.partitions:
                    answers[TopicPartition(topic.name, found.partition_index)] = outcome_of(
                        found.error_code
                    ) or OffsetAndTimestamp(found.offset, found.timestamp, found.leader_epoch)
        return answers

    return cluster.ask_each(timestamps, cluster.leaders, ask)


def delete_records(cluster: Cluster, before: Mapping[TopicPartition, int]) -> dict[TopicPartition, int | KafkaError]:
    """Delete the records before an offset (-1: the high watermark); return each partition's new log start offset."""
    request_class = messages.DeleteRecordsRequest

    def ask(connection: BlockingConnection, batch: list[TopicPartition]) -> dict[TopicPartition, int | KafkaError]:
        request = request_class(
            topics=[
                request_class.DeleteRecordsTopic(
                    name=name,
                    partitions=[
                        request_class.DeleteRecordsPartition(
                            partition_index=index, offset=before[TopicPartition(name, index)]
                        )
                        for index in indexes
                    ],
                )
                for name, indexes in by_topic(batch).items()
            ],
            timeout_ms=cluster.timeout_ms,
        )
        answers: dict[TopicPartition, int | KafkaError] = {}
        for topic in connection.request(request).topics:
            for found in topic.partitions:
                error = outcome_of(found.error_code)
                answers[TopicPartition(topic.name, found.partition_index)] = error or found.low_watermark
        return answers

    return cluster.ask_each(before, cluster.leaders, ask)
