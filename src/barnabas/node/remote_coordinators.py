"""What the coordinators of one broker ask the other brokers of its cluster.

    transaction markers         the leaders of the transactions' partitions           WriteTxnMarkers
    partitions to verify        the transaction coordinator of a producer             AddPartitionsToTxn
    hanging transactions        all transaction coordinators                          ListTransactions, DescribeTransactions
    states of share partitions  the share coordinator of a share partition            requests 83 to 87
    dead letters                the leaders of their partitions                       Produce
    ends of logs                the leaders of a share group's partitions, for lags   ListOffsets

All of them look the broker up in the metadata, and handle what this broker leads itself on the spot. Each has a connection of its own to
each other broker, made at its first request. When leaders move, what waits for the old one fails and is tried again.

A node that is a cluster of its own has none of this and does not import it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Hashable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from barnabas.coordinator.request_queues import RequestQueues, Send
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.message import Message
from barnabas.protocol.messages import ListOffsetsRequest, ListOffsetsResponse
from barnabas.protocol.partition_for import partition_for, share_coordinator_key
from barnabas.protocol.topic_names import SHARE_GROUP_STATE, TRANSACTION_STATE
from barnabas.share.remote_letters import RemoteLetters
from barnabas.transaction.remote_marker_writer import ClusterMarkerWriter
from barnabas.transaction.remote_partitions import RemotePartitions

if TYPE_CHECKING:
    from barnabas.metadata.delta import MetadataDelta
    from barnabas.metadata.image import MetadataImage
    from barnabas.share.persister import ShareStates
    from barnabas.share.state_records import SharePartitionKey
    from barnabas.transaction.marker_writer import LocalMarkerWriter

__all__ = ["RemoteCoordinators"]

LATEST = -1
NO_LEADER = -1


class Channels(Protocol):
    """Sends requests to other brokers; `node.inter_broker.InterBrokerChannels` is one."""

    async def request(self, broker_id: int, purpose: str, message: Message) -> Any: ...


class Reroutable(Protocol):
    """Something with requests that wait for other brokers."""

    def reroute(self) -> None: ...

    def close(self) -> None: ...


class _Partition(NamedTuple):
    topic: str
    partition: int


class EndOffsetRequests:
    """Partitions whose end is asked for, as items of `RequestQueues`."""

    moved = ErrorCode.NOT_LEADER_OR_FOLLOWER
    lost = ErrorCode.NETWORK_EXCEPTION

    def __init__(self, leader_of: Callable[[str, int], int]) -> None:
        self._leader_of = leader_of

    def broker_of(self, item: _Partition) -> int:
        return self._leader_of(*item)

    def subject(self, item: _Partition) -> Hashable:
        return item

    def company(self, item: _Partition) -> Hashable:
        return None

    def request(self, items: Sequence[_Partition]) -> ListOffsetsRequest:
        topics: dict[str, list[ListOffsetsRequest.ListOffsetsPartition]] = {}
        for topic, index in items:
            asked = ListOffsetsRequest.ListOffsetsPartition(partition_index=index, timestamp=LATEST)
            topics.setdefault(topic, []).append(asked)
        return ListOffsetsRequest(
            replica_id=-1,
            topics=[ListOffsetsRequest.ListOffsetsTopic(name=name, partitions=parts) for name, parts in topics.items()],
        )

    def outcomes(self, items: Sequence[_Partition], response: ListOffsetsResponse) -> list[int | KafkaError]:
        found = {
            (topic.name, partition.partition_index): KafkaError(partition.error_code)
            if partition.error_code
            else partition.offset
            for topic in response.topics
            for partition in topic.partitions
        }
        return [found.get(item, KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)) for item in items]


class RemoteCoordinators:
    """The other brokers, as the coordinators of this one see them.

    Args:
        image: returns the metadata as of now.
    """

    def __init__(
        self,
        node_id: int,
        image: Callable[[], MetadataImage],
        channels: Channels,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self._node_id = node_id
        self._image = image
        self._channels = channels
        self._loop = loop
        self._parts: list[Reroutable] = []

    def __repr__(self) -> str:
        return f"<RemoteCoordinators of={self._node_id} parts={len(self._parts)}>"

    def leader_of(self, topic: str, index: int) -> int:
        """Return the broker that leads a partition, -1 for none."""
        found = self._image().topics.partition(topic, index)
        return NO_LEADER if found is None else found.leader

    def marker_writer(self, local: LocalMarkerWriter) -> ClusterMarkerWriter:
        """Return the writer of markers in the partitions of all brokers."""
        writer = ClusterMarkerWriter(
            local,
            self._node_id,
            lambda partition: self.leader_of(*partition),
            self._send_for("transaction-markers"),
            self._loop,
        )
        self._parts.append(writer)
        return writer

    def transaction_partitions(self, partition_of: Callable[[str], int]) -> RemotePartitions:
        """Return the transaction coordinators of other brokers.

        Args:
            partition_of: returns the partition of `__transaction_state` that a transactional id belongs to.
        """
        partitions = RemotePartitions(
            self._node_id,
            lambda transactional_id: self.leader_of(TRANSACTION_STATE, partition_of(transactional_id)),
            self._send_for("add-partitions-to-txn"),
            self._loop,
        )
        self._parts.append(partitions)
        return partitions

    def share_states(self, local: ShareStates) -> ShareStates:
        """Return the share coordinators of all brokers."""
        # 40 ms, which a broker without share groups does not pay.
        from barnabas.share.remote_share_coordinator import ClusterShareCoordinator

        def broker_of(key: SharePartitionKey) -> int:
            topic = self._image().topics.by_name.get(SHARE_GROUP_STATE)
            if topic is None:
                return NO_LEADER
            return self.leader_of(SHARE_GROUP_STATE, partition_for(share_coordinator_key(*key), len(topic.partitions)))

        states = ClusterShareCoordinator(local, self._node_id, broker_of, self._send_for("share-states"), self._loop)
        self._parts.append(states)
        return states

    def letters(self, commit_timeout_ms: int) -> RemoteLetters:
        """Return the leaders of dead letters on other brokers."""
        letters = RemoteLetters(self.leader_of, commit_timeout_ms, self._send_for("dead-letters"), self._loop)
        self._parts.append(letters)
        return letters

    def requests(self, purpose: str) -> Send:
        """Return what sends requests to other brokers, on connections of this purpose."""
        return self._send_for(purpose)

    def end_offset(
        self, local: Callable[[str, int], Coroutine[Any, Any, int]]
    ) -> Callable[[str, int], Coroutine[Any, Any, int]]:
        """Return a function that returns the high watermark of a partition, here or on another broker."""
        queues: RequestQueues[_Partition, int] = RequestQueues(
            EndOffsetRequests(self.leader_of), self._send_for("end-offsets"), self._loop
        )
        self._parts.append(queues)

        async def end_offset(topic: str, index: int) -> int:
            if self.leader_of(topic, index) == self._node_id:
                return await local(topic, index)
            return await queues.ask(_Partition(topic, index))

        return end_offset

    def apply_delta(self, delta: MetadataDelta) -> None:
        """Apply a commit of the metadata log, after this broker's own coordinators."""
        if delta.topics is not None:
            for part in self._parts:
                part.reroute()

    def close(self) -> None:
        """Fail all requests without an answer."""
        for part in self._parts:
            part.close()

    def _send_for(self, purpose: str) -> Send:
        async def send(broker_id: int, message: Message) -> Any:
            return await self._channels.request(broker_id, purpose, message)

        return send
