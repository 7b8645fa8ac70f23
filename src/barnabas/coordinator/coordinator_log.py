"""Coordinator records in a partition's log: the seam, and the bytes (control plane).

    key   = record type id int16 | fields of the key message, version 0
    value = version int16        | fields of the value message          (absent: tombstone)

The type id stands where older brokers wrote "the version of the key", with the same numbers, so old and new logs read
alike. `CoordinatorLog` is all that a coordinator knows of a partition: append one batch, read all batches from the start.
`ReplicaCoordinatorLog` is that seam over the replica manager's internal writer.

Invariant: an append that raises has written nothing; one whose future fails may be in the log or not, and only a reload tells.

Sources: Kafka classes `CoordinatorRecordSerde`, `CoordinatorLoaderImpl`, `PartitionWriter`.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Iterable, Iterator
from typing import Any, Protocol

from barnabas.coordinator.result import CoordinatorRecord
from barnabas.protocol.errors import MalformedMessage
from barnabas.protocol.messages import coordinator_key_class, coordinator_value_class
from barnabas.records.builder import build_batch
from barnabas.records.compression import Compression

_PREFIX = struct.Struct(">h")

Buffer = bytes | bytearray | memoryview


class CoordinatorLog(Protocol):
    """The partitions of one internal topic, as a coordinator sees them."""

    def append(
        self, partition: int, batch: bytearray, *, guard: Any = None, transaction_version: int = 0
    ) -> asyncio.Future[int]:
        """Append one batch.

        Args:
            guard: proves that a transactional batch's transaction includes the partition.
            transaction_version: of the transaction that a marker ends.

        Returns: the last offset, once the batch is committed.
        Raises: KafkaError when nothing was appended.
        """
        ...

    def read(self, partition: int) -> Iterator[Buffer]:
        """Give buffers of whole batches, from the log start to the end that was committed."""
        ...


class InternalLog(Protocol):
    """What the replica manager offers to writers inside the broker."""

    def append_internal(
        self, topic: str, index: int, batch: bytearray, *, guard: Any = None, transaction_version: int = 0
    ) -> asyncio.Future[int]: ...

    def read_internal(self, topic: str, index: int, from_offset: int) -> Iterator[Buffer]: ...


class ReplicaCoordinatorLog:
    """`CoordinatorLog` over the replicas of this broker."""

    def __init__(self, replicas: InternalLog, topic: str) -> None:
        self._replicas = replicas
        self._topic = topic

    def append(
        self, partition: int, batch: bytearray, *, guard: Any = None, transaction_version: int = 0
    ) -> asyncio.Future[int]:
        return self._replicas.append_internal(
            self._topic, partition, batch, guard=guard, transaction_version=transaction_version
        )

    def read(self, partition: int) -> Iterator[Buffer]:
        return self._replicas.read_internal(self._topic, partition, 0)


class UnknownRecordType(Exception):
    """A record of a type that this coordinator does not know: written by a newer broker, or for another coordinator."""


class RecordSerde:
    """Turns the records of one coordinator family into bytes and back.

    Args:
        family: "group", "transaction" or "share": whose type ids these are.
    """

    def __init__(self, family: str) -> None:
        self._family = family

    def encode(self, record: CoordinatorRecord) -> tuple[bytes, bytes | None]:
        """Give the key's and the value's bytes."""
        key = _PREFIX.pack(record.type_id) + record.key.encode(0)
        if record.value is None:
            return key, None
        return key, _PREFIX.pack(record.value_version) + record.value.encode(record.value_version)

    def decode(self, key: Buffer, value: Buffer | None) -> CoordinatorRecord:
        """Read a record.

        Raises:
            UnknownRecordType: no such type, or a value of a newer version.
            MalformedMessage: the bytes are not what their type says.
        """
        type_id = _prefix_of(key)
        try:
            key_class = coordinator_key_class(self._family, type_id)
            value_class = coordinator_value_class(self._family, type_id)
        except KeyError:
            raise UnknownRecordType(f"{self._family} coordinator record of type {type_id}") from None
        key_message: Any = key_class.decode(memoryview(key)[2:], 0)
        if value is None:
            return CoordinatorRecord(type_id, key_message, None)
        version = _prefix_of(value)
        if not value_class.MIN_VERSION <= version <= value_class.MAX_VERSION:
            raise UnknownRecordType(f"{value_class.NAME} of version {version}")
        return CoordinatorRecord(type_id, key_message, value_class.decode(memoryview(value)[2:], version), version)


def _prefix_of(buffer: Buffer) -> int:
    if len(buffer) < _PREFIX.size:
        raise MalformedMessage("a coordinator record starts with two bytes for its type or version")
    (number,) = _PREFIX.unpack_from(buffer)
    return int(number)


def batches_of(
    records: Iterable[CoordinatorRecord],
    serde: RecordSerde,
    *,
    now_ms: int,
    max_batch_bytes: int,
    atomic: bool,
    compression: Compression = Compression.NONE,
    producer_id: int = -1,
    producer_epoch: int = -1,
) -> Iterator[tuple[list[CoordinatorRecord], bytearray]]:
    """Pack records into batches, one when `atomic`, else as many as `max_batch_bytes` asks for (sizes before compression).

    Args:
        producer_id, producer_epoch: of the transaction that the records belong to; -1 for none.
    """

    def packed() -> bytearray:
        return build_batch(
            encoded,
            compression=compression,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            transactional=producer_id >= 0,
        )

    chunk: list[CoordinatorRecord] = []
    encoded: list[tuple[int, bytes, bytes | None, list[tuple[str, bytes | None]]]] = []
    size = 0
    for record in records:
        key, value = serde.encode(record)
        record_bytes = len(key) + len(value or b"") + _RECORD_OVERHEAD_MAX
        if encoded and not atomic and size + record_bytes > max_batch_bytes - _BATCH_OVERHEAD:
            yield chunk, packed()
            chunk, encoded, size = [], [], 0
        chunk.append(record)
        encoded.append((now_ms, key, value, []))
        size += record_bytes
    if encoded:
        yield chunk, packed()


_BATCH_OVERHEAD = 61  # the header of a record batch
_RECORD_OVERHEAD_MAX = 21  # length, attributes, two deltas, two lengths and a header count, at their longest
