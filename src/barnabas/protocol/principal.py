"""A principal in bytes, as a broker passes it to the controller with a client's request (KIP-590).

    int16 version (0) | compact string type | compact string name | bool token authenticated | tag buffer

Here a principal is one string, `User:alice`.

Source: Kafka's `DefaultKafkaPrincipalBuilder`, whose encoding every broker and controller with default settings reads.
"""

from __future__ import annotations

import struct

from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages import DefaultPrincipalData

__all__ = ["read_principal", "write_principal"]

_VERSION = struct.Struct(">h")


def write_principal(principal: str) -> bytes:
    """Return a principal's bytes; `principal` has its type in front: `User:alice`."""
    kind, _, name = principal.partition(":")
    version = DefaultPrincipalData.MAX_VERSION
    return _VERSION.pack(version) + DefaultPrincipalData(type=kind, name=name).encode(version)


def read_principal(data: bytes | memoryview | None) -> str:
    """Return the principal; bytes that follow it are ignored, as in Kafka.

    Raises:
        KafkaError: PRINCIPAL_DESERIALIZATION_FAILURE, these bytes are not a principal.
    """
    try:
        (version,) = _VERSION.unpack_from(data or b"")
        principal, _ = DefaultPrincipalData.read(data or b"", _VERSION.size, version)
    except (struct.error, KafkaError):
        raise KafkaError(
            ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE, "Failed to deserialize client principal from envelope"
        ) from None
    return f"{principal.type}:{principal.name}"
