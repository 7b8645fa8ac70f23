"""Metadata records as bytes. Control plane, pure.

    value of a log record = uvarint frame version (1) | uvarint record type | uvarint record version | fields

The record version follows from the finalized metadata.version, so that every reader the cluster admits can read it;
keys are never set. `metadata_version` holds those facts.

Sources: Kafka's `MetadataRecordSerde`, `AbstractApiMessageSerde`.
"""

from __future__ import annotations

from barnabas.metadata.metadata_version import record_version
from barnabas.protocol.errors import MalformedMessage
from barnabas.protocol.message import Message
from barnabas.protocol.messages import metadata_record_class

MetadataRecord = Message
FRAME_VERSION = 1


class UnknownRecord(Exception):
    """A committed record that this version cannot read or replay; going on would mean another state than the log's."""


def encode_record(record: MetadataRecord, metadata_version: int) -> bytes:
    """One record as the value of a log record, in the version that this metadata.version calls for."""
    version = record_version(record.NAME, metadata_version)
    assert record.API_KEY is not None and record.API_KEY < 0x80 and version < 0x80, "types and versions take one byte"
    out = bytearray((FRAME_VERSION, record.API_KEY, version))
    record.write(out, version)
    return bytes(out)


def _read_uvarint(value: bytes, position: int) -> tuple[int, int]:
    result = shift = 0
    while position < len(value) and shift < 35:
        byte = value[position]
        position += 1
        result |= (byte & 0x7F) << shift
        if byte < 0x80:
            return result, position
        shift += 7
    raise MalformedMessage("a metadata record's frame is cut short")


def decode_record(value: bytes) -> MetadataRecord:
    """The value of a log record to its message.

    Raises:
        MalformedMessage: the bytes are no metadata record.
        UnknownRecord: they are one of a type or version from a later Kafka.
    """
    frame, position = _read_uvarint(value, 0)
    if frame != FRAME_VERSION:
        raise UnknownRecord(f"a metadata record has frame version {frame}; this version reads {FRAME_VERSION}")
    record_type, position = _read_uvarint(value, position)
    version, position = _read_uvarint(value, position)
    try:
        record_class = metadata_record_class(record_type)
    except KeyError:
        raise UnknownRecord(f"a metadata record has type {record_type}, which this version does not know") from None
    if not record_class.MIN_VERSION <= version <= record_class.MAX_VERSION:
        raise UnknownRecord(f"{record_class.NAME} has version {version}, later than this version reads")
    message, end = record_class.read(value, position, version)
    if end != len(value):
        raise MalformedMessage(f"{record_class.NAME} v{version}: {len(value) - end} bytes follow the record")
    return message
