"""Sends encoded records to the leaders of their partitions, in order and without duplicates; in a transaction if asked.

    producer = Producer(cluster, transactional_id="orders-1")
    producer.begin()
    producer.send(TopicPartition("orders", 0), records)     # as many as wanted
    producer.flush()
    ...                                                     # another process ends `producer.transaction`

It takes whole batches' bodies from an encoder and writes only their headers. Each broker has one request under way,
with at most one batch of a partition in it: the next request leaves when more is sent, or in `flush`. So the caller
encodes while the brokers work.

Invariants:

- A batch that fails with a retriable error is sent again with its sequence, before any later batch of its partition.
  The leader drops a batch that it already has (KIP-98).
- A new transaction begins with a new epoch, and its sequences begin at 0. So a pair of producer id and epoch names one
  transaction, and a broker that forgot an idle producer does not matter.
- Nothing ends the transaction here but `abort`.

Limits: blocking, one thread; it does not split a batch that the broker finds too large.
Sources: Produce (0); KIP-98; org.apache.kafka.clients.producer.internals.Sender.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import NamedTuple

from barnabas.client.cluster import Cluster
from barnabas.client.cluster_metadata import TopicPartition
from barnabas.client.errors import RequestTimedOut
from barnabas.client.partition_records import produce_request
from barnabas.client.patience import FIRST_ATTEMPT, is_retriable
from barnabas.client.producer_transactions import (
    ProducerIdentity,
    Transaction,
    add_partitions_to_transaction,
    end_transactions,
    init_producer_id,
)
from barnabas.client.wire import BlockingConnection
from barnabas.protocol import messages
from barnabas.protocol.errors import ErrorCode, KafkaError, error_for
from barnabas.records.checksum import Buffer
from barnabas.records.record_batch import MAGIC, NO_LEADER_EPOCH, SEQUENCE_MASK, TRANSACTIONAL, BatchHeader, assemble

# Later versions begin a transaction by themselves, and bump its epoch at its end (transaction version 2).
_PRODUCE_HIGHEST = 11
_MAX_QUEUED_BYTES = 8 << 20
_MAX_REQUEST_BYTES = 8 << 20


class EncodedRecords(NamedTuple):
    """The body of a batch: its records, compressed together, with their fields of the header."""

    body: Buffer
    record_count: int
    base_timestamp: int
    max_timestamp: int
    compression: int = 0


class _Batch(NamedTuple):
    partition: TopicPartition
    sequence: int
    records: EncodedRecords


class Producer:
    """A producer on a shared cluster.

    Args:
        transactional_id: None for an idempotent producer without transactions.
        two_phase: ask for transactions without a timeout, where the broker offers them.
        delivery_timeout_ms: retriable errors are retried so long.

    Nothing is sent before `begin`.
    """

    def __init__(
        self,
        cluster: Cluster,
        *,
        transactional_id: str | None = None,
        transaction_timeout_ms: int = 60_000,
        two_phase: bool = False,
        delivery_timeout_ms: int = 120_000,
    ) -> None:
        self.transactional_id = transactional_id
        self.identity: ProducerIdentity | None = None
        self._cluster = cluster
        self._transaction_timeout_ms = transaction_timeout_ms
        self._two_phase = two_phase
        self._delivery_timeout_ms = delivery_timeout_ms
        self._sequences: dict[TopicPartition, int] = {}
        self._queues: dict[TopicPartition, deque[_Batch]] = {}
        self._queued_bytes = 0
        self._in_transaction: set[TopicPartition] = set()
        self._under_way: list[tuple[BlockingConnection, list[_Batch]]] = []
        self._attempt = FIRST_ATTEMPT
        self._deadline: float | None = None

    def __repr__(self) -> str:
        return f"<Producer transactional_id={self.transactional_id} queued_bytes={self._queued_bytes}>"

    @property
    def transaction(self) -> Transaction:
        """The open transaction; another process may end it."""
        assert self.transactional_id is not None
        assert self.identity is not None, "begin() comes first"
        return Transaction(self.transactional_id, self.identity.producer_id, self.identity.epoch)

    def begin(self) -> ProducerIdentity:
        """Get a new epoch and forget everything sent before.

        Raises:
            KafkaError: PRODUCER_FENCED if another producer took the transactional id since; or no broker answers.
        """
        self._abandon()
        expected = self.identity if self.transactional_id is not None else None
        self.identity = init_producer_id(
            self._cluster,
            self.transactional_id,
            self._transaction_timeout_ms,
            expected=expected,
            two_phase=self._two_phase,
            timeout_ms=self._delivery_timeout_ms,
        )
        self._sequences.clear()
        self._queues.clear()
        self._queued_bytes = 0
        self._in_transaction.clear()
        return self.identity

    def send(self, partition: TopicPartition, records: EncodedRecords) -> None:
        """Send records, or keep them until there is room.

        Raises:
            KafkaError: an earlier batch cannot be delivered.
        """
        assert self.identity is not None, "begin() comes first"
        sequence = self._sequences.get(partition, 0)
        self._sequences[partition] = (sequence + records.record_count) & SEQUENCE_MASK
        self._queues.setdefault(partition, deque()).append(_Batch(partition, sequence, records))
        self._queued_bytes += len(records.body)
        while self._queued_bytes > _MAX_QUEUED_BYTES:
            self._advance()

    def flush(self) -> None:
        """Return when every record is on as many replicas as the topic demands.

        Raises:
            KafkaError: a batch cannot be delivered.
        """
        while self._queued_bytes or self._under_way:
            self._advance()

    def settle(self) -> None:
        """Wait until no request is under way, so that the cluster's connections are free; waiting records keep waiting.

        Raises:
            KafkaError: a batch cannot be delivered.
        """
        failure = self._settle()
        if failure is not None:
            self._wait(failure)

    def abort(self) -> None:
        """Abort the open transaction, without waiting for long.

        Raises:
            KafkaError: it stays open until the broker, or the next producer of the transactional id, aborts it.
        """
        self._abandon()
        if self._in_transaction:
            found = end_transactions(
                self._cluster, [self.transaction], commit=False, timeout_ms=self._cluster.timeout_ms
            )
            error = found[self.transaction]
            if error is not None:
                raise error

    def _abandon(self) -> None:
        # A connection with unanswered requests is of no use to anybody.
        for connection, _ in self._under_way:
            connection.close()
        self._under_way.clear()

    def _advance(self) -> None:
        """Settle the requests under way, then send the next ones."""
        had_some = bool(self._under_way)
        failure = self._settle()
        if failure is not None:
            self._wait(failure)
        elif had_some:
            self._attempt, self._deadline = FIRST_ATTEMPT, None
        try:
            self._dispatch()
        except KafkaError as error:
            if not is_retriable(error):
                raise
            self._wait(error)

    def _wait(self, failure: KafkaError) -> None:
        if self._deadline is None:
            self._deadline = self._cluster.deadline(self._delivery_timeout_ms)
        if not self._cluster.pause(self._attempt, self._deadline):
            raise failure
        self._attempt += 1
        if failure.code != ErrorCode.CONCURRENT_TRANSACTIONS:
            self._cluster.forget()

    def _dispatch(self) -> None:
        heads = [queue[0] for queue in self._queues.values() if queue]
        if not heads:
            return
        if self.transactional_id is not None:
            new = {head.partition for head in heads} - self._in_transaction
            if new:
                add_partitions_to_transaction(
                    self._cluster, self.transaction, sorted(new), timeout_ms=self._delivery_timeout_ms
                )
                self._in_transaction |= new
        by_node: dict[int, list[_Batch]] = {}
        sizes: dict[int, int] = {}
        leaders = self._cluster.leaders([head.partition for head in heads])
        errors = [found for found in leaders.values() if isinstance(found, KafkaError)]
        for head in heads:
            node = leaders[head.partition]
            if isinstance(node, KafkaError):
                continue
            size = sizes.get(node, 0) + len(head.records.body)
            if size <= _MAX_REQUEST_BYTES or node not in sizes:
                sizes[node] = size
                by_node.setdefault(node, []).append(head)
        self._under_way, failures = self._sent(by_node)
        errors += failures
        if errors and not self._under_way:
            raise errors[0]

    def _sent(
        self, by_node: Mapping[int, list[_Batch]]
    ) -> tuple[list[tuple[BlockingConnection, list[_Batch]]], list[KafkaError]]:
        sent: list[tuple[BlockingConnection, list[_Batch]]] = []
        errors: list[KafkaError] = []
        connections: dict[int, BlockingConnection] = {}
        # All connections first: finding a broker's address may need one that has nothing under way.
        for node in by_node:
            try:
                connections[node] = self._cluster.connection(node)
            except KafkaError as error:
                errors.append(error)
        for node, connection in connections.items():
            try:
                request = produce_request(
                    ((batch.partition, self._encoded(batch)) for batch in by_node[node]),
                    timeout_ms=self._cluster.timeout_ms,
                    transactional_id=self.transactional_id,
                )
                connection.send(request, highest=_PRODUCE_HIGHEST)
            except KafkaError as error:
                errors.append(error)
            else:
                sent.append((connection, by_node[node]))
        return sent, errors

    def _encoded(self, batch: _Batch) -> bytearray:
        assert self.identity is not None
        records = batch.records
        attributes = records.compression | (TRANSACTIONAL if self.transactional_id is not None else 0)
        header = BatchHeader(
            0, 0, NO_LEADER_EPOCH, MAGIC, 0, attributes, records.record_count - 1, records.base_timestamp,
            records.max_timestamp, self.identity.producer_id, self.identity.epoch, batch.sequence, records.record_count,
        )  # fmt: skip
        return assemble(header, records.body)

    def _settle(self) -> KafkaError | None:
        """Read the answers to the requests under way; return a retriable error if a batch must be sent again.

        Raises:
            KafkaError: a batch cannot be delivered.
        """
        under_way, self._under_way = self._under_way, []
        again: KafkaError | None = None
        fatal: KafkaError | None = None
        for connection, batches in under_way:
            outcomes: Mapping[TopicPartition, KafkaError | None]
            try:
                # The leader may wait for its followers as long as the request says.
                outcomes = _outcomes(connection.receive(timeout_ms=2 * self._cluster.timeout_ms))
            except KafkaError as error:
                outcomes = dict.fromkeys((each.partition for each in batches), error)
            for batch in batches:
                outcome = outcomes.get(batch.partition, RequestTimedOut("the broker left a partition out"))
                if outcome is None:
                    self._queues[batch.partition].popleft()
                    self._queued_bytes -= len(batch.records.body)
                elif is_retriable(outcome):
                    again = outcome
                else:
                    fatal = outcome
        if fatal is not None:
            raise fatal
        return again


def _outcomes(response: messages.ProduceResponse) -> dict[TopicPartition, KafkaError | None]:
    found: dict[TopicPartition, KafkaError | None] = {}
    for topic in response.responses:
        for each in topic.partition_responses:
            done = each.error_code in (ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER)
            error = None if done else error_for(each.error_code, each.error_message or None)
            found[TopicPartition(topic.name, each.index)] = error
    return found
