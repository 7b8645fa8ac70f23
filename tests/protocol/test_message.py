"""What a message class promises: constructor, equality, errors at the border, parts."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from barnabas.protocol.errors import EncodeError, ErrorCode, KafkaError, MalformedMessage, UnsupportedVersionField
from barnabas.protocol.messages import (
    AlterClientQuotasRequest,
    ApiVersionsRequest,
    ConsumerGroupHeartbeatResponse,
    FetchRequest,
    FetchResponse,
    JoinGroupRequest,
    MetadataRequest,
    ProduceRequest,
    ProduceResponse,
    TopicRecord,
    message_class,
)
from barnabas.protocol.primitives import ZERO_UUID
from barnabas.protocol.schema import message_names
from tests.protocol.samples import instances

SEEN = settings(derandomize=True, deadline=None, max_examples=4, database=None, suppress_health_check=list(HealthCheck))


class FileSlice:
    """Records that lie in a file."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.position = 0

    @property
    def size(self) -> int:
        return len(self.data)

    def read(self) -> bytes:
        return self.data

    def fileno(self) -> int:
        return -1


@pytest.mark.parametrize("name", message_names())
def test_round_trip_in_every_version(name: str) -> None:
    cls = message_class(name)

    @SEEN
    @given(st.data())
    def check(data: st.DataObject) -> None:
        for version in range(cls.MIN_VERSION, cls.MAX_VERSION + 1):
            message = data.draw(instances(name, version))
            encoded = message.encode(version)
            assert cls.decode(encoded, version) == message
            assert b"".join(bytes(part) for part in message.encode_parts(version)) == encoded

    check()


def quota(value: float) -> AlterClientQuotasRequest:
    """A request whose one number is a float."""
    operation = AlterClientQuotasRequest.OpData(key="producer_byte_rate", value=value)
    return AlterClientQuotasRequest(entries=[AlterClientQuotasRequest.EntryData(ops=[operation])])


def test_defaults_are_kafkas() -> None:
    request = FetchRequest()
    assert (request.replica_id, request.max_bytes, request.session_epoch) == (-1, 0x7FFFFFFF, -1)
    assert request.cluster_id is None
    assert request.topics == []
    assert request.topics is not FetchRequest().topics
    assert request.replica_state == FetchRequest.ReplicaState(replica_id=-1, replica_epoch=-1)
    assert FetchRequest.FetchPartition().high_watermark == 2**63 - 1
    assert TopicRecord().topic_id == ZERO_UUID
    assert ProduceRequest().transactional_id is None
    assert ConsumerGroupHeartbeatResponse().assignment is None


def test_class_attributes_say_what_it_is() -> None:
    assert (ProduceRequest.NAME, ProduceRequest.KIND, ProduceRequest.API_KEY) == ("ProduceRequest", "request", 0)
    assert (ProduceRequest.MIN_VERSION, ProduceRequest.MAX_VERSION, ProduceRequest.FLEXIBLE_FROM) == (3, 13, 9)
    assert message_class("OffsetDeleteRequest").FLEXIBLE_FROM is None
    assert message_class("VoteRequest").FLEXIBLE_FROM == 0
    assert (TopicRecord.KIND, TopicRecord.API_KEY) == ("metadata", 2)


def test_an_unknown_field_is_no_attribute() -> None:
    with pytest.raises(AttributeError):
        ProduceRequest().ack = 1  # type: ignore[attr-defined]
    with pytest.raises(TypeError):
        ProduceRequest(ack=1)  # type: ignore[call-arg]
    with pytest.raises(ImportError):
        from barnabas.protocol.messages import NoSuchRequest  # type: ignore[attr-defined]  # noqa: F401


def test_equality_and_repr() -> None:
    one = ApiVersionsRequest(client_software_name="a")
    assert one == ApiVersionsRequest(client_software_name="a")
    assert one != ApiVersionsRequest(client_software_name="b")
    assert one != "a"
    assert repr(one).startswith("ApiVersionsRequest(client_software_name='a', ")
    view = ProduceRequest.PartitionProduceData(records=memoryview(b"abc"))
    assert repr(view) == "PartitionProduceData(index=0, records=<3 bytes>)"
    assert view == ProduceRequest.PartitionProduceData(records=b"abc")


def test_a_version_outside_the_range() -> None:
    for version in (2, 14, -1):
        with pytest.raises(KafkaError) as raised:
            ProduceRequest().encode(version)
        assert raised.value.code is ErrorCode.UNSUPPORTED_VERSION
        with pytest.raises(KafkaError):
            ProduceRequest.decode(b"", version)


def test_a_field_the_version_lacks() -> None:
    partition = FetchRequest.FetchPartition(last_fetched_epoch=3)
    request = FetchRequest(topics=[FetchRequest.FetchTopic(topic="t", partitions=[partition])])
    assert FetchRequest.decode(request.encode(12), 12) == request
    with pytest.raises(UnsupportedVersionField) as raised:
        request.encode(11)
    assert raised.value.code is ErrorCode.UNSUPPORTED_VERSION
    # An ignorable field is dropped instead.
    assert JoinGroupRequest(reason="why").encode(7) == JoinGroupRequest().encode(7)


@pytest.mark.parametrize(
    ("message", "version"),
    [
        (ProduceRequest(acks=40000), 9),
        (quota(10**400), 0),
        (ProduceRequest(acks="1"), 9),  # type: ignore[arg-type]
        (MetadataRequest(topics=None), 0),
        (MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(name=None)]), 9),
        (MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(name="a" * 40000)]), 8),
        (MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(name="\ud800")]), 9),
        (MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(topic_id=b"short")]), 12),
        (FetchResponse(responses=None), 16),  # type: ignore[arg-type]
    ],
)
def test_what_cannot_be_written_leaves_no_trace(message: ProduceRequest, version: int) -> None:
    out = bytearray(b"before")
    with pytest.raises(EncodeError):
        message.write(out, version)
    assert out == b"before"
    with pytest.raises(EncodeError):
        message.encode_parts(version)


def test_records_are_views_of_what_was_read() -> None:
    partition = ProduceRequest.PartitionProduceData(records=b"record bytes")
    request = ProduceRequest(topic_data=[ProduceRequest.TopicProduceData(name="t", partition_data=[partition])])
    buffer = bytearray(request.encode(9))
    records = ProduceRequest.decode(buffer, 9).topic_data[0].partition_data[0].records
    assert isinstance(records, memoryview)
    assert records == b"record bytes"
    assert records.obj is buffer


@pytest.mark.parametrize("version", [4, 11, 12, 18])
def test_parts_keep_slices_between_merged_bytes(version: int) -> None:
    slices = [FileSlice(b"x" * 300), FileSlice(b""), FileSlice(b"y")]
    values = [slices[0], b"inline", None, slices[1], slices[2]]
    partitions = [FetchResponse.PartitionData(partition_index=i, records=v) for i, v in enumerate(values)]
    topic = "t" if version < 13 else ""
    response = FetchResponse(responses=[FetchResponse.FetchableTopicResponse(topic=topic, partitions=partitions)])
    parts = response.encode_parts(version)
    assert [part for part in parts if isinstance(part, FileSlice)] == [slices[0], slices[2]]
    # Before the flexible version nothing follows the last records, not even a tag buffer.
    types = [bytearray, FileSlice, bytearray, FileSlice, bytearray]
    assert [type(part) for part in parts] == (types if version >= 12 else types[:-1])
    joined = b"".join(part.read() if isinstance(part, FileSlice) else bytes(part) for part in parts)
    assert joined == response.encode(version)
    read = FetchResponse.decode(joined, version).responses[0].partitions
    assert [None if p.records is None else bytes(p.records) for p in read] == [b"x" * 300, b"inline", None, b"", b"y"]  # type: ignore[arg-type]


def test_read_from_the_middle() -> None:
    buffer = b"head" + ApiVersionsRequest(client_software_name="n").encode(3) + b"tail"
    message, pos = ApiVersionsRequest.read(buffer, 4, 3)
    assert message.client_software_name == "n"
    assert buffer[pos:] == b"tail"
    with pytest.raises(MalformedMessage):
        ApiVersionsRequest.decode(buffer[4:], 3)


def test_a_response_as_a_broker_makes_it() -> None:
    partition = ProduceResponse.PartitionProduceResponse(index=1, base_offset=7)
    response = ProduceResponse(
        responses=[ProduceResponse.TopicProduceResponse(name="t", partition_responses=[partition])]
    )
    assert ProduceResponse.decode(response.encode(9), 9) == response
