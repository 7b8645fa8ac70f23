"""Reads the committed records of partitions from one offset to another, without a group."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from confluent_kafka import Consumer, IsolationLevel, KafkaError, KafkaException, Message, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from barnabas.client.library_message import fields_of
from barnabas.retries.record import Record

Where = tuple[str, int]

READER_SETTINGS: dict[str, Any] = {
    "isolation.level": "read_committed",
    "enable.partition.eof": True,
    "enable.auto.commit": False,
    # Records that are deleted while they are read are an error, never left out.
    "auto.offset.reset": "error",
    "fetch.wait.max.ms": 10,
}
"""The settings of a consumer for `read_committed`; it also needs a `group.id`, but joins no group."""
_PATIENCE_SECONDS = 120.0
_CALL_SECONDS = 30.0
_RETRY_SECONDS = 0.2
_NOT_REACHED = frozenset(
    {KafkaError._ALL_BROKERS_DOWN, KafkaError._TRANSPORT, KafkaError._TIMED_OUT, KafkaError.NOT_LEADER_FOR_PARTITION}
)
"""Errors of a leader that was stopped, or moved; the library calls them not retriable."""
_BATCH_RECORDS = 1000
# The library waits so long for a whole batch, at the end of each partition too.
_POLL_SECONDS = 0.05


def read_committed(
    consumer: Consumer,
    begin: Mapping[Where, int],
    ends: Mapping[Where, int] | None = None,
    *,
    clock: Callable[[], float] = time.monotonic,
) -> Iterator[Record]:
    """Yield the committed records that partitions have now, those of a partition in their order; see `read_messages`."""
    for _, record in read_messages(consumer, begin, ends, clock=clock):
        yield record


def read_messages(
    consumer: Consumer,
    begin: Mapping[Where, int],
    ends: Mapping[Where, int] | None = None,
    *,
    skips_deleted: bool = True,
    clock: Callable[[], float] = time.monotonic,
) -> Iterator[tuple[Message, Record]]:
    """Yield the same records, each with the library's message.

    Args:
        consumer: with `READER_SETTINGS`.
        begin: the first offset of each partition; a negative one, or one that is gone, is the beginning of its log.
        ends: where to stop in each partition (`log_ends`): waits for the transactions that are open before there. None leaves the records
            of open transactions out, and those behind them.
        skips_deleted: if not, a first offset that is gone is an error.

    Raises:
        KafkaException: a partition cannot be read, a transaction stays open, or records were deleted while they were read.
    """
    left: dict[Where, int] = {}
    assigned = []
    deadline = clock() + _PATIENCE_SECONDS
    for where, offset in begin.items():
        low, stable = _bounds(consumer, where, deadline, clock)
        end = stable if ends is None else ends[where]
        first = max(offset, low) if skips_deleted else offset
        if first < end:
            left[where] = end
            assigned.append(TopicPartition(*where, first))
    consumer.assign(assigned)
    deadline = clock() + _PATIENCE_SECONDS
    while left:
        messages = consumer.consume(_BATCH_RECORDS, _POLL_SECONDS)
        for message in messages:
            record = record_of(message)
            where = (record.topic, record.partition)
            error = message.error()
            if error is None:
                deadline = clock() + _PATIENCE_SECONDS
                if where in left and record.offset < left[where]:
                    yield message, record
                if record.offset + 1 >= left.get(where, 0):
                    left.pop(where, None)
            elif error.code() == KafkaError._PARTITION_EOF:
                if record.offset >= left.get(where, 0):
                    left.pop(where, None)
            elif error.code() == KafkaError._AUTO_OFFSET_RESET:
                text = f"{record.topic}-{record.partition} lost records while it was read, by retention or `topic trim`"
                raise KafkaException(KafkaError(KafkaError._AUTO_OFFSET_RESET, text))
            elif not error.retriable():
                raise KafkaException(error)
        if left and clock() > deadline:
            topic, partition = min(left)
            text = f"cannot read {topic}-{partition} to its end; `barnabas txn doctor {topic}` says what holds readers back"
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT, text))
    consumer.unassign()


def _bounds(consumer: Consumer, where: Where, deadline: float, clock: Callable[[], float]) -> tuple[int, int]:
    """Return the log start and the last stable offset of a partition; ask again while its leader cannot be reached.

    Raises:
        KafkaException: the partition cannot be read, or its leader does not answer until the deadline.
    """
    while True:
        try:
            bounds: tuple[int, int] = consumer.get_watermark_offsets(TopicPartition(*where), timeout=_CALL_SECONDS)
            return bounds
        except KafkaException as failure:
            error = failure.args[0]
            if clock() > deadline or not (error.retriable() or error.code() in _NOT_REACHED):
                raise
            # The library fails if it has no connection, and makes one meanwhile.
            consumer.poll(_RETRY_SECONDS)


def last_of_key(consumer: Consumer, admin: AdminClient, topic: str, key: bytes) -> Record | None:
    """Return the last committed record of a key in the only partition of a topic; None if there is none.

    Raises:
        KafkaException: the topic cannot be read.
    """
    found = None
    for record in read_committed(consumer, {(topic, 0): 0}, log_ends(admin, [(topic, 0)])):
        if record.key == key:
            found = record
    return found


def log_ends(admin: AdminClient, partitions: Iterable[Where]) -> dict[Where, int]:
    """Return where the logs of partitions end, behind the transactions that are open.

    Raises:
        KafkaException: a partition's leader does not answer.
    """
    wanted = {TopicPartition(*where): OffsetSpec.latest() for where in partitions}  # type: ignore[no-untyped-call]
    if not wanted:
        return {}
    found = admin.list_offsets(wanted, isolation_level=IsolationLevel.READ_UNCOMMITTED, request_timeout=_CALL_SECONDS)
    return {(each.topic, each.partition): future.result().offset for each, future in found.items()}


def record_of(message: Message) -> Record:
    """Return a message of the library as a record."""
    return Record(*fields_of(message))
