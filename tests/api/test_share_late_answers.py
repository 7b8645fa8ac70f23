"""The handlers of the share APIs while what they call is slow, fails, or never answers."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import pytest

from barnabas.api.serving.context import RequestContext
from barnabas.protocol.api_keys import api
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages import (
    AlterShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupStateRequest,
    DescribeShareGroupOffsetsRequest,
    InitializeShareGroupStateRequest,
    ReadShareGroupStateRequest,
    ReadShareGroupStateSummaryRequest,
    ShareAcknowledgeRequest,
    ShareFetchRequest,
    ShareGroupDescribeRequest,
    ShareGroupHeartbeatRequest,
    WriteShareGroupStateRequest,
)
from tests.api.share_cluster import Cluster, Member

TOPIC = bytes(15) + b"\1"
DescribedOf = DescribeShareGroupOffsetsRequest.DescribeShareGroupOffsetsRequestGroup


def of_state(kind: Any, topic: Any) -> Any:
    return kind(group_id="g", topics=[topic(topic_id=TOPIC, partitions=[kind.PartitionData(partition=0)])])


CALLS = [
    (ShareGroupHeartbeatRequest(group_id="g", member_id="m"), "groups", "heartbeat"),
    (ShareGroupDescribeRequest(group_ids=["g"]), "groups", "describe"),
    (AlterShareGroupOffsetsRequest(group_id="g"), "groups", "alter_offsets"),
    (DeleteShareGroupOffsetsRequest(group_id="g"), "groups", "delete_offsets"),
    (DescribeShareGroupOffsetsRequest(groups=[DescribedOf(group_id="g", topics=None)]), "groups", "describe_offsets"),
    (
        of_state(InitializeShareGroupStateRequest, InitializeShareGroupStateRequest.InitializeStateData),
        "coordinator",
        "initialize",
    ),
    (of_state(ReadShareGroupStateRequest, ReadShareGroupStateRequest.ReadStateData), "coordinator", "read"),
    (of_state(WriteShareGroupStateRequest, WriteShareGroupStateRequest.WriteStateData), "coordinator", "write"),
    (of_state(DeleteShareGroupStateRequest, DeleteShareGroupStateRequest.DeleteStateData), "coordinator", "delete"),
    (
        of_state(ReadShareGroupStateSummaryRequest, ReadShareGroupStateSummaryRequest.ReadStateSummaryData),
        "coordinator",
        "summary",
    ),
]


class Late:
    """In place of a method of the share services: each call waits for `future`."""

    def __init__(self, cluster: Cluster, part: str, method: str) -> None:
        self.future: asyncio.Future[Any] = cluster.node.loop.create_future()
        setattr(getattr(cluster.node.server.services.share, part), method, self)

    async def __call__(self, *args: Any) -> Any:
        return await self.future


def dispatch(cluster: Cluster, request: Any) -> tuple[RequestContext, asyncio.Future[Any]]:
    node = cluster.node
    version = node.dispatcher.route(request.API_KEY).max_version
    header = request.API_KEY.to_bytes(2, "big") + version.to_bytes(2, "big") + bytes(3) + b"\x2a\0\4test\0"
    context, answer = node.dispatcher.dispatch(node.connection, memoryview(bytearray(header + request.encode(version))))
    assert isinstance(answer, asyncio.Future)
    assert not answer.done()
    return context, answer


def codes(cluster: Cluster, answer: asyncio.Future[Any], context: RequestContext) -> set[int]:
    """The error codes of a response, as the client gets them."""
    cluster.node.loop.run_until_complete(asyncio.wait([answer]))
    parts = answer.result()
    assert parts is not None
    body = b"".join(part if isinstance(part, bytearray) else part.read() for part in parts)[9:]
    response = api(context.api_key).response_class.decode(body, context.version)
    return {int(code) for code in re.findall(r"error_code=(-?\d+)", repr(response))} - {0}


@pytest.mark.parametrize(("request_", "part", "method"), CALLS)
@pytest.mark.parametrize(
    ("error", "code"),
    [
        (KafkaError(ErrorCode.NOT_COORDINATOR), ErrorCode.NOT_COORDINATOR),
        (ValueError("a bug"), ErrorCode.UNKNOWN_SERVER_ERROR),
    ],
)
def test_a_late_failure_is_answered(
    cluster: Cluster,
    request_: Any,
    part: str,
    method: str,
    error: Exception,
    code: ErrorCode,
    caplog: pytest.LogCaptureFixture,
) -> None:
    late = Late(cluster, part, method)
    context, answer = dispatch(cluster, request_)
    late.future.set_exception(error)
    assert codes(cluster, answer, context) == {code}
    assert ("a bug" in caplog.text) == isinstance(error, ValueError)


@pytest.mark.parametrize(("request_", "part", "method"), CALLS)
def test_a_client_that_leaves_ends_the_call(cluster: Cluster, request_: Any, part: str, method: str) -> None:
    late = Late(cluster, part, method)
    _, answer = dispatch(cluster, request_)
    answer.cancel()
    cluster.node.loop.run_until_complete(asyncio.wait([answer]))
    assert late.future.cancelled()


def fetch_request(member: Member) -> ShareFetchRequest:
    batch = ShareFetchRequest.AcknowledgementBatch(first_offset=0, last_offset=0, acknowledge_types=[1])
    partition = ShareFetchRequest.FetchPartition(partition_index=0, acknowledgement_batches=[batch])
    topic = ShareFetchRequest.FetchTopic(topic_id=member.cluster.topic_id, partitions=[partition])
    return ShareFetchRequest(
        group_id="g",
        member_id="m",
        share_session_epoch=member.session_epoch,
        max_wait_ms=10,
        max_bytes=1 << 20,
        max_records=10,
        topics=[topic],
    )


def acknowledge_request(member: Member) -> ShareAcknowledgeRequest:
    batch = ShareAcknowledgeRequest.AcknowledgementBatch(first_offset=0, last_offset=0, acknowledge_types=[1])
    partition = ShareAcknowledgeRequest.AcknowledgePartition(partition_index=0, acknowledgement_batches=[batch])
    topic = ShareAcknowledgeRequest.AcknowledgeTopic(topic_id=member.cluster.topic_id, partitions=[partition])
    return ShareAcknowledgeRequest(
        group_id="g", member_id="m", share_session_epoch=member.session_epoch, topics=[topic]
    )


@pytest.mark.parametrize(
    ("of_member", "method"),
    [(fetch_request, "fetch"), (fetch_request, "acknowledge"), (acknowledge_request, "acknowledge")],
)
def test_a_late_bug_in_the_delivery_of_records_is_answered(cluster: Cluster, of_member: Any, method: str) -> None:
    cluster.produce(b"x")
    member = Member(cluster).join()
    member.fetch()
    late = Late(cluster, "partitions", method)
    context, answer = dispatch(cluster, of_member(member))
    late.future.set_exception(ValueError("a bug"))
    assert codes(cluster, answer, context) == {ErrorCode.UNKNOWN_SERVER_ERROR}


def test_a_client_that_leaves_acquires_nothing(cluster: Cluster) -> None:
    member = Member(cluster).join()
    member.fetch()
    request = fetch_request(member)
    request.topics = []
    request.max_wait_ms = 60_000
    _, answer = dispatch(cluster, request)
    answer.cancel()
    cluster.node.loop.run_until_complete(asyncio.wait([answer]))
    cluster.produce(b"x")
    assert cluster.node.server.services.replica_manager.delayed_fetches.watched == 0
    assert cluster.node.server.services.share.partitions.records_acquired == 0


def test_a_client_that_leaves_while_it_waits_for_a_session_slot_waits_no_longer(cluster: Cluster) -> None:
    cluster.node.server.services.share.partitions.sessions._slots = 0
    request = fetch_request(Member(cluster))
    request.topics, request.max_wait_ms = [], 60_000
    _, answer = dispatch(cluster, request)
    answer.cancel()
    cluster.node.loop.run_until_complete(asyncio.wait([answer]))
    assert answer.cancelled()
