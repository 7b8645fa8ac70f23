"""A principal in bytes, as a broker passes it to the controller with a client's request (KIP-590).

    int16 version (0) | compact string type | compact string name | bool token authenticated | tag buffer

Source: Kafka's `DefaultKafkaPrincipalBuilder`, whose encoding every broker and controller with default settings reads.
"""

from __future__ import annotations

import struct

from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages import DefaultPrincipalData
from barnabas.security.principal import Principal

__all__ = ["read_principal", "write_principal"]

_VERSION = struct.Struct(">h")


def write_principal(principal: Principal) -> bytes:
    """Return a principal's bytes."""
    version = DefaultPrincipalData.MAX_VERSION
    data = DefaultPrincipalData(type=principal.type, name=principal.name, token_authenticated=principal.by_token)
    return _VERSION.pack(version) + data.encode(version)


def read_principal(data: bytes | memoryview | None) -> Principal:
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
    return Principal(principal.type, principal.name, principal.token_authenticated)
