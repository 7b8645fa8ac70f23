"""Appending one marker to one partition: the seam between transactions and the partitions they end in (control plane).

A marker in `__consumer_offsets` goes through the group coordinator, whose pending offsets it settles; any other is appended to the
replica. Today the partitions are this node's; later others are reached by requests.

Source: Kafka's `KafkaApis.handleWriteTxnMarkersRequest`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

from barnabas.coordinator.coordinator_log import InternalLog
from barnabas.protocol.errors import KafkaError
from barnabas.records.control import build_end_transaction_marker

TopicPartition = tuple[str, int]


class Marker(NamedTuple):
    """What a marker says.

    Attributes:
        coordinator_epoch: the leader epoch of the transaction coordinator's partition.
        transaction_version: from 2 on the epoch must be above that of the transaction's batches.
    """

    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    commit: bool
    transaction_version: int


class MarkerWriter(Protocol):
    """The partitions, as whoever ends transactions sees them."""

    def exists(self, partition: TopicPartition) -> bool:
        """Whether the metadata knows the partition."""
        ...

    def write(self, marker: Marker, partition: TopicPartition) -> asyncio.Future[Any]:
        """Append a marker.

        Returns: a future that is done when the marker is committed, or fails with KafkaError.
        """
        ...


class GroupTransactions(Protocol):
    """What the group coordinator does with markers in `__consumer_offsets`."""

    def complete_transaction(self, partition: int, marker: Marker, batch: bytearray) -> asyncio.Future[None]: ...


class LocalMarkerWriter:
    """`MarkerWriter` over the replicas of this broker.

    Args:
        offsets_topic: the topic of the group coordinator.
        exists: whether the metadata knows a partition.
    """

    def __init__(
        self,
        replicas: InternalLog,
        groups: GroupTransactions,
        offsets_topic: str,
        *,
        create_future: Callable[[], asyncio.Future[Any]],
        now_ms: Callable[[], int],
        exists: Callable[[TopicPartition], bool],
    ) -> None:
        self._replicas = replicas
        self._groups = groups
        self._offsets_topic = offsets_topic
        self._create_future = create_future
        self._now_ms = now_ms
        self.exists = exists

    def write(self, marker: Marker, partition: TopicPartition) -> asyncio.Future[Any]:
        topic, index = partition
        batch = build_end_transaction_marker(
            commit=marker.commit,
            coordinator_epoch=marker.coordinator_epoch,
            producer_id=marker.producer_id,
            producer_epoch=marker.producer_epoch,
            timestamp=self._now_ms(),
        )
        if topic == self._offsets_topic:
            return self._groups.complete_transaction(index, marker, batch)
        try:
            return self._replicas.append_internal(topic, index, batch, transaction_version=marker.transaction_version)
        except KafkaError as error:
            refused = self._create_future()
            refused.set_exception(error)
            return refused
