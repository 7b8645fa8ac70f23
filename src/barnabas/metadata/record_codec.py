"""Metadata records as bytes. Control plane, pure.

    value of a log record = uvarint frame version (1) | uvarint record type | uvarint record version | fields

The record version follows from the finalized metadata.version, so that every reader the cluster admits can read it;
keys are never set. `metadata_version` holds those facts.

Sources: Kafka's `MetadataRecordSerde`, `AbstractApiMessageSerde`.
"""

from __future__ import annotations

from typing import Protocol

from barnabas.metadata.metadata_version import record_version
from barnabas.protocol import messages


class MetadataRecord(Protocol):
    """What every record class has."""

    NAME: str

    def encode(self, version: int) -> bytes: ...


def encode_record(record: MetadataRecord, metadata_version: int) -> bytes:
    return messages.encode_metadata_record(record, record_version(record.NAME, metadata_version))


def decode_record(value: bytes | memoryview) -> MetadataRecord:
    """One record's value to its message; raises MalformedMessage, or UnknownRecord's cause for an unknown type."""
    return messages.decode_metadata_record(value)
