"""Transactions: list, describe, fence, abort.

Two places know about a transaction: the coordinator of its transactional id, and every partition that it wrote to
(`brokers.describe_producers`). They agree, except about a *hanging* transaction: it is open in a partition, and no coordinator
knows it. Only an administrator's marker ends it.

Sources: InitProducerId (22), WriteTxnMarkers (27), DescribeTransactions (65), ListTransactions (66);
KIP-360, KIP-664, KIP-994, KIP-1152.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from barnabas.client.brokers import ProducerState
from barnabas.client.cluster import TRANSACTION_COORDINATOR, Cluster
from barnabas.client.cluster_metadata import TopicPartition
from barnabas.client.outcome import outcome_of, results
from barnabas.client.wire import BlockingConnection
from barnabas.protocol import messages
from barnabas.protocol.errors import KafkaError, error_for

_FENCING_TIMEOUT_MS = 1


class TransactionListing(NamedTuple):
    """A transactional id as ListTransactions returns it."""

    transactional_id: str
    producer_id: int
    state: str
    coordinator: int


class TransactionDescription(NamedTuple):
    """A transactional id; `start_ms` is None and `partitions` is empty while no transaction is open."""

    transactional_id: str
    state: str
    producer_id: int
    producer_epoch: int
    timeout_ms: int
    start_ms: int | None
    partitions: list[TopicPartition]
    coordinator: int


def list_transactions(
    cluster: Cluster,
    *,
    states: Sequence[str] = (),
    producer_ids: Sequence[int] = (),
    running_longer_than_ms: int = -1,
    pattern: str | None = None,
) -> list[TransactionListing]:
    """Return every broker's transactional ids, sorted.

    Args:
        states: only those in one of these states (`Ongoing`, `PrepareCommit`, …).
        producer_ids: only those of these producers.
        running_longer_than_ms: only transactions open longer than this; -1 for all. Needs ListTransactions v1.
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

    def ask(connection: BlockingConnection, node_id: int) -> list[TransactionListing] | KafkaError:
        response = connection.request(request)
        return outcome_of(response.error_code) or [
            TransactionListing(each.transactional_id, each.producer_id, each.transaction_state, node_id)
            for each in response.transaction_states
        ]

    return sorted(listing for found in results(cluster.ask_nodes(ask)).values() for listing in found)


def describe_transactions(
    cluster: Cluster, transactional_ids: Iterable[str]
) -> dict[str, TransactionDescription | KafkaError]:
    """Return each transactional id, or TRANSACTIONAL_ID_NOT_FOUND for an id that was never used."""
    route = functools.partial(cluster.coordinators, key_type=TRANSACTION_COORDINATOR)

    def ask(connection: BlockingConnection, batch: list[str]) -> dict[str, TransactionDescription | KafkaError]:
        request = messages.DescribeTransactionsRequest(transactional_ids=batch)
        coordinators = route(batch)
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

    return cluster.ask_each(transactional_ids, route, ask)


def fence_producers(cluster: Cluster, transactional_ids: Iterable[str]) -> dict[str, tuple[int, int] | KafkaError]:
    """Fence each transactional id's producer, which aborts an open transaction.

    Returns:
        The producer id and epoch that were taken for it.
    """
    route = functools.partial(cluster.coordinators, key_type=TRANSACTION_COORDINATOR)

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

    return cluster.ask_each(transactional_ids, route, ask)


def abort_transaction(cluster: Cluster, partition: TopicPartition, producer: ProducerState) -> KafkaError | None:
    """Abort a producer's open transaction in one partition, without its coordinator; None if it succeeds.

    For hanging transactions only: in other partitions the transaction stays open, and may still be committed.
    """
    request_class = messages.WriteTxnMarkersRequest

    def ask(connection: BlockingConnection, batch: list[TopicPartition]) -> dict[TopicPartition, KafkaError | None]:
        marker = request_class.WritableTxnMarker(
            producer_id=producer.producer_id,
            producer_epoch=producer.producer_epoch,
            transaction_result=False,
            # A partition without a marker of this producer has -1, and accepts every epoch.
            coordinator_epoch=max(producer.coordinator_epoch, 0),
            topics=[
                request_class.WritableTxnMarkerTopic(name=partition.topic, partition_indexes=[partition.partition])
            ],
        )
        answer = connection.request(request_class(markers=[marker]))
        if not answer.markers:
            return {partition: error_for(-1, "the broker's answer does not name the marker")}
        return {partition: outcome_of(answer.markers[0].topics[0].partitions[0].error_code)}

    return cluster.ask_each([partition], cluster.leaders, ask, repeatable=False)[partition]
