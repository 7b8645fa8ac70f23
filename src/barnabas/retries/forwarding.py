"""The transactions of a consumer: records that it produces, and its positions, together or not at all.

The user's function has run before a transaction begins, so a transaction is open for milliseconds, and its timeout is no limit for the
function. What the coordinator or a broker rejects for the moment is sent again, in a new transaction, with the same records and
positions. If the group went on without the consumer, nothing of it counts: the partitions' new owner tries the records again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any, TypeVar

from confluent_kafka import KafkaError, KafkaException, Producer, TopicPartition

from barnabas.retries.record import Output

_ATTEMPTS = 5
_BATCH_RECORDS = 500
_CALL_SECONDS = 60.0
_ANY_PARTITION = -1
_LOOKS = 50
_GROUP_WENT_ON = frozenset(
    {
        KafkaError.ILLEGAL_GENERATION,
        KafkaError.UNKNOWN_MEMBER_ID,
        KafkaError.FENCED_INSTANCE_ID,
        KafkaError.REBALANCE_IN_PROGRESS,
    }
)

T = TypeVar("T")


class GroupWentOn(Exception):
    """The group's partitions have other owners: the transaction was aborted."""


class Forwarder:
    """Sends records and positions in transactions.

    Args:
        producer: with a transactional id; its transactions are initialised here, which aborts what an earlier producer of the id left.
    """

    def __init__(self, producer: Producer) -> None:
        self._producer = producer
        _insist(producer.init_transactions)

    def __repr__(self) -> str:
        return f"<Forwarder queued={len(self._producer)}>"

    def send(self, outputs: Iterable[Output], positions: list[TopicPartition], group: Any = None) -> None:
        """Produce records and commit positions, in one transaction.

        Args:
            group: the consumer's group metadata; None if there are no positions.

        Raises:
            GroupWentOn: nothing was sent, and the consumer must join its group again.
            KafkaException: nothing was sent.
        """
        records = list(outputs)
        self._repeat(lambda: self._send(records, positions, group))

    def send_placed(self, outputs: Iterable[Output], notes: Callable[[list[int]], list[Output]]) -> None:
        """Produce records, then notes that tell where they are, in one transaction.

        Args:
            notes: gets the offset of each record in its partition, and returns records to send, too. It is called again if the
                transaction must be repeated. What it raises aborts the transaction.

        Raises:
            KafkaException: nothing was sent.
        """
        records = list(outputs)
        self._repeat(lambda: self._send_placed(records, notes))

    def _repeat(self, transaction: Callable[[], None]) -> None:
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                transaction()
                return
            except KafkaException as failure:
                error = failure.args[0]
                if not error.txn_requires_abort():
                    raise
                self._abort()
                if error.code() in _GROUP_WENT_ON:
                    raise GroupWentOn from failure
                if attempt == _ATTEMPTS:
                    raise

    def send_noted(
        self,
        outputs: Iterable[Output | None],
        notes: Callable[[], list[Output]],
        positions: Callable[[], list[TopicPartition]] = list,
        group: Any = None,
    ) -> dict[str, int]:
        """Produce records in transactions of a few hundred, each with the notes about them.

        Args:
            outputs: None asks for the records before it to be sent now. What it raises ends the call; the records after the last
                transaction are not sent, and no note says that they are.
            notes, positions: called before each transaction, for the records and positions that it also has.

        Returns:
            How many records were sent to each topic, without the notes.

        Raises:
            GroupWentOn, KafkaException: as `send`; the transactions before it are committed.
        """
        sent: dict[str, int] = {}
        batch: list[Output] = []

        def send_batch() -> None:
            if batch:
                self.send([*batch, *notes()], positions(), group)
                batch.clear()

        for output in outputs:
            if output is not None:
                batch.append(output)
                sent[output.topic] = sent.get(output.topic, 0) + 1
            if output is None or len(batch) >= _BATCH_RECORDS:
                send_batch()
        send_batch()
        return sent

    def _send(self, records: list[Output], positions: list[TopicPartition], group: Any) -> None:
        producer = self._producer
        producer.begin_transaction()
        for each in records:
            self._produce(each)
        if positions:
            _insist(lambda: producer.send_offsets_to_transaction(positions, group, _CALL_SECONDS))
        _insist(lambda: producer.commit_transaction(_CALL_SECONDS))

    def _send_placed(self, records: list[Output], notes: Callable[[list[int]], list[Output]]) -> None:
        producer = self._producer
        places = _Places(records)
        producer.begin_transaction()
        for number, each in enumerate(records):
            self._produce(each, places.callback(number))
        # In slices: Ctrl-C is seen between calls.
        for _ in range(int(_CALL_SECONDS)):
            if self._served(lambda: producer.flush(1.0)) == 0:
                break
        offsets = places.offsets()
        try:
            told = notes(offsets)
        except BaseException:
            with suppress(KafkaException):
                self._abort()
            raise
        for each in told:
            self._produce(each)
        _insist(lambda: producer.commit_transaction(_CALL_SECONDS))

    def _produce(self, output: Output, on_delivery: Callable[[Any, Any], None] | None = None) -> None:
        partition = _ANY_PARTITION if output.partition is None else output.partition
        looks = 0
        while True:
            try:
                self._producer.produce(
                    output.topic,
                    output.value,
                    output.key,
                    partition=partition,
                    timestamp=output.timestamp_ms or 0,
                    headers=list(output.headers),
                    on_delivery=on_delivery,
                )
                return
            except BufferError:
                self._served(lambda: self._producer.poll(1.0))
            except KafkaException as failure:
                # The library looks for new partitions of a topic every five minutes.
                if failure.args[0].code() != KafkaError._UNKNOWN_PARTITION or looks == _LOOKS:
                    raise
                looks += 1
                self._producer.list_topics(output.topic, _CALL_SECONDS)
                self._served(lambda: self._producer.poll(0.1))

    def _served(self, call: Callable[[], T]) -> T:
        """Call the library where it runs callbacks.

        A fatal error that it meets amid them, or what a signal's handler raises, is lost, and becomes a SystemError.
        """
        try:
            return call()
        except SystemError:
            # After a fatal error every call raises it again.
            self._producer.abort_transaction(_CALL_SECONDS)
            raise

    def _abort(self) -> None:
        # A produce request on its way would reach the coordinator after the abort (docs/delivery-guarantees.md).
        self._producer.flush(_CALL_SECONDS)
        _insist(lambda: self._producer.abort_transaction(_CALL_SECONDS))


class _Places:
    """The offsets that records of a transaction got, as the leaders acknowledged them."""

    def __init__(self, records: list[Output]) -> None:
        self._records = records
        self._offsets = [-1] * len(records)
        self._error: KafkaError | None = None

    def callback(self, number: int) -> Callable[[Any, Any], None]:
        def delivered(error: Any, message: Any) -> None:
            if error is None:
                self._offsets[number] = message.offset()
            elif self._error is None:
                output = self._records[number]
                reason = f"{output.topic}-{output.partition}: {error.str()}"
                self._error = KafkaError(error.code(), reason, False, False, True)

        return delivered

    def offsets(self) -> list[int]:
        """Return the offset of each record.

        Raises:
            KafkaException: one was not acknowledged, or its leader did not say where it is; the transaction must be aborted.
        """
        if self._error is None and min(self._offsets, default=0) < 0:
            self._error = KafkaError(KafkaError._TIMED_OUT, "a record has no offset yet", False, False, True)
        if self._error is not None:
            raise KafkaException(self._error)
        return self._offsets


def _insist(call: Callable[[], None]) -> None:
    """Repeat a call of the library that may be repeated, for as long as its own timeouts allow."""
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            call()
            return
        except KafkaException as failure:
            if not failure.args[0].retriable() or attempt == _ATTEMPTS:
                raise
