"""Payloads that carry their own version."""

from __future__ import annotations

import pytest

from barnabas.protocol.errors import EncodeError, ErrorCode, KafkaError, MalformedMessage
from barnabas.protocol.messages import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    OffsetCommitValue,
    TopicRecord,
    message_class,
    metadata_record_class,
)
from barnabas.protocol.schema import message_names, schema_index
from barnabas.protocol.versioned import (
    decode_consumer_protocol,
    decode_metadata_record,
    encode_metadata_record,
)
from tests.protocol.samples import Sampler


def test_consumer_protocol_golden() -> None:
    # Version 0, one topic of one byte, no user data.
    encoded = bytes.fromhex("0000 00000001 0001 74 ffffffff")
    assert decode_consumer_protocol(ConsumerProtocolSubscription, encoded) == ConsumerProtocolSubscription(topics=["t"])


@pytest.mark.parametrize("data", [b"", b"\x00", b"\x00\x00\x00"])
def test_consumer_protocol_cut(data: bytes) -> None:
    with pytest.raises(MalformedMessage):
        decode_consumer_protocol(ConsumerProtocolSubscription, data)


def test_a_later_consumer_protocol_is_read_as_the_newest_known() -> None:
    partitions = [ConsumerProtocolAssignment.TopicPartition(topic="t", partitions=[0, 1])]
    assignment = ConsumerProtocolAssignment(assigned_partitions=partitions, user_data=b"u")
    later = b"\x00\x09" + assignment.encode(3) + b"fields to come"
    assert decode_consumer_protocol(ConsumerProtocolAssignment, later) == assignment
    with pytest.raises(MalformedMessage):
        decode_consumer_protocol(ConsumerProtocolAssignment, b"\xff\xff" + later[2:])


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
