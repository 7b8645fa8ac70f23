"""Control batches: records that brokers write for brokers, and that clients skip.

    key    version int16 = 0 | type int16
    value  type 0, 1 (abort, commit)   version int16 = 0 | coordinatorEpoch int32
           type 2 … 6                  a message of the protocol whose first field is its own version (int16)

A transaction ends with one marker in every partition it wrote to, in a batch of its own that carries the producer's id
and epoch (KIP-98). The quorum's log and its snapshots use types 2 to 6 (KIP-595, KIP-630, KIP-853). A control batch is
never compressed and has no sequence.

Sources: org.apache.kafka.common.record.{ControlRecordType, EndTransactionMarker, ControlRecordUtils}.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from enum import IntEnum
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from barnabas.protocol.errors import MalformedMessage
from barnabas.records.builder import build_batch
from barnabas.records.errors import InvalidRecord
from barnabas.records.record import Record
from barnabas.records.record_batch import NO_LEADER_EPOCH

if TYPE_CHECKING:
    from barnabas.protocol import messages

    QuorumMessage = (
        messages.LeaderChangeMessage
        | messages.SnapshotHeaderRecord
        | messages.SnapshotFooterRecord
        | messages.KRaftVersionRecord
        | messages.VotersRecord
    )

_key = struct.Struct(">hh")
_marker = struct.Struct(">hi")
_int16 = struct.Struct(">h")


class ControlRecordType(IntEnum):
    """The kind of a control record. UNKNOWN is a type of a newer Kafka; readers skip it."""

    UNKNOWN = -1
    ABORT = 0
    COMMIT = 1
    LEADER_CHANGE = 2
    SNAPSHOT_HEADER = 3
    SNAPSHOT_FOOTER = 4
    KRAFT_VERSION = 5
    KRAFT_VOTERS = 6


class EndTransactionMarker(NamedTuple):
    """The value of an abort or commit marker."""

    coordinator_epoch: int


class ControlRecord(NamedTuple):
    """A parsed control record: an `EndTransactionMarker`, the message of its type, or None for an unknown type."""

    type: ControlRecordType
    value: Any


@cache
def _message_class(kind: ControlRecordType) -> Any:
    # Imported late: only the quorum's log needs them.
    from barnabas.protocol import messages

    names = {
        ControlRecordType.LEADER_CHANGE: "LeaderChangeMessage",
        ControlRecordType.SNAPSHOT_HEADER: "SnapshotHeaderRecord",
        ControlRecordType.SNAPSHOT_FOOTER: "SnapshotFooterRecord",
        ControlRecordType.KRAFT_VERSION: "KRaftVersionRecord",
        ControlRecordType.KRAFT_VOTERS: "VotersRecord",
    }
    return getattr(messages, names[kind])


def control_key(kind: ControlRecordType) -> bytes:
    """Encode the key of a control record."""
    return _key.pack(0, kind)


def control_type(key: bytes | None) -> ControlRecordType:
    """Read a control record's type from its key.

    Raises:
        InvalidRecord: the key is missing or short, or its version negative.
    """
    if key is None or len(key) < _key.size:
        raise InvalidRecord("a control record needs a key of 4 bytes")
    version, kind = _key.unpack_from(key)
    if version < 0:
        raise InvalidRecord(f"control record key of version {version}")
    # Later versions may only add to the key, so its type is read whatever the version.
    return ControlRecordType(kind) if 0 <= kind <= ControlRecordType.KRAFT_VOTERS else ControlRecordType.UNKNOWN


def build_end_transaction_marker(
    *,
    commit: bool,
    coordinator_epoch: int,
    producer_id: int,
    producer_epoch: int,
    timestamp: int,
    base_offset: int = 0,
    leader_epoch: int = NO_LEADER_EPOCH,
) -> bytearray:
    """Build the batch that ends a producer's transaction in one partition."""
    kind = ControlRecordType.COMMIT if commit else ControlRecordType.ABORT
    return build_batch(
        [(timestamp, control_key(kind), _marker.pack(0, coordinator_epoch), ())],
        base_offset=base_offset,
        leader_epoch=leader_epoch,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        transactional=True,
        control=True,
    )


def build_control_batch(
    records: Iterable[tuple[ControlRecordType, QuorumMessage]],
    *,
    timestamp: int,
    base_offset: int = 0,
    leader_epoch: int = NO_LEADER_EPOCH,
) -> bytearray:
    """Build a control batch of the quorum: leader changes, KRaft version, voters, a snapshot's header or footer.

    Each message is encoded in the version that its `version` field names.
    """
    return build_batch(
        [(timestamp, control_key(kind), message.encode(message.version), ()) for kind, message in records],
        base_offset=base_offset,
        leader_epoch=leader_epoch,
        control=True,
    )


def parse_control_record(record: Record) -> ControlRecord:
    """Read a record of a control batch.

    Returns:
        The type with an `EndTransactionMarker`, a decoded message, or None for an unknown type.

    Raises:
        InvalidRecord: a malformed key or value.
    """
    kind = control_type(record.key)
    if kind is ControlRecordType.UNKNOWN:
        return ControlRecord(kind, None)
    value = record.value
    if value is None or len(value) < 2:
        raise InvalidRecord(f"control record {kind.name} without a value")
    if kind <= ControlRecordType.COMMIT:
        if len(value) < _marker.size:
            raise InvalidRecord(f"transaction marker of {len(value)} bytes")
        version, coordinator_epoch = _marker.unpack_from(value)
        if version < 0:
            raise InvalidRecord(f"transaction marker of version {version}")
        return ControlRecord(kind, EndTransactionMarker(coordinator_epoch))
    message_class = _message_class(kind)
    version = min(_int16.unpack_from(value)[0], message_class.MAX_VERSION)
    if version < 0:
        raise InvalidRecord(f"control record {kind.name} of version {version}")
    try:
        return ControlRecord(kind, message_class.decode(value, version))
    except MalformedMessage as error:
        raise InvalidRecord(f"control record {kind.name}: {error}") from None
