"""Payloads that carry their own version."""

from __future__ import annotations

import pytest

from barnabas.protocol.errors import EncodeError, ErrorCode, KafkaError, MalformedMessage
from barnabas.protocol.messages import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    OffsetCommitKey,
    OffsetCommitValue,
    TopicRecord,
    TransactionLogKey,
    TransactionLogValue,
    coordinator_key_class,
    coordinator_value_class,
    message_class,
    metadata_record_class,
)
from barnabas.protocol.schema import message_names, schema_index
from barnabas.protocol.versioned import (
    decode_consumer_protocol,
    decode_coordinator_record,
    decode_metadata_record,
    decode_versioned,
    encode_coordinator_key,
    encode_metadata_record,
    encode_versioned,
    read_prefix,
)
from tests.protocol.samples import Sampler


def test_versioned_golden() -> None:
    subscription = ConsumerProtocolSubscription(topics=["t"])
    encoded = encode_versioned(subscription, 0)
    # Version 0, one topic of one byte, no user data.
    assert encoded == bytes.fromhex("0000 00000001 0001 74 ffffffff")
    assert decode_versioned(ConsumerProtocolSubscription, encoded) == subscription


@pytest.mark.parametrize("data", [b"", b"\x00", b"\x00\x00\x00"])
def test_versioned_cut(data: bytes) -> None:
    with pytest.raises(MalformedMessage):
        decode_versioned(ConsumerProtocolSubscription, data)


def test_versioned_with_more_behind_or_unknown_version() -> None:
    encoded = encode_versioned(OffsetCommitValue(offset=1), 1)
    with pytest.raises(MalformedMessage):
        decode_versioned(OffsetCommitValue, encoded + b"\x00")
    with pytest.raises(KafkaError) as raised:
        decode_versioned(OffsetCommitValue, b"\x00\x63" + encoded[2:])
    assert raised.value.code is ErrorCode.UNSUPPORTED_VERSION


def test_a_later_consumer_protocol_is_read_as_the_newest_known() -> None:
    partitions = [ConsumerProtocolAssignment.TopicPartition(topic="t", partitions=[0, 1])]
    assignment = ConsumerProtocolAssignment(assigned_partitions=partitions, user_data=b"u")
    later = b"\x00\x09" + encode_versioned(assignment, 3)[2:] + b"fields to come"
    assert decode_consumer_protocol(ConsumerProtocolAssignment, later) == assignment
    with pytest.raises(MalformedMessage):
        decode_consumer_protocol(ConsumerProtocolAssignment, b"\xff\xff" + later[2:])


def test_coordinator_key_carries_its_type() -> None:
    key = OffsetCommitKey(group="g", topic="t", partition=2)
    value = OffsetCommitValue(offset=5, metadata="m", commit_timestamp=9)
    encoded = encode_coordinator_key(key)
    assert encoded.hex(" ") == "00 01 00 01 67 00 01 74 00 00 00 02"
    assert decode_coordinator_record("group", encoded, encode_versioned(value, 3)) == (key, value)
    assert decode_coordinator_record("group", encoded, None) == (key, None)
    transaction = TransactionLogKey(transactional_id="x")
    encoded = encode_coordinator_key(transaction)
    assert read_prefix(encoded) == 0
    log_value = TransactionLogValue(producer_id=4)
    assert decode_coordinator_record("transaction", encoded, encode_versioned(log_value, 1)) == (transaction, log_value)


def test_coordinator_record_that_cannot_be() -> None:
    with pytest.raises(KafkaError) as raised:
        decode_coordinator_record("group", b"\x03\xe7", None)
    assert raised.value.code is ErrorCode.UNSUPPORTED_VERSION
    encoded = encode_coordinator_key(OffsetCommitKey(group="g", topic="t", partition=2))
    for key in (b"", b"\x00", encoded[:-1], encoded + b"\x00"):
        with pytest.raises(MalformedMessage):
            decode_coordinator_record("group", key, None)


def test_every_coordinator_record() -> None:
    for family, types in schema_index()["coordinators"].items():
        for type_id in map(int, types):
            key_class, value_class = coordinator_key_class(family, type_id), coordinator_value_class(family, type_id)
            assert key_class.API_KEY == value_class.API_KEY == type_id
            assert key_class.MIN_VERSION == key_class.MAX_VERSION
            key = Sampler(key_class.NAME).message(key_class.NAME, key_class.MIN_VERSION)
            value = Sampler(value_class.NAME).message(value_class.NAME, value_class.MAX_VERSION)
            encoded = encode_versioned(value, value_class.MAX_VERSION)
            assert decode_coordinator_record(family, encode_coordinator_key(key), encoded) == (key, value)


def test_metadata_record_golden() -> None:
    record = TopicRecord(name="t", topic_id=bytes(range(16)))
    encoded = encode_metadata_record(record, 0)
    assert encoded.hex(" ") == "01 02 00 02 74 00 01 02 03 04 05 06 07 08 09 0a 0b 0c 0d 0e 0f 00"
    assert decode_metadata_record(encoded) == record


def test_every_metadata_record() -> None:
    names = [name for name in message_names() if message_class(name).KIND == "metadata"]
    assert names == sorted(schema_index()["metadata"].values())
    assert [metadata_record_class(type_id).NAME for type_id in (0, 2, 3)] == [
        "RegisterBrokerRecord",
        "TopicRecord",
        "PartitionRecord",
    ]
    for name in names:
        cls = message_class(name)
        assert cls.API_KEY is not None
        assert metadata_record_class(cls.API_KEY) is cls
        for version in range(cls.MIN_VERSION, cls.MAX_VERSION + 1):
            record = Sampler(f"{name} {version}").message(name, version)
            assert decode_metadata_record(encode_metadata_record(record, version)) == record


def test_metadata_record_that_cannot_be() -> None:
    encoded = encode_metadata_record(TopicRecord(name="t"), 0)
    for data in (b"", b"\x02" + encoded[1:], encoded[:-1], encoded + b"\x00"):
        with pytest.raises(MalformedMessage):
            decode_metadata_record(data)
    for data in (b"\x01\x7f\x00", b"\x01\x02\x63"):
        with pytest.raises(KafkaError) as raised:
            decode_metadata_record(data)
        assert raised.value.code is ErrorCode.UNSUPPORTED_VERSION
    with pytest.raises(EncodeError):
        encode_metadata_record(OffsetCommitValue(), 0)
