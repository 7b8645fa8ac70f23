"""The records of the coordinators' topics, by their types.

    key    int16 type | the key's fields, always of version 0
    value  int16 version | the value's fields

| topic | records |
|---|---|
| `__consumer_offsets` | committed offsets, and groups of all types |
| `__transaction_state` | transactional ids |
| `__share_group_state` | the delivery state of share partitions |

A type or version of a newer broker is shown as bytes, with its number.

Source: Kafka's `CoordinatorRecordType`.
"""

from __future__ import annotations

import struct
from functools import cache
from typing import Any
from uuid import UUID

from barnabas.decoding.plain_data import plain
from barnabas.protocol import messages
from barnabas.protocol.errors import KafkaError
from barnabas.protocol.message import Message, Struct
from barnabas.spark.decoding.bad_value import BadValue

_RECORDS = {
    "__consumer_offsets": (
        "LegacyOffsetCommit", "OffsetCommit", "GroupMetadata", "ConsumerGroupMetadata", "ConsumerGroupPartitionMetadata",
        "ConsumerGroupMemberMetadata", "ConsumerGroupTargetAssignmentMetadata", "ConsumerGroupTargetAssignmentMember",
        "ConsumerGroupCurrentMemberAssignment", "ConsumerGroupRegularExpression", "ShareGroupMetadata", "ShareGroupMemberMetadata",
        "ShareGroupTargetAssignmentMetadata", "ShareGroupTargetAssignmentMember", "ShareGroupCurrentMemberAssignment",
        "ShareGroupStatePartitionMetadata", "StreamsGroupMetadata", "StreamsGroupMemberMetadata", "StreamsGroupTopology",
        "StreamsGroupTargetAssignmentMetadata", "StreamsGroupTargetAssignmentMember", "StreamsGroupCurrentMemberAssignment",
    ),
    "__transaction_state": ("TransactionLog",),
    "__share_group_state": ("ShareSnapshot", "ShareUpdate"),
}  # fmt: skip
INTERNAL_TOPICS = frozenset(_RECORDS)

_int16 = struct.Struct(">h")


@cache
def _types(topic: str) -> dict[int, tuple[str, type[Message], type[Message]]]:
    found = {}
    for name in _RECORDS[topic]:
        key: type[Message] = getattr(messages, f"{name}Key")
        assert key.API_KEY is not None
        found[key.API_KEY] = name, key, getattr(messages, f"{name}Value")
    return found


def key_of(topic: str, data: bytes) -> dict[str, Any]:
    """Return the type and the fields of a key.

    Raises:
        BadValue: it is of no known type, or malformed.
    """
    name, key_class, _ = _type_of(topic, data)
    return {"type": name, **_fields(_decoded(key_class, data[_int16.size :], 0))}


def value_of(topic: str, key: bytes | None, data: bytes) -> dict[str, Any]:
    """Return the version and the fields of a value; its key has its type.

    Raises:
        BadValue: it is of no known type or version, or malformed.
    """
    name, _, value_class = _type_of(topic, key or b"")
    version = _number(data)
    if not value_class.MIN_VERSION <= version <= value_class.MAX_VERSION:
        raise BadValue(f"{name} of version {version} is of a newer broker")
    return {"version": version, **_fields(_decoded(value_class, data[_int16.size :], version))}


def _type_of(topic: str, key: bytes) -> tuple[str, type[Message], type[Message]]:
    number = _number(key)
    if number not in _types(topic):
        raise BadValue(f"{topic} has no records of type {number} that this version knows")
    return _types(topic)[number]


def _number(data: bytes) -> int:
    if len(data) < _int16.size:
        raise BadValue("it is too short for a record of the coordinator")
    number: int = _int16.unpack_from(data)[0]
    return number


def _decoded(message_class: type[Message], data: bytes, version: int) -> Message:
    try:
        return message_class.decode(data, version)
    except KafkaError as error:
        raise BadValue(str(error)) from None


def _fields(found: Struct) -> dict[str, Any]:
    return {name: _field(name, getattr(found, name)) for name in found.FIELDS}


def _field(name: str, value: Any) -> Any:
    if isinstance(value, Struct):
        return _fields(value)
    if isinstance(value, list):
        return [_field(name, each) for each in value]
    if isinstance(value, bytes) and name in ("topic_id", "topic_ids") and len(value) == 16:
        return str(UUID(bytes=bytes(value)))
    return plain(value)
