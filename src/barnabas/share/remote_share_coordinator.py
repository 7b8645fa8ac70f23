"""The share coordinators of the whole cluster, for this broker's persister.

    StatePersister ──► ClusterShareCoordinator ──► this broker leads the key's partition: ShareCoordinator
                                             └──► another one does: requests 83 to 87, in the queues of that broker

There is a queue for each broker and kind of request. A request belongs to one group and carries all its share partitions that wait. All
five can be repeated, so what has no answer, or belongs to another coordinator by now, fails with COORDINATOR_NOT_AVAILABLE and the
persister tries again.

Source: Kafka's `PersisterStateManager`; KIP-932.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple

from barnabas.coordinator.request_queues import RequestQueues, Send
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages import (
    DeleteShareGroupStateRequest,
    InitializeShareGroupStateRequest,
    ReadShareGroupStateRequest,
    ReadShareGroupStateSummaryRequest,
    WriteShareGroupStateRequest,
)
from barnabas.share.persister import ShareStates
from barnabas.share.share_coordinator_shard import StateSummary, StateWrite
from barnabas.share.state_records import (
    UNINITIALIZED_DELIVERY_COMPLETE_COUNT,
    ShareGroupOffset,
    SharePartitionKey,
    state_batches,
)
from barnabas.steps import Loop

__all__ = ["ClusterShareCoordinator", "StateRequests"]

BrokerOf = Callable[[SharePartitionKey], int]
"""Returns the broker that coordinates a share partition by the metadata as of now, -1 for none."""


class _Item(NamedTuple):
    """One share partition's part of a request, without its index."""

    key: SharePartitionKey
    fields: dict[str, Any]


class StateRequests:
    """Share partitions as items of `RequestQueues`, for one kind of request.

    Args:
        request: the request's class, such as `ReadShareGroupStateRequest`.
        topic: its class for a topic.
    """

    moved = ErrorCode.COORDINATOR_NOT_AVAILABLE
    lost = ErrorCode.COORDINATOR_NOT_AVAILABLE

    def __init__(self, broker_of: BrokerOf, request: Any, topic: Any) -> None:
        self._broker_of = broker_of
        self._request = request
        self._topic = topic

    def broker_of(self, item: _Item) -> int:
        return self._broker_of(item.key)

    def subject(self, item: _Item) -> Hashable:
        return item.key

    def company(self, item: _Item) -> Hashable:
        return item.key.group_id

    def request(self, items: Sequence[_Item]) -> Any:
        topics: dict[bytes, list[Any]] = {}
        for key, fields in items:
            part = self._request.PartitionData(partition=key.partition, **fields)
            topics.setdefault(key.topic_id, []).append(part)
        return self._request(
            group_id=items[0].key.group_id,
            topics=[self._topic(topic_id=topic_id, partitions=parts) for topic_id, parts in topics.items()],
        )

    def outcomes(self, items: Sequence[_Item], response: Any) -> list[Any]:
        results = {
            (bytes(topic.topic_id), result.partition): result
            for topic in response.results
            for result in topic.partitions
        }
        return [_outcome(results.get((bytes(key.topic_id), key.partition))) for key, _ in items]


def _outcome(result: Any) -> Any:
    if result is None:
        return KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
    return KafkaError(result.error_code, result.error_message) if result.error_code else result


class ClusterShareCoordinator:
    """`ShareStates` of all brokers.

    Args:
        local: this broker's share coordinator.
        send: sends a request to another broker.
    """

    def __init__(self, local: ShareStates, node_id: int, broker_of: BrokerOf, send: Send, loop: Loop) -> None:
        self._local = local
        self._node_id = node_id
        self._broker_of = broker_of

        def queues(request: Any, topic: Any) -> RequestQueues[_Item, Any]:
            return RequestQueues(StateRequests(broker_of, request, topic), send, loop)

        self._initialize = queues(
            InitializeShareGroupStateRequest, InitializeShareGroupStateRequest.InitializeStateData
        )
        self._read = queues(ReadShareGroupStateRequest, ReadShareGroupStateRequest.ReadStateData)
        self._write = queues(WriteShareGroupStateRequest, WriteShareGroupStateRequest.WriteStateData)
        self._summary = queues(
            ReadShareGroupStateSummaryRequest, ReadShareGroupStateSummaryRequest.ReadStateSummaryData
        )
        self._delete = queues(DeleteShareGroupStateRequest, DeleteShareGroupStateRequest.DeleteStateData)

    def __repr__(self) -> str:
        return f"<ClusterShareCoordinator {self._local!r}>"

    def _is_local(self, key: SharePartitionKey) -> bool:
        return self._broker_of(key) == self._node_id

    async def initialize(self, key: SharePartitionKey, state_epoch: int, start_offset: int) -> None:
        if self._is_local(key):
            return await self._local.initialize(key, state_epoch, start_offset)
        await self._initialize.ask(_Item(key, {"state_epoch": state_epoch, "start_offset": start_offset}))

    async def read(self, key: SharePartitionKey, leader_epoch: int) -> ShareGroupOffset:
        if self._is_local(key):
            return await self._local.read(key, leader_epoch)
        found = await self._read.ask(_Item(key, {"leader_epoch": leader_epoch}))
        # The leader does not use the fields that the response lacks.
        return ShareGroupOffset(
            snapshot_epoch=0,
            state_epoch=found.state_epoch,
            leader_epoch=leader_epoch,
            start_offset=found.start_offset,
            delivery_complete_count=UNINITIALIZED_DELIVERY_COMPLETE_COUNT,
            state_batches=state_batches(found.state_batches),
        )

    async def write(self, key: SharePartitionKey, write: StateWrite) -> None:
        if self._is_local(key):
            return await self._local.write(key, write)
        fields = {
            "state_epoch": write.state_epoch,
            "leader_epoch": write.leader_epoch,
            "start_offset": write.start_offset,
            "delivery_complete_count": write.delivery_complete_count,
            "state_batches": [WriteShareGroupStateRequest.StateBatch(**batch._asdict()) for batch in write.batches],
        }
        await self._write.ask(_Item(key, fields))

    async def summary(self, key: SharePartitionKey) -> StateSummary:
        if self._is_local(key):
            return await self._local.summary(key)
        found = await self._summary.ask(_Item(key, {"leader_epoch": -1}))
        return StateSummary(found.state_epoch, found.leader_epoch, found.start_offset, found.delivery_complete_count)

    async def delete(self, key: SharePartitionKey) -> None:
        if self._is_local(key):
            return await self._local.delete(key)
        await self._delete.ask(_Item(key, {}))

    def reroute(self) -> None:
        """Fail what waits for a broker that is no longer the coordinator."""
        for queues in (self._initialize, self._read, self._write, self._summary, self._delete):
            queues.reroute()

    def close(self) -> None:
        """Fail what has no answer."""
        for queues in (self._initialize, self._read, self._write, self._summary, self._delete):
            queues.close()
