"""The layout of messages byte by byte, and everything that bytes may not do."""

from __future__ import annotations

import random
import struct

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from barnabas.protocol.errors import LongMessage, MalformedMessage
from barnabas.protocol.messages import (
    ConsumerGroupHeartbeatResponse,
    ConsumerGroupMemberMetadataValue,
    DescribeGroupsRequest,
    FetchRequest,
    MetadataRequest,
    OffsetCommitKey,
    OffsetDeleteRequest,
    ProduceRequest,
    ProduceResponse,
    SaslHandshakeRequest,
    message_class,
)
from barnabas.protocol.schema import message_names
from tests.protocol.samples import ALL_VERSIONS, Sampler, instances


def join(*lines: str) -> bytes:
    """Bytes out of lines of hex with a comment each."""
    return bytes.fromhex("".join(line.partition("#")[0] for line in lines))


GOLDEN = {
    "produce, flexible": (
        ProduceRequest(
            acks=-1,
            timeout_ms=30000,
            topic_data=[
                ProduceRequest.TopicProduceData(
                    name="t", partition_data=[ProduceRequest.PartitionProduceData(index=2, records=b"\xaa\xbb")]
                )
            ],
        ),
        9,
        join(
            "00           # transactional id: null",
            "ffff         # acks: -1",
            "00007530     # timeout: 30000 ms",
            "02           # one topic",
            "02 74        #   name: 't'",
            "02           #   one partition",
            "00000002     #     index 2",
            "03 aabb      #     two bytes of records",
            "00           #     no tags",
            "00           #   no tags",
            "00           # no tags",
        ),
    ),
    "produce, before": (
        ProduceRequest(
            transactional_id="x",
            acks=1,
            timeout_ms=1,
            topic_data=[
                ProduceRequest.TopicProduceData(
                    name="t", partition_data=[ProduceRequest.PartitionProduceData(index=2, records=None)]
                )
            ],
        ),
        8,
        join(
            "0001 78      # transactional id: 'x'",
            "0001         # acks: 1",
            "00000001     # timeout: 1 ms",
            "00000001     # one topic",
            "0001 74      #   name: 't'",
            "00000001     #   one partition",
            "00000002     #     index 2",
            "ffffffff     #     records: null",
        ),
    ),
    "tagged fields": (
        ProduceResponse(
            responses=[
                ProduceResponse.TopicProduceResponse(
                    name="t",
                    partition_responses=[
                        ProduceResponse.PartitionProduceResponse(
                            index=0,
                            error_code=6,
                            base_offset=-1,
                            current_leader=ProduceResponse.LeaderIdAndEpoch(leader_id=3, leader_epoch=4),
                        )
                    ],
                )
            ],
            node_endpoints=[ProduceResponse.NodeEndpoint(node_id=3, host="h", port=9092, rack=None)],
        ),
        10,
        join(
            "02                # one topic",
            "02 74             #   name: 't'",
            "02                #   one partition",
            "00000000          #     index 0",
            "0006              #     NOT_LEADER_OR_FOLLOWER",
            "ffffffffffffffff  #     base offset -1",
            "ffffffffffffffff  #     log append time -1",
            "ffffffffffffffff  #     log start offset -1",
            "01                #     no record errors",
            "00                #     error message: null",
            "01 00 09          #     one tag: 0, nine bytes",
            "00000003          #       leader 3",
            "00000004          #       epoch 4",
            "00                #       no tags",
            "00                #   no tags",
            "00000000          # throttle time",
            "01 00 0d          # one tag: 0, thirteen bytes",
            "02                #   one endpoint",
            "00000003          #     node 3",
            "02 68             #     host 'h'",
            "00002384          #     port 9092",
            "00                #     rack: null",
            "00                #     no tags",
        ),
    ),
    "nullable struct: null": (
        ConsumerGroupHeartbeatResponse(member_id="m", member_epoch=5, heartbeat_interval_ms=1),
        0,
        join(
            "00000000  # throttle time",
            "0000      # no error",
            "00        # error message: null",
            "02 6d     # member 'm'",
            "00000005  # epoch 5",
            "00000001  # heartbeat interval",
            "ff        # assignment: null",
            "00        # no tags",
        ),
    ),
    "nullable struct: present": (
        ConsumerGroupHeartbeatResponse(assignment=ConsumerGroupHeartbeatResponse.Assignment()),
        0,
        join(
            "00000000  # throttle time",
            "0000      # no error",
            "00        # error message: null",
            "00        # member: null",
            "00000000  # epoch",
            "00000000  # heartbeat interval",
            "01        # assignment: present",
            "01        #   no topics",
            "00        #   no tags",
            "00        # no tags",
        ),
    ),
    "nullable struct in a tag: null": (
        ConsumerGroupMemberMetadataValue(classic_member_metadata=None),
        0,
        join(
            "01 01        # instance and rack id: empty",
            "01 01        # client id and host: empty",
            "01           # no topics",
            "01           # regex: empty",
            "ffffffff     # rebalance timeout: -1",
            "01           # assignor: empty",
            "01 00 01 00  # one tag: 0, one byte, null",
        ),
    ),
    "all topics": (MetadataRequest(topics=None), 1, join("ffffffff  # topics: null")),
    "no topics": (MetadataRequest(topics=[]), 1, join("00000000  # no topics")),
    "never flexible": (SaslHandshakeRequest(mechanism="PLAIN"), 1, join("0005 504c41494e  # mechanism")),
    "a key": (
        OffsetCommitKey(group="g", topic="t", partition=1),
        1,
        join("0001 67    # group 'g'", "0001 74    # topic 't'", "00000001   # partition 1"),
    ),
}


@pytest.mark.parametrize("name", GOLDEN)
def test_golden_bytes(name: str) -> None:
    message, version, expected = GOLDEN[name]
    version = min(version, message.MAX_VERSION)
    assert message.encode(version).hex(" ") == expected.hex(" ")
    assert type(message).decode(expected, version) == message


@pytest.mark.parametrize("name", message_names())
def test_a_cut_anywhere_is_malformed(name: str) -> None:
    cls = message_class(name)
    for version in {cls.MIN_VERSION, cls.MAX_VERSION}:
        encoded = Sampler(f"cut {name} {version}").message(name, version).encode(version)
        steps = range(len(encoded)) if len(encoded) < 400 else sorted(random.Random(1).sample(range(len(encoded)), 200))
        for stop in steps:
            with pytest.raises(MalformedMessage):
                cls.decode(encoded[:stop], version)
        with pytest.raises(MalformedMessage):
            cls.decode(encoded + b"\x00", version)


@settings(derandomize=True, deadline=None, max_examples=600, database=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_changed_bytes_are_read_or_malformed(data: st.DataObject) -> None:
    name, version = data.draw(st.sampled_from(ALL_VERSIONS))
    encoded = bytearray(data.draw(instances(name, version)).encode(version))
    for _ in range(data.draw(st.integers(1, 4))):
        if encoded:
            encoded[data.draw(st.integers(0, len(encoded) - 1))] = data.draw(st.integers(0, 255))
    cls = message_class(name)
    try:
        message = cls.decode(encoded, version)
    except MalformedMessage:
        return
    message.encode(version)


@settings(derandomize=True, deadline=None, max_examples=600, database=None, suppress_health_check=list(HealthCheck))
@given(st.sampled_from(ALL_VERSIONS), st.binary(max_size=60))
def test_any_bytes_are_read_or_malformed(message: tuple[str, int], data: bytes) -> None:
    try:
        message_class(message[0]).decode(data, message[1])
    except MalformedMessage:
        return


LENGTHS = {
    "array count past the end": (MetadataRequest, 1, "7fffffff"),
    "array count negative": (MetadataRequest, 1, "fffffffe"),
    "array null where not allowed": (MetadataRequest, 0, "ffffffff"),
    "array count a little past the end": (MetadataRequest, 1, "00000002 0001 61"),
    "compact count past the end": (MetadataRequest, 9, "ffffffff07 000000 00"),
    "compact array null": (FetchRequest, 12, "ffffffff 00000000 00000000 00000000 00 00000000 00000000 00"),
    "string length negative": (SaslHandshakeRequest, 1, "fffe"),
    "string null where not allowed": (SaslHandshakeRequest, 1, "ffff"),
    "string past the end": (SaslHandshakeRequest, 1, "0005 61"),
    "string not UTF-8": (SaslHandshakeRequest, 1, "0002 c328"),
    "string of a surrogate": (SaslHandshakeRequest, 1, "0003 eda080"),
    "records length negative": (ProduceRequest, 3, "ffff 0001 00000001 00000001 0001 74 00000001 00000000 fffffffe"),
    "records past the end": (ProduceRequest, 3, "ffff 0001 00000001 00000001 0001 74 00000001 00000000 7fffffff"),
    "records' varint too long": (ProduceRequest, 9, "00 0001 00000001 02 02 74 02 00000000 ffffffffff01 00 00 00"),
    "varint of more than 32 bits": (ProduceRequest, 9, "ffffffff7f"),
    "int array past the end": (
        OffsetDeleteRequest,
        0,
        "0001 67 00000001 0001 74 3fffffff",
    ),
}


@pytest.mark.parametrize("name", LENGTHS)
def test_lengths_that_cannot_be(name: str) -> None:
    cls, version, data = LENGTHS[name]
    with pytest.raises(MalformedMessage):
        cls.decode(bytes.fromhex(data), version)


def test_unknown_tags_are_skipped() -> None:
    request = MetadataRequest(topics=[])
    encoded = request.encode(9)
    assert encoded[-1] == 0
    tags = bytes.fromhex("03  05 00  07 03 aabbcc  8001 01 dd")
    assert MetadataRequest.decode(encoded[:-1] + tags, 9) == request
    # … also beside tags that are known.
    fetch = FetchRequest(cluster_id="c")
    encoded = fetch.encode(12)
    assert encoded.endswith(bytes.fromhex("01 00 02 0263"))
    assert FetchRequest.decode(encoded[:-5] + bytes.fromhex("02 00 02 0263 09 01 ff"), 12) == fetch


@pytest.mark.parametrize(
    "tags",
    [
        "02 05 00 05 00",  # twice the same
        "02 05 00 04 00",  # not ascending
        "01 05 7f",  # longer than what remains
        "01 05 ffffffffff01",  # varint too long
        "ffffffff0f",  # more tags than bytes
        "01 00 03 026300",  # a known tag with a byte too many
        "01 00 01 0263",  # a known tag with a byte too few
    ],
)
def test_tags_that_cannot_be(tags: str) -> None:
    encoded = FetchRequest().encode(12)
    assert encoded[-1] == 0
    with pytest.raises(MalformedMessage):
        FetchRequest.decode(encoded[:-1] + bytes.fromhex(tags), 12)


def test_long_lengths_take_more_bytes() -> None:
    for size in (126, 127, 128, 16382, 16383, 2_000_000):
        partition = ProduceRequest.PartitionProduceData(records=bytes(size))
        request = ProduceRequest(topic_data=[ProduceRequest.TopicProduceData(name="t", partition_data=[partition])])
        assert ProduceRequest.decode(request.encode(9), 9) == request
    names = [MetadataRequest.MetadataRequestTopic(name=f"topic-{i}") for i in range(300)]
    many = MetadataRequest(topics=names)
    assert MetadataRequest.decode(many.encode(9), 9) == many


def test_every_reader_demands_a_byte_for_each_element() -> None:
    # The compiler asserts it for each array; reading nothing at all compiles every reader.
    for name, version in ALL_VERSIONS:
        cls = message_class(name)
        smallest = cls().encode(version)
        assert cls.decode(smallest, version).encode(version) == smallest


def test_compact_lengths_are_one_more_and_null_is_zero() -> None:
    assert MetadataRequest(topics=None).encode(9)[0] == 0
    assert MetadataRequest(topics=[]).encode(9)[0] == 1
    assert struct.unpack(">i", MetadataRequest(topics=None).encode(8)[:4]) == (-1,)


def test_never_flexible() -> None:
    for name in ("SaslHandshakeRequest", "SaslHandshakeResponse", "OffsetDeleteRequest", "OffsetDeleteResponse"):
        assert message_class(name).FLEXIBLE_FROM is None


def test_a_long_message_is_told_from_its_counts() -> None:
    groups = DescribeGroupsRequest(groups=["g"] * 10).encode(5)
    assert DescribeGroupsRequest.read(groups, 0, 5, 10)[0].groups == ["g"] * 10
    with pytest.raises(LongMessage):
        DescribeGroupsRequest.read(groups, 0, 5, 9)
    # The count alone: what follows it is not looked at.
    with pytest.raises(LongMessage):
        DescribeGroupsRequest.read(groups[:1] + b"\xff" * 10, 0, 5, 9)


def test_arrays_within_arrays_count_together() -> None:
    topic = OffsetDeleteRequest.OffsetDeleteRequestTopic
    partition = OffsetDeleteRequest.OffsetDeleteRequestPartition
    topics = [topic(name="t", partitions=[partition(partition_index=index) for index in range(3)]) for _ in range(4)]
    data = OffsetDeleteRequest(group_id="g", topics=topics).encode(0)
    assert OffsetDeleteRequest.read(data, 0, 0, 4 + 4 * 3)[0].topics == topics
    with pytest.raises(LongMessage):
        OffsetDeleteRequest.read(data, 0, 0, 4 + 4 * 3 - 1)


def test_unknown_tags_count() -> None:
    head = DescribeGroupsRequest(groups=[]).encode(5)[:-1]
    few = head + b"\x02" + b"\x00\x00" + b"\x01\x00"
    assert DescribeGroupsRequest.read(few, 0, 5, 2)[1] == len(few)
    with pytest.raises(LongMessage):
        DescribeGroupsRequest.read(few, 0, 5, 1)
