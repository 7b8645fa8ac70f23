"""Messages outside requests, which carry their own version in front of them.

    versioned         int16 version | fields                                     version of a value; type of a coordinator's key
    metadata record   uvarint frame version (1) | uvarint type | uvarint version | fields

The first form is used within the fields of classic groups (`ConsumerProtocolSubscription`, `ConsumerProtocolAssignment`) and by
the values of the coordinators' logs (`coordinator_log.RecordSerde`). Their keys look alike, but there the int16 is the **type** of
the record, and the fields always have version 0: one log holds old and new types. The second form is used in `__cluster_metadata`.

Invariants:
- A reader takes the whole buffer. The one exception is the classic consumer protocol, where a newer version may only add fields
  at the end: it is read as the newest version known, and what follows is left unread, as Kafka's clients do.

Sources: Kafka's `MessageUtil`, `ConsumerProtocol`, `MetadataRecordSerde`, `AbstractApiMessageSerde`; KIP-630.
"""

from __future__ import annotations

import struct
from typing import TypeVar

from barnabas.protocol.errors import EncodeError, ErrorCode, KafkaError, MalformedMessage
from barnabas.protocol.message import Message
from barnabas.protocol.messages import metadata_record_class
from barnabas.protocol.primitives import Buffer, read_uvarint, write_uvarint

AnyMessage = TypeVar("AnyMessage", bound=Message)
PREFIX = struct.Struct(">h")
METADATA_FRAME_VERSION = 1


def read_prefix(buf: Buffer) -> int:
    """Return the int16 in front: a version, or the type of a coordinator's key.

    Raises:
        MalformedMessage: there are fewer than two bytes.
    """
    if len(buf) < PREFIX.size:
        raise MalformedMessage(f"{len(buf)} bytes hold no version")
    return int(PREFIX.unpack_from(buf)[0])


def decode_consumer_protocol(cls: type[AnyMessage], buf: Buffer) -> AnyMessage:
    """Read a subscription or an assignment of a classic consumer; newer versions as the newest known, with what follows unread.

    Raises:
        MalformedMessage: the bytes are no such message.
    """
    version = read_prefix(buf)
    if version < cls.MIN_VERSION:
        raise MalformedMessage(f"{cls.NAME}: version {version}")
    return cls.read(buf, PREFIX.size, min(version, cls.MAX_VERSION))[0]


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
