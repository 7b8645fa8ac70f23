"""Coordinator records in a partition's log: the seam, and the bytes.

    key   = record type id int16 | fields of the key message, version 0
    value = version int16        | fields of the value message          (absent: tombstone)

Older brokers wrote "the version of the key" in place of the type id, with the same numbers, so both read each other's logs.
`CoordinatorLog` is all that a coordinator knows of a partition: append one batch, ask if it would be accepted, read all batches from the
start, and wait until they are committed.
`ReplicaCoordinatorLog` implements it with the replica manager's internal writer.

Invariants:
- an append that raises has written nothing;
- the future of an append is done when the batch is committed, which means that the high watermark has passed it, or fails when this
  broker no longer leads the partition. It has no time limit. If it fails, the batch may be in the next leader's log or not.

Sources: Kafka classes `CoordinatorRecordSerde`, `CoordinatorLoaderImpl`, `PartitionWriter`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Protocol

from barnabas.coordinator.result import CoordinatorRecord
from barnabas.log.transaction_verification import VerificationGuard
from barnabas.protocol.messages import coordinator_key_class, coordinator_value_class
from barnabas.protocol.versioned import PREFIX, read_prefix
from barnabas.records.builder import RecordFields
from barnabas.records.record_batch import BATCH_OVERHEAD

Buffer = bytes | bytearray | memoryview


class CoordinatorLog(Protocol):
    """The partitions of one internal topic, as a coordinator sees them."""

    def append(
        self, partition: int, batch: bytearray, *, guard: VerificationGuard | None = None, transaction_version: int = 0
    ) -> asyncio.Future[int]:
        """Append one batch.

        Args:
            guard: proves that the transaction of a transactional batch includes the partition.
            transaction_version: of the transaction that a marker ends.

        Returns: a future of the last offset, done when the batch is committed; it fails if the leadership is lost before.
        Raises: KafkaError if nothing was appended.
        """
        ...

    def is_writable(self, partition: int) -> bool:
        """Return False if an append would be refused now; only the append itself finds out whether the disk takes it."""
        ...

    def read(self, partition: int) -> Iterator[Buffer]:
        """Return buffers of whole batches, from the log start to the log end; the last ones may not be committed yet."""
        ...

    def committed_offset(self, partition: int) -> int:
        """Return the high watermark: the records below it are committed, and no election can take it away.

        Raises: KafkaError if the partition is not here.
        """
        ...

    def commit_of(self, partition: int, last_offset: int) -> asyncio.Future[int]:
        """Return the future that an append up to `last_offset` would have.

        Raises: KafkaError if the partition is not here.
        """
        ...


class InternalLog(Protocol):
    """The part of the replica manager for the broker's own writers."""

    def append_internal(
        self,
        topic: str,
        index: int,
        batch: bytearray,
        *,
        guard: VerificationGuard | None = None,
        transaction_version: int = 0,
        timeout_ms: int | None = None,
    ) -> asyncio.Future[int]: ...

    def is_writable_internal(self, topic: str, index: int) -> bool: ...

    def read_internal(self, topic: str, index: int, from_offset: int) -> Iterator[Buffer]: ...

    def committed_offset_internal(self, topic: str, index: int) -> int: ...

    def commit_of_internal(self, topic: str, index: int, last_offset: int) -> asyncio.Future[int]: ...


class ReplicaCoordinatorLog:
    """`CoordinatorLog` over the replicas of this broker."""

    def __init__(self, replicas: InternalLog, topic: str) -> None:
        self._replicas = replicas
        self._topic = topic

    def append(
        self, partition: int, batch: bytearray, *, guard: VerificationGuard | None = None, transaction_version: int = 0
    ) -> asyncio.Future[int]:
        return self._replicas.append_internal(
            self._topic, partition, batch, guard=guard, transaction_version=transaction_version
        )

    def is_writable(self, partition: int) -> bool:
        return self._replicas.is_writable_internal(self._topic, partition)

    def read(self, partition: int) -> Iterator[Buffer]:
        return self._replicas.read_internal(self._topic, partition, 0)

    def committed_offset(self, partition: int) -> int:
        return self._replicas.committed_offset_internal(self._topic, partition)

    def commit_of(self, partition: int, last_offset: int) -> asyncio.Future[int]:
        return self._replicas.commit_of_internal(self._topic, partition, last_offset)


class UnknownRecordType(Exception):
    """The record's type is not one of this coordinator's: a newer broker wrote it, or it belongs to another coordinator."""


class RecordSerde:
    """Turns the records of one coordinator family into bytes and back.

    Args:
        family: "group", "transaction" or "share": selects the table of type ids.
    """

    def __init__(self, family: str) -> None:
        self._family = family

    def encode(self, record: CoordinatorRecord) -> tuple[bytearray, bytearray | None]:
        """Return the bytes of the key and of the value."""
        key = bytearray(PREFIX.pack(record.type_id))
        record.key.write(key, 0)
        if record.value is None:
            return key, None
        value = bytearray(PREFIX.pack(record.value_version))
        record.value.write(value, record.value_version)
        return key, value

    def decode(self, key: Buffer, value: Buffer | None) -> CoordinatorRecord:
        """Read a record.

        Raises:
            UnknownRecordType: the type is unknown, or the value's version is newer.
            MalformedMessage: the bytes do not parse as their type.
        """
        type_id = read_prefix(key)
        try:
            key_class = coordinator_key_class(self._family, type_id)
            value_class = coordinator_value_class(self._family, type_id)
        except KeyError:
            raise UnknownRecordType(f"{self._family} coordinator record of type {type_id}") from None
        key_message: Any = key_class.decode(memoryview(key)[2:], 0)
        if value is None:
            return CoordinatorRecord(type_id, key_message, None)
        version = read_prefix(value)
        if not value_class.MIN_VERSION <= version <= value_class.MAX_VERSION:
            raise UnknownRecordType(f"{value_class.NAME} of version {version}")
        return CoordinatorRecord(type_id, key_message, value_class.decode(memoryview(value)[2:], version), version)


def fields_of(records: Iterable[CoordinatorRecord], serde: RecordSerde, now_ms: int) -> list[RecordFields]:
    """Encode records for `build_batch`."""
    encode = serde.encode
    return [(now_ms, *encode(record), ()) for record in records]


def size_of(fields: RecordFields) -> int:
    """Return how many bytes a record takes at most in an uncompressed batch."""
    _, key, value, _ = fields
    return len(key or b"") + len(value or b"") + _RECORD_OVERHEAD_MAX


def lengths_of_batches(encoded: Sequence[RecordFields], max_batch_bytes: int) -> Iterator[int]:
    """Split records over batches of limited size (before compression).

    Returns: how many records go into each batch; one that is too large has a batch for itself.
    """
    count = 0
    size = BATCH_OVERHEAD
    for fields in encoded:
        record_bytes = size_of(fields)
        if count and size + record_bytes > max_batch_bytes:
            yield count
            count, size = 0, BATCH_OVERHEAD
        count += 1
        size += record_bytes
    yield count


_RECORD_OVERHEAD_MAX = 21  # length, attributes, two deltas, two lengths and a header count, at their longest
