"""Verify with a transaction coordinator on another broker that transactions include partitions, or add them.

    add_or_verify ──► RemotePartitions ──► AddPartitionsToTxn, in the queue of the coordinator's broker

A request carries the transactions of many producers, one entry for each transactional id. While the metadata has no coordinator the
answer is COORDINATOR_NOT_AVAILABLE, and NETWORK_EXCEPTION if the coordinator's broker does not answer. Producers retry on both.

Kafka keeps only the last of several requests of one producer that wait for the same broker. Here the second one waits for the first
one's answer instead: a producer may send records and offsets at the same time.

Source: Kafka class `AddPartitionsToTxnManager`; KIP-890.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from barnabas.coordinator.request_queues import RequestQueues, Send
from barnabas.protocol.errors import ErrorCode, KafkaError, known_code
from barnabas.protocol.messages import AddPartitionsToTxnRequest, AddPartitionsToTxnResponse
from barnabas.steps import Loop

if TYPE_CHECKING:
    from barnabas.transaction.transaction_metadata import TopicPartition

__all__ = ["AddPartitions", "AddPartitionsRequests", "RemotePartitions"]

Codes = dict["TopicPartition", ErrorCode]


class AddPartitions(NamedTuple):
    """The partitions of one transaction to add, or only to verify."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    partitions: frozenset[TopicPartition]
    verify_only: bool


class AddPartitionsRequests:
    """Transactions as items of `RequestQueues`."""

    moved = ErrorCode.COORDINATOR_NOT_AVAILABLE
    lost = ErrorCode.NETWORK_EXCEPTION

    def __init__(self, broker_of: Callable[[str], int]) -> None:
        self._broker_of = broker_of

    def broker_of(self, item: AddPartitions) -> int:
        return self._broker_of(item.transactional_id)

    def subject(self, item: AddPartitions) -> Hashable:
        return item.transactional_id

    def company(self, item: AddPartitions) -> Hashable:
        return None

    def request(self, items: Sequence[AddPartitions]) -> AddPartitionsToTxnRequest:
        return AddPartitionsToTxnRequest(transactions=[_transaction(item) for item in items])

    def outcomes(
        self, items: Sequence[AddPartitions], response: AddPartitionsToTxnResponse
    ) -> list[Codes | KafkaError]:
        code = known_code(response.error_code)
        if code is ErrorCode.CLUSTER_AUTHORIZATION_FAILED:  # This broker's fault, of which no client knows.
            code = ErrorCode.INVALID_TXN_STATE
        if code:
            raise KafkaError(code)
        found: dict[str, Codes] = {
            result.transactional_id: {
                (topic.name, partition.partition_index): known_code(partition.partition_error_code)
                for topic in result.topic_results
                for partition in topic.results_by_partition
            }
            for result in response.results_by_transaction
        }
        return [
            {
                partition: found.get(item.transactional_id, {}).get(partition, ErrorCode.UNKNOWN_SERVER_ERROR)
                for partition in item.partitions
            }
            for item in items
        ]


def _transaction(item: AddPartitions) -> AddPartitionsToTxnRequest.AddPartitionsToTxnTransaction:
    topics: dict[str, list[int]] = {}
    for name, index in sorted(item.partitions):
        topics.setdefault(name, []).append(index)
    return AddPartitionsToTxnRequest.AddPartitionsToTxnTransaction(
        transactional_id=item.transactional_id,
        producer_id=item.producer_id,
        producer_epoch=item.producer_epoch,
        verify_only=item.verify_only,
        topics=[
            AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(name=name, partitions=indexes)
            for name, indexes in topics.items()
        ],
    )


class RemotePartitions:
    """The transaction coordinators of other brokers.

    Args:
        broker_of: returns the broker that coordinates a transactional id by the metadata as of now, -1 for none.
        send: sends a request to another broker, in a version that has batches.
    """

    def __init__(self, node_id: int, broker_of: Callable[[str], int], send: Send, loop: Loop) -> None:
        self._node_id = node_id
        self._broker_of = broker_of
        self._queues: RequestQueues[AddPartitions, Codes] = RequestQueues(AddPartitionsRequests(broker_of), send, loop)

    def __repr__(self) -> str:
        return f"<RemotePartitions {self._queues!r}>"

    def is_for(self, transactional_id: str) -> bool:
        """Return whether another broker, or none, coordinates a transactional id; an empty one is rejected here."""
        return bool(transactional_id) and self._broker_of(transactional_id) != self._node_id

    async def ask(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        partitions: frozenset[TopicPartition],
        *,
        verify_only: bool,
    ) -> Codes:
        """Return the code of each partition.

        Raises:
            KafkaError: applies to all partitions.
        """
        item = AddPartitions(transactional_id, producer_id, producer_epoch, partitions, verify_only)
        return await self._queues.ask(item)

    def reroute(self) -> None:
        """Fail what waits for a broker that is no longer the coordinator."""
        self._queues.reroute()

    def close(self) -> None:
        """Fail what has no answer."""
        self._queues.close()
