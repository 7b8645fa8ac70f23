"""Metadata records as bytes.

    value of a log record = uvarint frame version (1) | uvarint record type | uvarint record version | fields

The record version follows from the finalized metadata.version, so that every reader the cluster admits can read it;
keys are never set. `metadata_version` holds those facts.

Sources: Kafka's `MetadataRecordSerde`, `AbstractApiMessageSerde`.
"""

from __future__ import annotations

from barnabas.metadata.metadata_version import record_version
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.message import Message
from barnabas.protocol.versioned import decode_metadata_record, encode_metadata_record

MetadataRecord = Message


class UnknownRecord(Exception):
    """This version cannot read or replay a committed record, so its state would differ from the log's."""


def encode_record(record: MetadataRecord, metadata_version: int) -> bytes:
    """One record as the value of a log record, in the version that this metadata.version calls for."""
    return encode_metadata_record(record, record_version(record.NAME, metadata_version))


def decode_record(value: bytes) -> MetadataRecord:
    """Return the message in the value of a log record.

    Raises:
        MalformedMessage: the bytes are no metadata record.
        UnknownRecord: they are one of a type or version from a later Kafka.
    """
    try:
        return decode_metadata_record(value)
    except KafkaError as error:
        if error.code is ErrorCode.UNSUPPORTED_VERSION:
            raise UnknownRecord(f"the metadata log holds a record this version cannot read: {error.message}") from None
        raise
