"""The time of the record at an offset.

Kafka finds offsets by time, and not the reverse. So this fetches the batch at the offset, the smallest answer that a
broker gives, and reads its header. Within a batch, the time is interpolated between the first and the last record.

Sources: Fetch (1); KIP-74 (a fetch returns at least one batch, whatever its limit).
"""

from __future__ import annotations

from collections.abc import Mapping

from barnabas.client.cluster import Cluster
from barnabas.client.cluster_metadata import TopicPartition
from barnabas.client.partition_records import fetch_once
from barnabas.client.wire import BlockingConnection
from barnabas.protocol.errors import KafkaError
from barnabas.records.record_batch import BATCH_OVERHEAD, BatchHeader, read_header


def record_times(
    cluster: Cluster, offsets: Mapping[TopicPartition, int]
) -> dict[TopicPartition, int | KafkaError | None]:
    """Return the timestamp of the first record at or after each offset, in milliseconds since 1970.

    Returns:
        None for a partition that has no such record, or whose record has no timestamp.
    """

    def ask(
        connection: BlockingConnection, batch: list[TopicPartition]
    ) -> dict[TopicPartition, int | KafkaError | None]:
        return {each: _ask_one(connection, each, offsets[each]) for each in batch}

    return cluster.ask_each(offsets, cluster.leaders, ask)


def _ask_one(connection: BlockingConnection, where: TopicPartition, offset: int) -> int | KafkaError | None:
    """Ask about one partition: only the first of a response has a batch that is larger than the limit."""
    found = fetch_once(connection, where, offset, max_bytes=1, max_wait_ms=0)
    if isinstance(found, KafkaError):
        return found
    return None if len(found) < BATCH_OVERHEAD else _time_at(read_header(found), offset)


def _time_at(header: BatchHeader, offset: int) -> int | None:
    if header.max_timestamp < 0:
        return None
    if header.is_log_append_time or header.last_offset_delta == 0 or header.base_timestamp < 0:
        return header.max_timestamp
    part = min(1.0, max(0.0, (offset - header.base_offset) / header.last_offset_delta))
    return round(header.base_timestamp + part * (header.max_timestamp - header.base_timestamp))
