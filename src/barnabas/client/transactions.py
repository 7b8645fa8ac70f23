"""Transactions: list, describe, find who holds a partition back, abort. Shell plane; a part of Admin.

Two places know about a transaction: the coordinator of its transactional id, and every partition that it wrote to
(:meth:`~barnabas.client.brokers.BrokerAdmin.describe_producers`). They agree, except about a *hanging* one, which a partition has open
and no coordinator knows; only an administrator's marker ends it.

Sources: InitProducerId (22), WriteTxnMarkers (27), DescribeTransactions (65), ListTransactions (66);
KIP-360, KIP-664, KIP-994, KIP-1152.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from barnabas.client.brokers import ProducerState
from barnabas.client.cluster_metadata import TopicPartition
from barnabas.client.outcome import AdminPart, outcome_of, results
from barnabas.client.wire import BlockingConnection
from barnabas.protocol import messages
from barnabas.protocol.errors import KafkaError, error_for

TRANSACTION_COORDINATOR = 1
_FENCING_TIMEOUT_MS = 1


class TransactionListing(NamedTuple):
    """A transactional id as ListTransactions tells."""

    transactional_id: str
    producer_id: int
    state: str
    coordinator: int


class TransactionDescription(NamedTuple):
    """A transactional id; ``start_ms`` is None and ``partitions`` empty while no transaction is open."""

    transactional_id: str
    state: str
    producer_id: int
    producer_epoch: int
    timeout_ms: int
    start_ms: int | None
    partitions: list[TopicPartition]
    coordinator: int


class TransactionAdmin(AdminPart):
    """Transactions."""

    def list_transactions(
        self,
        *,
        states: Sequence[str] = (),
        producer_ids: Sequence[int] = (),
        running_longer_than_ms: int = -1,
        pattern: str | None = None,
    ) -> list[TransactionListing]:
        """Every broker's transactional ids, by id.

        Args:
            states: only those in one of these states (``Ongoing``, ``PrepareCommit``, …).
            producer_ids: only those of these producers.
            running_longer_than_ms: only transactions that began longer ago; -1 for all. Needs ListTransactions v1.
            pattern: only ids that this regular expression matches as a whole. Needs ListTransactions v2.

        Raises:
            KafkaError: a broker did not answer; a partial list would look complete.
        """
        request = messages.ListTransactionsRequest(
            state_filters=list(states),
            producer_id_filters=list(producer_ids),
            duration_filter=running_longer_than_ms,
            transactional_id_pattern=pattern,
        )

        def ask(connection: BlockingConnection, batch: list[int]) -> dict[int, list[TransactionListing] | KafkaError]:
            response = connection.request(request)
            (node_id,) = batch
            return {
                node_id: outcome_of(response.error_code)
                or [
                    TransactionListing(each.transactional_id, each.producer_id, each.transaction_state, node_id)
                    for each in response.transaction_states
                ]
            }

        node_ids = list(self.cluster.retry(self.cluster.nodes))
        found = results(self.cluster.ask_each(node_ids, lambda nodes: {node: node for node in nodes}, ask))
        return sorted(listing for listings in found.values() for listing in listings)

    def describe_transactions(self, transactional_ids: Iterable[str]) -> dict[str, TransactionDescription | KafkaError]:
        """Each transactional id; TRANSACTIONAL_ID_NOT_FOUND for one that nobody has used."""

        def ask(connection: BlockingConnection, batch: list[str]) -> dict[str, TransactionDescription | KafkaError]:
            request = messages.DescribeTransactionsRequest(transactional_ids=batch)
            coordinators = self._transaction_coordinators(batch)
            answers: dict[str, TransactionDescription | KafkaError] = {}
            for each in connection.request(request).transaction_states:
                coordinator = coordinators[each.transactional_id]
                answers[each.transactional_id] = outcome_of(each.error_code) or TransactionDescription(
                    each.transactional_id,
                    each.transaction_state,
                    each.producer_id,
                    each.producer_epoch,
                    each.transaction_timeout_ms,
                    None if each.transaction_start_time_ms < 0 else each.transaction_start_time_ms,
                    [TopicPartition(topic.topic, index) for topic in each.topics for index in topic.partitions],
                    coordinator if isinstance(coordinator, int) else -1,
                )
            return answers

        return self.cluster.ask_each(transactional_ids, self._transaction_coordinators, ask)

    def _transaction_coordinators(self, transactional_ids: Iterable[str]) -> dict[str, int | KafkaError]:
        return self.cluster.coordinators(transactional_ids, TRANSACTION_COORDINATOR)

    def fence_producers(self, transactional_ids: Iterable[str]) -> dict[str, tuple[int, int] | KafkaError]:
        """Takes each transactional id away from its producer, which aborts an open transaction.

        Returns:
            The producer id and epoch that the next producer would have had.
        """

        def ask(connection: BlockingConnection, batch: list[str]) -> dict[str, tuple[int, int] | KafkaError]:
            answers: dict[str, tuple[int, int] | KafkaError] = {}
            for transactional_id in batch:
                request = messages.InitProducerIdRequest(
                    transactional_id=transactional_id, transaction_timeout_ms=_FENCING_TIMEOUT_MS
                )
                answer = connection.request(request)
                answers[transactional_id] = outcome_of(answer.error_code) or (
                    answer.producer_id,
                    answer.producer_epoch,
                )
            return answers

        return self.cluster.ask_each(transactional_ids, self._transaction_coordinators, ask)

    def abort_transaction(self, partition: TopicPartition, producer: ProducerState) -> KafkaError | None:
        """Ends a producer's open transaction in one partition, whatever its coordinator thinks; None when it is done.

        For hanging transactions only: elsewhere the transaction stays open, and may still be committed.
        """
        request_class = messages.WriteTxnMarkersRequest

        def ask(connection: BlockingConnection, batch: list[TopicPartition]) -> dict[TopicPartition, bool | KafkaError]:
            marker = request_class.WritableTxnMarker(
                producer_id=producer.producer_id,
                producer_epoch=producer.producer_epoch,
                transaction_result=False,
                # A partition that has never seen a marker of this producer knows no coordinator, and takes any.
                coordinator_epoch=max(producer.coordinator_epoch, 0),
                topics=[
                    request_class.WritableTxnMarkerTopic(name=partition.topic, partition_indexes=[partition.partition])
                ],
            )
            answer = connection.request(request_class(markers=[marker]))
            if not answer.markers:
                return {partition: error_for(-1, "the broker did not say what became of the marker")}
            return {partition: outcome_of(answer.markers[0].topics[0].partitions[0].error_code) or True}

        outcome = self.cluster.ask_each([partition], self.cluster.leaders, ask, repeatable=False)[partition]
        return outcome if isinstance(outcome, KafkaError) else None
