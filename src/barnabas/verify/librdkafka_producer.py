"""A producer of librdkafka, which knows only the first transaction protocol.

What its errors mean for a transaction: after `retriable` the same call may be repeated; after `txn_requires_abort` the transaction must
be aborted; `fatal` ends the producer.

A commit that fails with `txn_requires_abort` is Unknown here: the library may bump its epoch instead of aborting, which also succeeds
after a commit whose answer was lost.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from confluent_kafka import KafkaError as LibraryError
from confluent_kafka import KafkaException, Message
from confluent_kafka import Producer as LibraryProducer
from confluent_kafka import TopicPartition as LibraryPartition

from barnabas.security.client_security import ClientSecurity
from barnabas.verify.librdkafka_settings import steady
from barnabas.verify.producers import Abortable, ProducerError, Refused, TopicPartition, Unknown

_CALL_SECONDS = 5.0


class LibrdkafkaProducer:
    """See `producers.Producer`.

    Args:
        bootstrap: the cluster.
        transactional_id: None for a plain idempotent producer.
        timeout_s: every call ends within it.
        transaction_timeout_ms: the broker aborts after it.
        security: TLS and the login.

    Raises:
        Refused, Unknown: the transactional id is not initialized.
    """

    def __init__(
        self,
        bootstrap: str,
        transactional_id: str | None,
        *,
        timeout_s: float,
        transaction_timeout_ms: int,
        security: ClientSecurity | None = None,
    ) -> None:
        self.timeout_s = timeout_s
        settings: dict[str, Any] = {
            **steady(bootstrap, security), "enable.idempotence": True, "linger.ms": 0, "retry.backoff.ms": 20,
            "retry.backoff.max.ms": 200, "socket.timeout.ms": 10_000, "message.timeout.ms": int(timeout_s * 1000),
        }  # fmt: skip
        if transactional_id is not None:
            settings["transactional.id"] = transactional_id
            settings["transaction.timeout.ms"] = transaction_timeout_ms
            # The library rejects a longer timeout for one record than for the transaction.
            settings["message.timeout.ms"] = min(transaction_timeout_ms, settings["message.timeout.ms"])
        self.transactional = transactional_id is not None
        self.producer = LibraryProducer(settings)
        self._results: list[LibraryError | int | None] = []
        if self.transactional:
            self._repeat(self.producer.init_transactions)

    def _repeat(self, call: Callable[..., Any], *arguments: Any) -> None:
        """Call until it succeeds, as long as the library calls the error retriable."""
        deadline = time.monotonic() + self.timeout_s
        while True:
            try:
                call(*arguments, _CALL_SECONDS)
                return
            except KafkaException as raised:
                error = raised.args[0]
                if error.txn_requires_abort():
                    raise Abortable(str(error)) from None
                if not error.retriable() or error.fatal():
                    raise Refused(str(error)) from None
                if time.monotonic() > deadline:
                    raise Unknown(f"still failing after {self.timeout_s:.0f} s: {error}") from None

    def begin(self) -> None:
        self._results.clear()
        try:
            self.producer.begin_transaction()
        except KafkaException as raised:
            raise Refused(str(raised.args[0])) from None

    def send(self, topic: str, partition: int, value: bytes) -> None:
        place = len(self._results)
        self._results.append(None)

        def delivered(error: LibraryError | None, message: Message) -> None:
            if place < len(self._results):
                self._results[place] = error if error is not None else message.offset()

        try:
            self.producer.produce(topic, value, partition=partition, on_delivery=delivered)
        except (KafkaException, BufferError) as raised:
            self._results.pop()
            raise (Abortable if self.transactional else Refused)(str(raised)) from None

    def flush(self) -> list[int | None]:
        try:
            unanswered = self.producer.flush(self.timeout_s)
        except KafkaException as raised:
            self._results = []
            raise (Refused if self.transactional else Unknown)(str(raised.args[0])) from None
        results, self._results = self._results, []
        failures = [each for each in results if each is not None and not isinstance(each, int)]
        if failures or unanswered:
            what = str(failures[0]) if failures else "no acknowledgement in time"
            # A plain record that timed out may be in the log; a transactional one counts only if the transaction commits.
            raise (Abortable if self.transactional else Unknown)(what)
        return [offset if isinstance(offset, int) and offset >= 0 else None for offset in results]

    def send_offsets(self, positions: Mapping[TopicPartition, int], group_metadata: bytes) -> None:
        listed = [LibraryPartition(topic, partition, position) for (topic, partition), position in positions.items()]
        try:
            self._repeat(self.producer.send_offsets_to_transaction, listed, group_metadata)
        except Unknown as error:
            raise Abortable(str(error)) from None

    def commit(self) -> None:
        try:
            self._repeat(self.producer.commit_transaction)
        except Abortable as error:
            raise Unknown(str(error)) from None
        except Refused as error:
            # The broker may have carried out a request before the fatal error.
            raise Unknown(str(error)) from None

    def abort(self) -> None:
        try:
            self._repeat(self.producer.abort_transaction)
        except ProducerError as error:
            raise Refused(str(error)) from None

    def close(self) -> None:
        self.producer.purge()
