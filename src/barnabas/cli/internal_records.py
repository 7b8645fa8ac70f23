"""`consume -f decoded`: the records of internal topics as JSON, by the protocol's own record types.

    __consumer_offsets  __transaction_state  __share_group_state
        key    int16 type | fields        value  int16 version | fields
    __cluster_metadata
        value  uvarint 1 | uvarint type | uvarint version | fields

A key is `{"type", "name", "data"}` and a value is `{"version", "data"}`, with Kafka's names of the fields, as Kafka's own formatters of the
console consumer print them; UUIDs in their 22 characters, other bytes in base64. Of a classic group of consumers, the members'
subscriptions and assignments are read, too. What this release does not know, and every record of another topic, is printed as `json` does.

Brokers do not serve `__cluster_metadata` to consumers; it is decoded where it can be read, as in a copy of its records.

Sources: Kafka's `CoordinatorRecordMessageFormatter`, `MetadataRecordSerde`.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any

from confluent_kafka import Message

from barnabas.cli.record_format import Shown, json_line, json_object
from barnabas.client.library_message import fields_of
from barnabas.protocol.errors import KafkaError, MalformedMessage
from barnabas.protocol.message import Message as Record
from barnabas.protocol.messages import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    GroupMetadataValue,
    coordinator_key_class,
    coordinator_value_class,
)
from barnabas.protocol.primitives import uuid_to_str
from barnabas.protocol.schema import MessageSpec, StructSpec
from barnabas.protocol.topic_names import CLUSTER_METADATA, GROUP_METADATA, SHARE_GROUP_STATE, TRANSACTION_STATE
from barnabas.protocol.versioned import decode_consumer_protocol, decode_metadata_record, read_prefix

_FAMILIES = {GROUP_METADATA: "group", TRANSACTION_STATE: "transaction", SHARE_GROUP_STATE: "share"}
DECODED_TOPICS = frozenset({*_FAMILIES, CLUSTER_METADATA})


def decoded_lines(messages: Sequence[Message]) -> bytes:
    """Return messages as lines of JSON, with fields where the topic's records are known."""
    return b"".join(map(_line, messages))


def _line(message: Message) -> bytes:
    shown = Shown(*fields_of(message))
    found = json_object(shown)
    try:
        fields = decoded(shown.topic, shown.key, shown.value)
    except (KafkaError, MalformedMessage, KeyError):
        fields = {}
    for name in fields:
        found.pop(f"{name}_base64", None)
    # The same order as in every other line.
    names = ("topic", "partition", "offset", "timestamp", "key", "key_base64", "value", "value_base64", "headers")
    merged = {**found, **fields}
    return json_line({name: merged[name] for name in names if name in merged})


def decoded(topic: str, key: bytes | None, value: bytes | None) -> dict[str, Any]:
    """Return the key and the value of a record as JSON values; only those that are known.

    Raises:
        MalformedMessage, KafkaError, KeyError: this release cannot read the record.
    """
    if topic == CLUSTER_METADATA:
        return {} if value is None else {"value": _metadata(value)}
    family = _FAMILIES.get(topic)
    if family is None or key is None:
        return {}
    type_id = read_prefix(key)
    record = coordinator_key_class(family, type_id).decode(memoryview(key)[2:], 0)
    found: dict[str, Any] = {"key": {"type": type_id, "name": record.NAME, "data": _fields(record, 0)}}
    if value is not None:
        version = read_prefix(value)
        body = coordinator_value_class(family, type_id).decode(memoryview(value)[2:], version)
        found["value"] = {"version": version, "data": _fields(body, version)}
    return found


def _metadata(value: bytes) -> dict[str, Any]:
    record = decode_metadata_record(value)
    return {"type": record.API_KEY, "name": record.NAME, "data": _fields(record, record.MAX_VERSION)}


def _fields(record: Record, version: int) -> dict[str, Any]:
    found = _struct(record, record.SPEC.root, record.SPEC, version)
    if isinstance(record, GroupMetadataValue) and record.protocol_type == "consumer":
        for member, shown in zip(record.members, found["members"], strict=True):
            shown["subscription"] = _of_consumers(ConsumerProtocolSubscription, member.subscription)
            shown["assignment"] = _of_consumers(ConsumerProtocolAssignment, member.assignment)
    return found


def _of_consumers(kind: type[Record], data: bytes) -> object:
    """Return what a member of a classic group says in the protocol of consumers; in base64 if it says something else."""
    if not data:
        return None
    try:
        return _fields(decode_consumer_protocol(kind, data), kind.MAX_VERSION)
    except MalformedMessage:
        return base64.b64encode(data).decode()


def _struct(value: Any, struct: StructSpec, spec: MessageSpec, version: int) -> dict[str, Any]:
    found = {}
    for field in struct.fields:
        if version in field.versions:
            content = getattr(value, field.name)
            name = field.kafka_name[0].lower() + field.kafka_name[1:]
            if field.is_array and content is not None:
                found[name] = [_value(each, field.type, spec, version) for each in content]
            else:
                found[name] = _value(content, field.type, spec, version)
    return found


def _value(content: Any, kind: str, spec: MessageSpec, version: int) -> Any:
    if content is None:
        return None
    if kind in spec.structs:
        return _struct(content, spec.structs[kind], spec, version)
    if kind == "uuid":
        return uuid_to_str(content)
    if isinstance(content, (bytes, bytearray, memoryview)):
        return base64.b64encode(content).decode()
    return content
