"""Messages outside requests, which carry their own version in front of them.

    versioned         int16 version | fields                                     version of a value; type of a coordinator's key
    metadata record   uvarint frame version (1) | uvarint type | uvarint version | fields

The first form is used within the fields of classic groups (`ConsumerProtocolSubscription`, `ConsumerProtocolAssignment`) and by
the values of the coordinators' logs. Their keys look alike, but there the int16 is the **type** of the record, and the fields
always have version 0: one log holds old and new types. The second form is used in `__cluster_metadata`.

Invariants:
- A reader takes the whole buffer. The one exception is the classic consumer protocol, where a newer version may only add fields
  at the end: it is read as the newest version known, and what follows is left unread, as Kafka's clients do.

Sources: Kafka's `MessageUtil`, `ConsumerProtocol`, `CoordinatorRecordSerde`, `MetadataRecordSerde`,
`AbstractApiMessageSerde`; KIP-630, KIP-915 (a loader skips records of unknown types).
"""

from __future__ import annotations

import struct
from typing import TypeVar

from barnabas.protocol.errors import EncodeError, ErrorCode, KafkaError, MalformedMessage
from barnabas.protocol.message import Message
from barnabas.protocol.messages import coordinator_key_class, coordinator_value_class, metadata_record_class
from barnabas.protocol.primitives import Buffer, read_uvarint, write_uvarint

AnyMessage = TypeVar("AnyMessage", bound=Message)
PREFIX = struct.Struct(">h")
METADATA_FRAME_VERSION = 1


def encode_versioned(message: Message, version: int) -> bytes:
    """Return a version and the message in it. Raises as `Message.encode`."""
    out = bytearray(PREFIX.pack(version))
    message.write(out, version)
    return bytes(out)


def read_prefix(buf: Buffer) -> int:
    """Return the int16 in front: a version, or the type of a coordinator's key.

    Raises:
        MalformedMessage: there are fewer than two bytes.
    """
    if len(buf) < PREFIX.size:
        raise MalformedMessage(f"{len(buf)} bytes hold no version")
    return int(PREFIX.unpack_from(buf)[0])


def decode_versioned(cls: type[AnyMessage], buf: Buffer) -> AnyMessage:
    """Read a version and the message in it.

    Raises:
        MalformedMessage: the bytes are no such message.
        KafkaError: UNSUPPORTED_VERSION, the version is not one this release knows.
    """
    version = read_prefix(buf)
    message, pos = cls.read(buf, PREFIX.size, version)
    if pos != len(buf):
        raise MalformedMessage(f"{cls.NAME} v{version}: {len(buf) - pos} bytes follow the message")
    return message


def decode_consumer_protocol(cls: type[AnyMessage], buf: Buffer) -> AnyMessage:
    """Read a subscription or an assignment of a classic consumer; newer versions as the newest known, with what follows unread.

    Raises:
        MalformedMessage: the bytes are no such message.
    """
    version = read_prefix(buf)
    if version < cls.MIN_VERSION:
        raise MalformedMessage(f"{cls.NAME}: version {version}")
    return cls.read(buf, PREFIX.size, min(version, cls.MAX_VERSION))[0]


def encode_coordinator_key(key: Message) -> bytes:
    """Return a coordinator's record type and its key."""
    assert key.KIND == "coordinator-key", key.NAME
    assert key.API_KEY is not None
    out = bytearray(PREFIX.pack(key.API_KEY))
    key.write(out, key.MIN_VERSION)
    return bytes(out)


def decode_coordinator_record(family: str, key: Buffer, value: Buffer | None) -> tuple[Message, Message | None]:
    """Read a record of a coordinator's log.

    Args:
        family: `group`, `transaction` or `share`.
        value: None for a tombstone.

    Returns:
        Key and value; the value of a tombstone is None.

    Raises:
        KafkaError: UNSUPPORTED_VERSION, the type or the version of the value is unknown; a loader skips an unknown type.
        MalformedMessage: the bytes are no such messages.
    """
    type_id = read_prefix(key)
    try:
        key_class = coordinator_key_class(family, type_id)
    except KeyError:
        raise KafkaError(
            ErrorCode.UNSUPPORTED_VERSION, f"no record of a {family} coordinator has type {type_id}"
        ) from None
    read, pos = key_class.read(key, PREFIX.size, key_class.MIN_VERSION)
    if pos != len(key):
        raise MalformedMessage(f"{key_class.NAME}: {len(key) - pos} bytes follow the key")
    return read, None if value is None else decode_versioned(coordinator_value_class(family, type_id), value)


def encode_metadata_record(message: Message, version: int) -> bytes:
    """Return a record of `__cluster_metadata`. Raises as `Message.encode`."""
    if message.KIND != "metadata" or message.API_KEY is None:
        raise EncodeError(f"{message.NAME} is no metadata record")
    out = bytearray()
    write_uvarint(out, METADATA_FRAME_VERSION)
    write_uvarint(out, message.API_KEY)
    write_uvarint(out, version)
    message.write(out, version)
    return bytes(out)


def decode_metadata_record(buf: Buffer) -> Message:
    """Read a record of `__cluster_metadata`; its class is the record's type.

    Raises:
        MalformedMessage: the bytes are no metadata record.
        KafkaError: UNSUPPORTED_VERSION, the type or its version is unknown to this release.
    """
    end = len(buf)
    frame_version, pos = read_uvarint(buf, 0, end)
    if frame_version != METADATA_FRAME_VERSION:
        raise MalformedMessage(f"a metadata record of frame version {frame_version}")
    type_id, pos = read_uvarint(buf, pos, end)
    version, pos = read_uvarint(buf, pos, end)
    try:
        cls = metadata_record_class(type_id)
    except KeyError:
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, f"no metadata record has type {type_id}") from None
    message, pos = cls.read(buf, pos, version)
    if pos != end:
        raise MalformedMessage(f"{cls.NAME} v{version}: {end - pos} bytes follow the record")
    return message
