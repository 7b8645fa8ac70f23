"""A producer's requests to the coordinator of its transactional id.

They speak transaction version 1 (KIP-98): the producer adds partitions itself, and the end of a transaction leaves the
producer's epoch as it is. A repeated EndTxn therefore succeeds if the transaction had this outcome, however long ago,
so that another process can end a transaction and repeat that after a crash.

With two-phase commit (KIP-939) the broker never ends a transaction by itself. Brokers offer it with InitProducerId 6.

Sources: InitProducerId (22), AddPartitionsToTxn (24), EndTxn (26); KIP-98, KIP-360, KIP-939.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from barnabas.client.cluster import TRANSACTION_COORDINATOR, Cluster
from barnabas.client.cluster_metadata import TopicPartition, by_topic
from barnabas.client.patience import insist, is_retriable
from barnabas.client.wire import BlockingConnection
from barnabas.protocol import messages
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.errors import ErrorCode, KafkaError, error_for

_TWO_PHASE_SINCE = 6
# Later versions are for brokers and for transaction version 2.
_ADD_PARTITIONS_HIGHEST = 3
_END_TXN_HIGHEST = 4


class ProducerIdentity(NamedTuple):
    """A producer id with its epoch; `two_phase` if its transactions have no timeout."""

    producer_id: int
    epoch: int
    two_phase: bool = False


class Transaction(NamedTuple):
    """One transaction of a transactional id; the producer's pair names it if no other used the pair."""

    transactional_id: str
    producer_id: int
    epoch: int


def init_producer_id(
    cluster: Cluster,
    transactional_id: str | None,
    transaction_timeout_ms: int,
    *,
    expected: ProducerIdentity | None = None,
    two_phase: bool = False,
    timeout_ms: int,
) -> ProducerIdentity:
    """Return a producer id and epoch; with a transactional id its next epoch, which fences its earlier producer.

    Args:
        transactional_id: None for an idempotent producer.
        expected: the pair that this producer has; another one fails with PRODUCER_FENCED.
        two_phase: ask for transactions without a timeout, where the broker offers them.
        timeout_ms: repeat the request so long.

    Raises:
        KafkaError: PRODUCER_FENCED, INVALID_TRANSACTION_TIMEOUT, or no coordinator answers.
    """
    request = messages.InitProducerIdRequest(
        transactional_id=transactional_id, transaction_timeout_ms=transaction_timeout_ms
    )
    if expected is not None:
        request.producer_id, request.producer_epoch = expected.producer_id, expected.epoch

    def ask() -> ProducerIdentity:
        connection = cluster.any_connection() if transactional_id is None else _coordinator(cluster, transactional_id)
        offered = two_phase and connection.supports(ApiKey.INIT_PRODUCER_ID, _TWO_PHASE_SINCE)
        request.enable2_pc = offered
        response = connection.request(request)
        if response.error_code == ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED and offered:
            # The version is there, but the broker's settings do not allow two-phase commit.
            offered = request.enable2_pc = False
            response = connection.request(request)
        if response.error_code:
            raise error_for(response.error_code)
        return ProducerIdentity(response.producer_id, response.producer_epoch, offered)

    return insist(cluster, ask, timeout_ms)


def add_partitions_to_transaction(
    cluster: Cluster, transaction: Transaction, partitions: Iterable[TopicPartition], *, timeout_ms: int
) -> None:
    """Add partitions to a transaction; the first ones begin it.

    Raises:
        KafkaError: PRODUCER_FENCED, or no coordinator answers.
    """
    request_class = messages.AddPartitionsToTxnRequest
    request = request_class(
        v3_and_below_transactional_id=transaction.transactional_id,
        v3_and_below_producer_id=transaction.producer_id,
        v3_and_below_producer_epoch=transaction.epoch,
        v3_and_below_topics=[
            request_class.AddPartitionsToTxnTopic(name=name, partitions=indexes)
            for name, indexes in by_topic(partitions).items()
        ],
    )

    def ask() -> None:
        response = _coordinator(cluster, transaction.transactional_id).request(request, highest=_ADD_PARTITIONS_HIGHEST)
        codes = [
            each.partition_error_code
            for topic in response.results_by_topic_v3_and_below
            for each in topic.results_by_partition
        ]
        # A partition's error fails the others with OPERATION_NOT_ATTEMPTED.
        for code in sorted(codes, key=lambda code: code == ErrorCode.OPERATION_NOT_ATTEMPTED):
            if code:
                raise error_for(code)

    insist(cluster, ask, timeout_ms)


def end_transactions(
    cluster: Cluster, transactions: Iterable[Transaction], *, commit: bool, timeout_ms: int
) -> dict[Transaction, KafkaError | None]:
    """Commit or abort transactions, those of one coordinator in one go.

    Returns:
        None for each that has this outcome now, or had it before, else its error: INVALID_TXN_STATE if it had the other
        outcome or never began, PRODUCER_FENCED if another producer ended it, or the reason why no coordinator answers.
    """
    outcomes: dict[Transaction, KafkaError | None] = {}
    pending = list(dict.fromkeys(transactions))

    def ask() -> None:
        nonlocal pending
        outcomes.update(_end_once(cluster, pending, commit))
        waiting = {each: error for each in pending if (error := outcomes[each]) is not None and is_retriable(error)}
        if waiting:
            pending = list(waiting)
            raise next(iter(waiting.values()))

    try:
        insist(cluster, ask, timeout_ms)
    except KafkaError as error:
        for each in pending:
            outcomes[each] = outcomes.get(each) or error
    return outcomes


def _end_once(cluster: Cluster, transactions: list[Transaction], commit: bool) -> dict[Transaction, KafkaError | None]:
    outcomes: dict[Transaction, KafkaError | None] = {}
    by_node: dict[int, list[Transaction]] = {}
    coordinators = cluster.coordinators({each.transactional_id for each in transactions}, TRANSACTION_COORDINATOR)
    for each in transactions:
        node = coordinators[each.transactional_id]
        if isinstance(node, KafkaError):
            outcomes[each] = node
        else:
            by_node.setdefault(node, []).append(each)
    for node, batch in by_node.items():
        left = list(batch)
        try:
            connection = cluster.connection(node)
            for each in batch:
                request = messages.EndTxnRequest(
                    transactional_id=each.transactional_id,
                    producer_id=each.producer_id,
                    producer_epoch=each.epoch,
                    committed=commit,
                )
                connection.send(request, highest=_END_TXN_HIGHEST)
            while left:
                code = connection.receive().error_code
                outcomes[left.pop(0)] = error_for(code) if code else None
        except KafkaError as error:
            outcomes.update(dict.fromkeys(left, error))
    return outcomes


def _coordinator(cluster: Cluster, transactional_id: str) -> BlockingConnection:
    found = cluster.coordinators([transactional_id], TRANSACTION_COORDINATOR)[transactional_id]
    if isinstance(found, KafkaError):
        raise found
    return cluster.connection(found)
