"""Append markers to partitions that other brokers lead.

    TransactionMarkers ──► ClusterMarkerWriter ──► this broker leads the partition: LocalMarkerWriter, in the same turn of the loop
                                             └──► another one does: WriteTxnMarkers, in the queue of that broker

The leader is looked up in the metadata at each try. A marker whose leader moves while it waits, or while its request is under way, fails
at once, and `TransactionMarkers` tries again with the new leader. A marker may therefore be appended twice, which has no effect on
readers. The marker carries the coordinator's leader epoch, by which a partition rejects the markers of a coordinator that was replaced.

Sources: Kafka classes `TransactionMarkerChannelManager`, `TransactionMarkerRequestCompletionHandler`; KIP-98.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import NamedTuple

from barnabas.coordinator.request_queues import RequestQueues, Send
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages import WriteTxnMarkersRequest, WriteTxnMarkersResponse
from barnabas.steps import Loop
from barnabas.transaction.marker_writer import LocalMarkerWriter, Marker, TopicPartition

__all__ = ["ClusterMarkerWriter", "MarkerRequests"]

LeaderOf = Callable[[TopicPartition], int]
"""Returns the broker that leads a partition by the metadata as of now, -1 for none."""

_Topic = WriteTxnMarkersRequest.WritableTxnMarkerTopic


class _Item(NamedTuple):
    marker: Marker
    partition: TopicPartition


class MarkerRequests:
    """Markers as items of `RequestQueues`."""

    moved = ErrorCode.NOT_LEADER_OR_FOLLOWER
    lost = ErrorCode.NETWORK_EXCEPTION

    def __init__(self, leader_of: LeaderOf) -> None:
        self._leader_of = leader_of

    def broker_of(self, item: _Item) -> int:
        return self._leader_of(item.partition)

    def subject(self, item: _Item) -> Hashable:
        return item.marker.producer_id, item.partition

    def company(self, item: _Item) -> Hashable:
        return None

    def request(self, items: Sequence[_Item]) -> WriteTxnMarkersRequest:
        by_marker: dict[Marker, dict[str, list[int]]] = {}
        for marker, (topic, index) in items:
            by_marker.setdefault(marker, {}).setdefault(topic, []).append(index)
        return WriteTxnMarkersRequest(
            markers=[
                WriteTxnMarkersRequest.WritableTxnMarker(
                    producer_id=marker.producer_id,
                    producer_epoch=marker.producer_epoch,
                    transaction_result=marker.commit,
                    topics=[_Topic(name=name, partition_indexes=indexes) for name, indexes in topics.items()],
                    coordinator_epoch=marker.coordinator_epoch,
                    transaction_version=marker.transaction_version,
                )
                for marker, topics in by_marker.items()
            ]
        )

    def outcomes(self, items: Sequence[_Item], response: WriteTxnMarkersResponse) -> list[KafkaError | None]:
        codes = {
            (marker.producer_id, (topic.name, partition.partition_index)): partition.error_code
            for marker in response.markers
            for topic in marker.topics
            for partition in topic.partitions
        }
        found = (
            codes.get((marker.producer_id, partition), ErrorCode.UNKNOWN_SERVER_ERROR) for marker, partition in items
        )
        return [KafkaError(code) if code else None for code in found]


class ClusterMarkerWriter:
    """`MarkerWriter` over the partitions of all brokers.

    Args:
        local: appends to the partitions that this broker leads.
        send: sends a request to another broker.
    """

    def __init__(self, local: LocalMarkerWriter, node_id: int, leader_of: LeaderOf, send: Send, loop: Loop) -> None:
        self._local = local
        self._node_id = node_id
        self._leader_of = leader_of
        self._queues: RequestQueues[_Item, None] = RequestQueues(MarkerRequests(leader_of), send, loop)
        self.exists = local.exists

    def __repr__(self) -> str:
        return f"<ClusterMarkerWriter {self._queues!r}>"

    async def write(self, marker: Marker, partition: TopicPartition) -> None:
        if self._leader_of(partition) == self._node_id:
            await self._local.write(marker, partition)
        else:
            await self._queues.ask(_Item(marker, partition))

    def drop(self, producer_id: int) -> None:
        self._queues.drop(lambda item: item.marker.producer_id == producer_id)

    def reroute(self) -> None:
        """Fail the markers whose partition has another leader by the metadata as of now, so that they are tried again there."""
        self._queues.reroute()

    def close(self) -> None:
        """Fail the markers without an answer."""
        self._queues.close()
