from __future__ import annotations

import asyncio
import struct
from typing import Any

import pytest

from barnabas.api import produce
from barnabas.log.log_config import LogConfig
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import ProduceRequest, ProduceResponse, RegisterBrokerRecord
from barnabas.protocol.primitives import ZERO_UUID
from barnabas.records.builder import build_batch
from barnabas.records.compression import Compression
from barnabas.records.record import iter_records
from barnabas.steps import step
from tests.replication.hosting import NODE, Hosting, batch, topic_id

LATEST = 13
SECOND = RegisterBrokerRecord(
    broker_id=2,
    fenced=False,
    end_points=[
        RegisterBrokerRecord.BrokerEndpoint(name="PLAINTEXT", host="second", port=9, security_protocol=0),
    ],
)


def request(*partitions: tuple[str, int, Any], acks: int = -1, id_: bytes = ZERO_UUID, **fields: Any) -> ProduceRequest:
    topics: dict[str, ProduceRequest.TopicProduceData] = {}
    for name, index, records in partitions:
        topic = topics.setdefault(name, ProduceRequest.TopicProduceData(name=name, topic_id=id_, partition_data=[]))
        topic.partition_data.append(ProduceRequest.PartitionProduceData(index=index, records=records))
    return ProduceRequest(acks=acks, timeout_ms=1000, topic_data=list(topics.values()), **fields)


def answers(response: Any) -> list[ProduceResponse.PartitionProduceResponse]:
    assert isinstance(response, ProduceResponse)
    return [answer for topic in response.responses for answer in topic.partition_responses]


def send(hosting: Hosting, records: Any, *, version: int = 9, acks: int = -1, topic: str = "t", **options: Any) -> Any:
    (answer,) = answers(
        step(
            produce.handle(hosting.context(0, version, **options), request((topic, 0, records), acks=acks)),
            hosting.loop,
        )
    )
    return answer


@pytest.mark.parametrize("version", range(3, LATEST + 1))
@pytest.mark.parametrize("acks", [1, -1])
def test_every_version_over_the_wire(hosting: Hosting, version: int, acks: int) -> None:
    id_ = hosting.create_topic("t", 2)
    wire = request(("t", 0, batch(b"a", b"b")), ("t", 1, batch(b"c")), acks=acks, id_=id_).encode(version)
    decoded = ProduceRequest.decode(bytearray(wire), version)
    response = step(produce.handle(hosting.context(0, version), decoded), hosting.loop)
    assert isinstance(response, ProduceResponse)
    read = ProduceResponse.decode(response.encode(version), version)
    assert [(a.index, a.error_code, a.base_offset) for a in answers(read)] == [(0, 0, 0), (1, 0, 0)]
    (topic,) = read.responses
    assert (topic.name, topic.topic_id) == (("t", ZERO_UUID) if version < 13 else ("", id_))


def test_only_offset_and_epoch_of_the_clients_bytes_change(hosting: Hosting) -> None:
    hosting.create_topic("t")
    send(hosting, batch(b"first"))
    records = batch(b"a", b"b", compression=Compression.GZIP)
    sent = bytes(records)
    assert send(hosting, records).base_offset == 1
    stored = next(hosting.replicas.read_internal("t", 0, 1))
    assert bytes(stored[16:]) == sent[16:]
    assert [(r.offset, r.value) for r in iter_records(stored)] == [(1, b"a"), (2, b"b")]


def test_a_partition_fails_alone(hosting: Hosting) -> None:
    hosting.create_topic("t", 2)
    response = step(
        produce.handle(
            hosting.context(0, 9),
            request(("t", 0, batch(b"a")), ("t", 7, batch(b"b")), ("nowhere", 0, batch(b"c")), ("t", 1, b"")),
        ),
        hosting.loop,
    )
    assert [(a.index, a.error_code, a.base_offset) for a in answers(response)] == [
        (0, ErrorCode.NONE, 0),
        (7, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1),
        (1, ErrorCode.INVALID_RECORD, -1),
        (0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1),
    ]


@pytest.mark.parametrize("acks", [2, -2, 100])
def test_other_acks_are_rejected(hosting: Hosting, acks: int) -> None:
    hosting.create_topic("t")
    assert send(hosting, batch(b"a"), acks=acks).error_code == ErrorCode.INVALID_REQUIRED_ACKS
    assert send(hosting, batch(b"a"), acks=acks, topic="none").error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert hosting.replicas.partition("t", 0).log.log_end_offset == 0


def test_acks_0_gets_no_response(hosting: Hosting) -> None:
    hosting.create_topic("t")
    context = hosting.context(0, 9)
    assert step(produce.handle(context, request(("t", 0, batch(b"a")), acks=0)), hosting.loop) is None
    assert not context.close_connection
    assert hosting.replicas.partition("t", 0).log.log_end_offset == 1


def test_a_failing_acks_0_closes_the_connection(hosting: Hosting) -> None:
    hosting.create_topic("t")
    context = hosting.context(0, 9)
    response = step(
        produce.handle(context, request(("t", 0, batch(b"a")), ("t", 1, batch(b"a")), acks=0)), hosting.loop
    )
    assert response is None
    assert context.close_connection


def test_an_unknown_topic_id(hosting: Hosting) -> None:
    """Trap 9: not UNKNOWN_TOPIC_OR_PARTITION, which would mean a name."""
    hosting.create_topic("t")
    response = step(
        produce.handle(hosting.context(0, 13), request(("", 0, batch(b"a")), id_=topic_id(999))), hosting.loop
    )
    assert answers(response)[0].error_code == ErrorCode.UNKNOWN_TOPIC_ID


def test_a_known_topic_id_with_an_unknown_partition(hosting: Hosting) -> None:
    id_ = hosting.create_topic("t")
    response = step(produce.handle(hosting.context(0, 13), request(("", 5, batch(b"a")), id_=id_)), hosting.loop)
    assert answers(response)[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


class TestExactlyOneBatch:
    def test_several(self, hosting: Hosting) -> None:
        hosting.create_topic("t")
        records = memoryview(bytearray(batch(b"a")) + bytearray(batch(b"b")))
        assert send(hosting, records).error_code == ErrorCode.INVALID_RECORD
        assert hosting.replicas.partition("t", 0).log.log_end_offset == 0

    @pytest.mark.parametrize("records", [None, b"", b"\0" * 16, bytes(batch(b"a"))[:-1], bytes(batch(b"a"))[:20]])
    def test_none(self, hosting: Hosting, records: Any) -> None:
        hosting.create_topic("t")
        assert send(hosting, records).error_code == ErrorCode.INVALID_RECORD

    @pytest.mark.parametrize("rest", [b"\0" * 30, b"\xff" * 30])
    def test_no_batch_behind_the_batch(self, hosting: Hosting, rest: bytes) -> None:
        hosting.create_topic("t")
        records = memoryview(bytearray(batch(b"a")) + rest)
        assert send(hosting, records).error_code == ErrorCode.CORRUPT_MESSAGE

    def test_an_impossible_length(self, hosting: Hosting) -> None:
        hosting.create_topic("t")
        for length in (-5, 0, 13, 20):
            records = bytearray(batch(b"a"))
            records[8:12] = length.to_bytes(4, "big", signed=True)
            assert send(hosting, memoryview(records)).error_code == ErrorCode.CORRUPT_MESSAGE

    def test_bytes_behind_the_batch_are_left_out(self, hosting: Hosting) -> None:
        hosting.create_topic("t")
        records = memoryview(bytearray(batch(b"a")) + bytearray(b"\0\0\0"))
        assert send(hosting, records).error_code == ErrorCode.NONE
        size = len(batch(b"a"))
        assert hosting.replicas.partition("t", 0).log.size_in_bytes == size

    @pytest.mark.parametrize("magic", [0, 1])
    def test_old_formats(self, hosting: Hosting, magic: int) -> None:
        hosting.create_topic("t")
        records = bytearray(batch(b"a"))
        records[16] = magic
        assert send(hosting, memoryview(records)).error_code == ErrorCode.INVALID_RECORD

    def test_no_format_at_all(self, hosting: Hosting) -> None:
        hosting.create_topic("t")
        records = bytearray(batch(b"a"))
        records[16] = 9
        assert send(hosting, memoryview(records)).error_code == ErrorCode.CORRUPT_MESSAGE


def test_a_wrong_checksum(hosting: Hosting) -> None:
    hosting.create_topic("t")
    records = batch(b"a")
    records[-1] ^= 1
    answer = send(hosting, records)
    assert (answer.error_code, answer.base_offset, answer.log_start_offset) == (ErrorCode.CORRUPT_MESSAGE, -1, -1)


def test_zstd_needs_version_7(hosting: Hosting) -> None:
    hosting.create_topic("t")
    records = bytes(batch(b"a", compression=Compression.ZSTD))
    refused = send(hosting, memoryview(bytearray(records)), version=6)
    assert refused.error_code == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    assert send(hosting, memoryview(bytearray(records)), version=7).error_code == ErrorCode.NONE


def test_compacted_topics_reject_records_without_a_key(hosting: Hosting) -> None:
    hosting.create_topic("t", config=LogConfig(cleanup_policy=frozenset({"compact"})))
    answer = send(hosting, batch(b"a", b"b", key=None))
    assert answer.error_code == ErrorCode.INVALID_RECORD
    assert [error.batch_index for error in answer.record_errors] == [0, 1]
    assert "without key" in answer.record_errors[0].batch_index_error_message
    assert answer.error_message is not None
    assert send(hosting, batch(b"a")).error_code == ErrorCode.NONE


def test_the_response_has_the_log_append_time(hosting: Hosting) -> None:
    hosting.create_topic("t", config=LogConfig(message_timestamp_type="LogAppendTime"))
    assert send(hosting, batch(b"a", timestamp=5)).log_append_time_ms == hosting.now_ms()
    hosting.create_topic("u")
    assert send(hosting, batch(b"a"), topic="u").log_append_time_ms == -1


def test_the_response_has_the_log_start(hosting: Hosting) -> None:
    hosting.create_topic("t")
    send(hosting, batch(b"a", b"b", b"c"))
    hosting.replicas.partition("t", 0).log.delete_records_before(2)
    assert send(hosting, batch(b"d")).log_start_offset == 2


def test_idempotent_retries_get_the_first_offsets(hosting: Hosting) -> None:
    hosting.create_topic("t")

    def produced(sequence: int, epoch: int = 0) -> Any:
        return send(hosting, batch(b"v", producer_id=9, producer_epoch=epoch, base_sequence=sequence))

    assert [produced(n).base_offset for n in range(3)] == [0, 1, 2]
    assert produced(1).base_offset == 1
    gap = produced(7)
    assert (gap.error_code, gap.base_offset, gap.log_start_offset) == (ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1, 0)
    assert produced(0, epoch=1).base_offset == 3
    assert produced(3, epoch=0).error_code == ErrorCode.INVALID_PRODUCER_EPOCH


def test_internal_topics_belong_to_coordinators(hosting: Hosting) -> None:
    hosting.create_topic("__consumer_offsets")
    refused = send(hosting, batch(b"a"), topic="__consumer_offsets")
    assert refused.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
    allowed = send(hosting, batch(b"a"), topic="__consumer_offsets", client_id="__admin_client")
    assert allowed.error_code == ErrorCode.NONE


def test_too_large(hosting: Hosting) -> None:
    hosting.create_topic("t", config=LogConfig(max_message_bytes=100))
    assert send(hosting, batch(b"x" * 100)).error_code == ErrorCode.MESSAGE_TOO_LARGE


class TestTransactions:
    def test_a_rejected_request_with_acks_0_closes_the_connection(self, hosting: Hosting) -> None:
        hosting.create_topic("t")
        records = batch(b"a", producer_id=1, producer_epoch=0, base_sequence=0, transactional=True)
        context = hosting.context(0, 9)
        assert step(produce.handle(context, request(("t", 0, records), acks=0)), hosting.loop) is None
        assert context.close_connection

    @pytest.mark.parametrize("magic", [0, 1])
    def test_older_formats_have_no_transactions(self, hosting: Hosting, magic: int) -> None:
        hosting.create_topic("t")
        # One message of the format; the byte where a batch of v2 has its attributes has all its bits set.
        message = b"\0\0\0\0" + bytes((magic, 0)) + b"\xff" * 20
        records = memoryview(struct.pack(">qi", 0, len(message)) + message)
        assert send(hosting, records).error_code == ErrorCode.INVALID_RECORD

    def test_without_a_transactional_id_the_request_is_rejected(self, hosting: Hosting) -> None:
        hosting.create_topic("t")
        records = batch(b"a", producer_id=1, producer_epoch=0, base_sequence=0, transactional=True)
        assert send(hosting, records).error_code == ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED


class TestLeaders:
    def test_the_new_leader_is_named_from_version_10(self, hosting: Hosting) -> None:
        hosting.replay(SECOND)
        id_ = hosting.create_topic("t", replicas=(NODE, 2))
        hosting.change(id_, leader=2)
        for version in (9, 10, 12):
            response = step(produce.handle(hosting.context(0, version), request(("t", 0, batch(b"a")))), hosting.loop)
            assert isinstance(response, ProduceResponse)
            (answer,) = answers(ProduceResponse.decode(response.encode(version), version))
            assert answer.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
            if version == 9:
                assert response.node_endpoints == []
            else:
                assert (answer.current_leader.leader_id, answer.current_leader.leader_epoch) == (2, 1)
                assert [(e.node_id, e.host, e.port) for e in response.node_endpoints] == [(2, "second", 9)]

    @pytest.mark.parametrize("version", [9, 10, 12, 13])
    def test_the_leader_of_a_partition_without_a_replica_here_is_named(self, hosting: Hosting, version: int) -> None:
        hosting.replay(SECOND)
        id_ = hosting.create_topic("t", replicas=(2,), leader=2)
        asked = request(("t", 0, batch(b"a")), ("t", 7, batch(b"b")), id_=id_)
        response = step(produce.handle(hosting.context(0, version), asked), hosting.loop)
        assert isinstance(response, ProduceResponse)
        here, unknown = answers(response)
        assert (here.error_code, unknown.error_code) == (
            ErrorCode.NOT_LEADER_OR_FOLLOWER,
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        )
        assert (here.current_leader.leader_id, unknown.current_leader.leader_id) == (2 if version > 9 else -1, -1)
        assert [e.node_id for e in response.node_endpoints] == ([2] if version > 9 else [])

    @pytest.mark.parametrize("version", [9, 10])
    def test_the_leader_that_takes_over_while_a_request_waits_is_named(self, hosting: Hosting, version: int) -> None:
        hosting.replay(SECOND)
        id_ = hosting.create_topic("t", replicas=(NODE, 2))
        waiting: Any = step(produce.handle(hosting.context(0, version), request(("t", 0, batch(b"a")))), hosting.loop)
        hosting.change(id_, leader=2)
        hosting.spin()
        (answer,) = answers(waiting.result())
        assert answer.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        named = (answer.current_leader.leader_id, [e.host for e in waiting.result().node_endpoints])
        assert named == ((2, ["second"]) if version > 9 else (-1, []))

    def test_acks_all_waits_for_the_followers(self, hosting: Hosting) -> None:
        hosting.create_topic("t", replicas=(NODE, 2))
        response: Any = step(produce.handle(hosting.context(0, 9), request(("t", 0, batch(b"a")))), hosting.loop)
        assert isinstance(response, asyncio.Future)
        partition = hosting.replicas.partition("t", 0)
        partition.update_follower(2, 1)
        hosting.replicas.delayed_produces.notify(partition)
        hosting.spin()
        assert answers(response.result())[0].base_offset == 0

    def test_acks_all_waits_no_longer_than_the_timeout(self, hosting: Hosting) -> None:
        hosting.create_topic("t", replicas=(NODE, 2))
        response: Any = step(produce.handle(hosting.context(0, 9), request(("t", 0, batch(b"a")))), hosting.loop)
        hosting.advance(1000)
        (answer,) = answers(response.result())
        assert (answer.error_code, answer.base_offset) == (ErrorCode.REQUEST_TIMED_OUT, -1)
        assert hosting.replicas.delayed_produces.watched == 0

    def test_acks_1_does_not_wait(self, hosting: Hosting) -> None:
        hosting.create_topic("t", replicas=(NODE, 2))
        assert send(hosting, batch(b"a"), acks=1).base_offset == 0


def test_a_large_compressed_batch(hosting: Hosting) -> None:
    hosting.create_topic("t")
    for codec in Compression:
        records = memoryview(
            build_batch([(hosting.now_ms(), b"k", b"v" * 1000, []) for _ in range(100)], compression=codec)
        )
        assert send(hosting, records).error_code == ErrorCode.NONE
