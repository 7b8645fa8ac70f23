"""Append one marker to one partition.

The group coordinator writes the markers in `__consumer_offsets`, because they settle its pending offsets; any other marker is appended
to the replica. The partitions are this broker's; `remote_marker_writer` reaches those of others.

Source: Kafka's `KafkaApis.handleWriteTxnMarkersRequest`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import NamedTuple, Protocol

from barnabas.coordinator.coordinator_log import InternalLog
from barnabas.protocol.topic_names import GROUP_METADATA
from barnabas.records.control import build_end_transaction_marker

TopicPartition = tuple[str, int]


class Marker(NamedTuple):
    """The end of a producer's transaction.

    Attributes:
        coordinator_epoch: the leader epoch of the transaction coordinator's partition.
        transaction_version: from 2 the producer epoch must be above that of the transaction's batches.
    """

    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    commit: bool
    transaction_version: int


class MarkerWriter(Protocol):
    """The partitions in which transactions end."""

    def exists(self, partition: TopicPartition) -> bool:
        """Return whether the partition exists in the metadata."""
        ...

    async def write(self, marker: Marker, partition: TopicPartition) -> None:
        """Append a marker and wait for its commit.

        Raises: KafkaError.
        """
        ...

    def drop(self, producer_id: int) -> None:
        """Fail the waiting markers of a producer: another coordinator, or another try, writes them."""
        ...


class GroupTransactions(Protocol):
    """The group coordinator's part: markers in `__consumer_offsets`."""

    def complete_transaction(self, partition: int, marker: Marker, batch: bytearray) -> asyncio.Future[None]: ...


class LocalMarkerWriter:
    """`MarkerWriter` over the replicas of this broker.

    Args:
        exists: returns whether the partition exists in the metadata.
        commit_timeout_ms: how long a marker waits for its commit; then its writer gets REQUEST_TIMED_OUT, and may write it again.
    """

    def __init__(
        self,
        replicas: InternalLog,
        groups: GroupTransactions,
        *,
        now_ms: Callable[[], int],
        exists: Callable[[TopicPartition], bool],
        commit_timeout_ms: int,
    ) -> None:
        self._replicas = replicas
        self._groups = groups
        self._now_ms = now_ms
        self._commit_timeout_ms = commit_timeout_ms
        self.exists = exists

    async def write(self, marker: Marker, partition: TopicPartition) -> None:
        topic, index = partition
        batch = build_end_transaction_marker(
            commit=marker.commit,
            coordinator_epoch=marker.coordinator_epoch,
            producer_id=marker.producer_id,
            producer_epoch=marker.producer_epoch,
            timestamp=self._now_ms(),
        )
        if topic == GROUP_METADATA:
            await self._groups.complete_transaction(index, marker, batch)
        else:
            await self._replicas.append_internal(
                topic,
                index,
                batch,
                transaction_version=marker.transaction_version,
                timeout_ms=self._commit_timeout_ms,
            )

    def drop(self, producer_id: int) -> None:
        """Do nothing: a marker is in the log as soon as it is written, and waits for its commit only."""
