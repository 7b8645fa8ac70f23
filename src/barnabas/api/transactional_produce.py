"""Produce inside transactions: what must be known before the records may be appended. Data plane.

    Produce ─► a guard for each partition whose transaction has not begun here ─► the transaction coordinator ─► append with the guards

A partition that has the producer's transaction open already needs no question, so this costs something once per transaction and
partition. On one node the coordinator answers at once and the request is appended in the same turn. When it cannot, the records
are copied out of the connection's buffer, and the connection handles nothing more until the answer has left: what the client sent
behind this request must not be appended before it.

- From version 12 (transaction version 2) the question adds the partition. A coordinator that is still ending the previous
  transaction is asked again for a moment (add.partitions.to.txn.retry.backoff.*): the producer would have to send all its records again.
- Errors of the coordinator that say "later" become NOT_ENOUGH_REPLICAS, on which every client tries again without a new
  look for leaders; before version 12 CONCURRENT_TRANSACTIONS is one of them.
- The records of one request are of one producer: INVALID_PRODUCER_ID_MAPPING otherwise.

Sources: Kafka's `ReplicaManager.handleProduceAppend`; KIP-890.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, NamedTuple

from barnabas.api.context import RequestContext
from barnabas.coordinator.runtime.future_steps import when_done
from barnabas.coordinator.transaction_partitions import TransactionSupportedOperation, add_or_verify
from barnabas.log.transaction_verification import VerificationGuard
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.records.record_batch import is_transactional, producer_of
from barnabas.replication.partition import Partition

_LATER = frozenset(
    {
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
    }
)


class Verified(NamedTuple):
    """What the coordinator has said about the partitions of a request, and the guards that go with it."""

    guards: dict[Partition, VerificationGuard]
    errors: dict[Partition, KafkaError]


class NotVerified(KafkaError):
    """A refusal whose words are for the client."""

    record_errors = ()


class _Batch(NamedTuple):
    partition: Partition
    producer_id: int
    producer_epoch: int
    base_sequence: int


Append = Callable[[RequestContext, Any, Verified | None], Any]
Find = Callable[[RequestContext, Any, int], Partition | None]


def handle(context: RequestContext, request: Any, find: Find, append: Append) -> Any:
    """Verify what must be verified, then append.

    Args:
        find: the replica that a topic's data and a partition index mean, None when there is none.
        append: appends the request, given what is known.

    Returns: the response, or a future of it.

    Raises:
        KafkaError: INVALID_PRODUCER_ID_MAPPING.
    """
    batches = _transactional_batches(context, request, find)
    if len({(batch.producer_id, batch.producer_epoch) for batch in batches}) > 1:
        raise KafkaError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    operation = TransactionSupportedOperation.of_produce(context.version)
    if not operation.supports_epoch_bump:
        batches = [b for b in batches if b.partition.topic.config.transaction_partition_verification_enable]
    if not batches:
        return append(context, request, None)
    return _Verification(context, request, batches, operation, append).run()


def _transactional_batches(context: RequestContext, request: Any, find: Find) -> list[_Batch]:
    found = []
    for data in request.topic_data:
        for wanted in data.partition_data:
            records = wanted.records
            if records is None or not is_transactional(records):
                continue
            partition = find(context, data, wanted.index)
            if partition is not None:
                found.append(_Batch(partition, *producer_of(records)))
    return found


class _Verification:
    """One request on its way to being appended."""

    def __init__(
        self,
        context: RequestContext,
        request: Any,
        batches: list[_Batch],
        operation: TransactionSupportedOperation,
        append: Append,
    ) -> None:
        self._context = context
        self._request = request
        self._batches = batches
        self._operation = operation
        self._append = append
        self._deadline_ms = 0
        self._response: asyncio.Future[Any] | None = None

    def run(self) -> Any:
        """The response, or a future of it when the coordinator's answer takes time."""
        config = self._context.services.transaction_coordinator.config
        self._deadline_ms = self._context.services.now_ms() + min(
            config.add_partitions_retry_backoff_max_ms, config.request_timeout_ms
        )
        verified = self._attempt()
        if verified is not None:
            return self._append(self._context, self._request, verified)
        self._keep_records()
        self._context.holds_order = True
        self._response = self._context.services.loop.create_future()
        return self._response

    def _attempt(self) -> Verified | None:
        """Ask the coordinator; None when the answer takes time, and `_appended` will be called."""
        guards: dict[Partition, VerificationGuard] = {}
        errors: dict[Partition, KafkaError] = {}
        for batch in self._batches:
            try:
                guard = batch.partition.begin_verification(
                    batch.producer_id,
                    batch.base_sequence,
                    batch.producer_epoch,
                    supports_epoch_bump=self._operation.supports_epoch_bump,
                )
            except KafkaError as error:
                errors[batch.partition] = error
            else:
                if guard is not None:
                    guards[batch.partition] = guard
        if not guards:
            return Verified(guards, errors)
        by_name = {(partition.topic.name, partition.index): partition for partition in guards}
        producer = self._batches[0]
        services = self._context.services
        asked = add_or_verify(
            services.transaction_coordinator,
            services.loop,
            self._request.transactional_id,
            producer.producer_id,
            producer.producer_epoch,
            list(by_name),
            self._operation,
        )

        def answered(done: asyncio.Future[dict[tuple[str, int], ErrorCode]]) -> Verified | None:
            codes = done.result()
            if self._must_ask_again(codes):
                backoff_ms = self._context.services.transaction_coordinator.config.add_partitions_retry_backoff_ms
                self._context.services.loop.call_later(backoff_ms / 1000, self._retry)
                return None
            for name, code in codes.items():
                errors[by_name[name]] = self._error(code)
            return Verified(guards, errors)

        if asked.done():
            return answered(asked)
        when_done(asked, lambda done: self._finish(answered(done)))
        return None

    def _must_ask_again(self, codes: dict[tuple[str, int], ErrorCode]) -> bool:
        return (
            self._operation.supports_epoch_bump
            and ErrorCode.CONCURRENT_TRANSACTIONS in codes.values()
            and self._context.services.now_ms() < self._deadline_ms
        )

    def _retry(self) -> None:
        assert self._response is not None, "a request is asked about again before it has a response to wait for"
        if not self._response.done():
            self._finish(self._attempt())

    def _finish(self, verified: Verified | None) -> None:
        """Append, now that the coordinator has answered, and give out the response."""
        response = self._response
        if verified is None or response is None or response.done():
            return
        try:
            result = self._append(self._context, self._request, verified)
        except Exception as error:
            response.set_exception(error)
            return
        if isinstance(result, asyncio.Future):
            result.add_done_callback(lambda done: _pass_on(done, response))
        else:
            response.set_result(result)

    def _keep_records(self) -> None:
        """Copy the records: the connection's buffer is used again after this turn."""
        for data in self._request.topic_data:
            for wanted in data.partition_data:
                if wanted.records is not None:
                    wanted.records = memoryview(bytearray(wanted.records))

    def _error(self, code: ErrorCode) -> KafkaError:
        if code is ErrorCode.INVALID_TXN_STATE:
            return NotVerified(code, "Partition was not added to the transaction")
        if code in _LATER or (code is ErrorCode.CONCURRENT_TRANSACTIONS and not self._operation.supports_epoch_bump):
            return NotVerified(
                ErrorCode.NOT_ENOUGH_REPLICAS,
                f"Unable to verify the partition has been added to the transaction. Underlying error: {code.name}",
            )
        return KafkaError(code)


def _pass_on(done: asyncio.Future[Any], response: asyncio.Future[Any]) -> None:
    if done.cancelled() or response.done():
        return
    error = done.exception()
    if error is None:
        response.set_result(done.result())
    else:
        response.set_exception(error)
