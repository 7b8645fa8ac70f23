"""Records of the coordinators, as they write them."""

from __future__ import annotations

import random
import struct

import pytest

from barnabas.decoding.internal_topics import INTERNAL_TOPICS, key_of, value_of
from barnabas.protocol import messages
from barnabas.protocol.message import Message
from barnabas.spark.decoding.bad_value import BadValue


def written(number: int, message: Message, version: int = 0) -> bytes:
    return struct.pack(">h", number) + bytes(message.encode(version))


def test_a_committed_offset() -> None:
    key = written(1, messages.OffsetCommitKey(group="g", topic="t", partition=3))
    value = written(4, messages.OffsetCommitValue(offset=17, metadata="m", topic_id=bytes(15) + b"\x05"), 4)
    assert key_of("__consumer_offsets", key) == {"type": "OffsetCommit", "group": "g", "topic": "t", "partition": 3}
    found = value_of("__consumer_offsets", key, value)
    assert (found["version"], found["offset"], found["metadata"]) == (4, 17, "m")
    assert found["topic_id"] == "00000000-0000-0000-0000-000000000005"


def test_a_transactional_id() -> None:
    key = written(0, messages.TransactionLogKey(transactional_id="payments"))
    topic = messages.TransactionLogValue.PartitionsSchema(topic="t", partition_ids=[1, 2])
    value = written(0, messages.TransactionLogValue(producer_id=9, transaction_partitions=[topic]))
    assert key_of("__transaction_state", key)["transactional_id"] == "payments"
    found = value_of("__transaction_state", key, value)
    assert found["transaction_partitions"] == [{"topic": "t", "partition_ids": [1, 2]}]


def test_the_state_of_a_share_partition() -> None:
    key = written(0, messages.ShareSnapshotKey(group_id="g", topic_id=bytes(16), partition=0))
    value = written(0, messages.ShareSnapshotValue(start_offset=5))
    assert key_of("__share_group_state", key)["type"] == "ShareSnapshot"
    assert value_of("__share_group_state", key, value)["start_offset"] == 5


def test_a_group_of_consumers() -> None:
    key = written(3, messages.ConsumerGroupMetadataKey(group_id="g"))
    assert key_of("__consumer_offsets", key) == {"type": "ConsumerGroupMetadata", "group_id": "g"}


@pytest.mark.parametrize(
    ("key", "value", "why"),
    [
        (b"\x00", b"", "too short"),
        (b"\x00\x63", b"", "no records of type 99"),
        (b"\x00\x01\x00", b"", "OffsetCommitKey"),
        (b"\x00\x03\x00\x01g", b"\x00\x63", "version 99 is of a newer broker"),
        (b"\x00\x03\x00\x01g", b"\x00", "too short"),
        (b"\x00\x03\x00\x01g", b"\x00\x00\x01", "ConsumerGroupMetadataValue"),
    ],
)
def test_what_is_not_known(key: bytes, value: bytes, why: str) -> None:
    with pytest.raises(BadValue, match=why):
        decode(key, value)


def decode(key: bytes, value: bytes) -> None:
    key_of("__consumer_offsets", key)
    value_of("__consumer_offsets", key, value)


def test_any_bytes_end_in_a_sentence() -> None:
    dice = random.Random(3)
    for topic in sorted(INTERNAL_TOPICS):
        for _ in range(200):
            key = struct.pack(">h", dice.randrange(25)) + dice.randbytes(dice.randrange(20))
            try:
                key_of(topic, key)
                value_of(topic, key, struct.pack(">h", dice.randrange(4)) + dice.randbytes(dice.randrange(40)))
            except BadValue as error:
                assert str(error)  # noqa: PT017
