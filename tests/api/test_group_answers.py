"""Every group API answers when what it waits for fails late, and stops waiting when its client leaves."""

from __future__ import annotations

import asyncio
import logging
import struct
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from barnabas.group.group_coordinator import GroupCoordinator
from barnabas.protocol.api_keys import api, request_header_version, response_header_version
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupHeartbeatRequest,
    DeleteGroupsRequest,
    DescribeGroupsRequest,
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    ListGroupsRequest,
    OffsetCommitRequest,
    OffsetDeleteRequest,
    OffsetFetchRequest,
    StreamsGroupDescribeRequest,
    StreamsGroupHeartbeatRequest,
    SyncGroupRequest,
)
from tests.api.served_node import Serving

COMMITTED = OffsetCommitRequest.OffsetCommitRequestTopic(
    name="t",
    partitions=[OffsetCommitRequest.OffsetCommitRequestPartition(partition_index=0, committed_offset=1)],
)
DELETED = OffsetDeleteRequest.OffsetDeleteRequestTopic(
    name="t", partitions=[OffsetDeleteRequest.OffsetDeleteRequestPartition(partition_index=0)]
)
FETCHED = OffsetFetchRequest.OffsetFetchRequestGroup(group_id="g", topics=[])
STREAMS = StreamsGroupHeartbeatRequest(
    group_id="g", member_id="m", member_epoch=1, active_tasks=[], standby_tasks=[], warmup_tasks=[], topology=None
)
MEMBER = LeaveGroupRequest.MemberIdentity(member_id="m", group_instance_id=None)
REQUESTS: list[tuple[Any, int]] = [
    (JoinGroupRequest(group_id="g", session_timeout_ms=10_000, rebalance_timeout_ms=10_000), 9),
    (SyncGroupRequest(group_id="g", protocol_type="consumer", protocol_name="range"), 5),
    (HeartbeatRequest(group_id="g"), 4),
    (LeaveGroupRequest(group_id="g", members=[MEMBER]), 5),
    (LeaveGroupRequest(group_id="g", member_id="m"), 2),
    (DescribeGroupsRequest(groups=["g"]), 6),
    (DescribeGroupsRequest(groups=["g"]), 5),
    (DeleteGroupsRequest(groups_names=["g"]), 2),
    (ListGroupsRequest(), 5),
    (OffsetCommitRequest(group_id="g", topics=[COMMITTED]), 9),
    (OffsetFetchRequest(groups=[FETCHED]), 9),
    (OffsetFetchRequest(groups=[FETCHED]), 10),
    (OffsetFetchRequest(group_id="g", topics=[]), 7),
    (OffsetDeleteRequest(group_id="g", topics=[DELETED]), 0),
    (ConsumerGroupHeartbeatRequest(group_id="g", member_id="m", member_epoch=1), 1),
    (ConsumerGroupDescribeRequest(group_ids=["g"]), 1),
    (STREAMS, 1),
    (StreamsGroupDescribeRequest(group_ids=["g"]), 1),
]


def name_of(case: tuple[Any, int]) -> str:
    return f"{api(case[0].API_KEY).name}-{case[1]}"


class LateCoordinator(GroupCoordinator):
    """Its shards answer when the test says so.

    Attributes:
        late: the answers that are awaited.
    """

    late: list[asyncio.Future[Any]]

    def write(self, group_id: str, operation: Any) -> asyncio.Future[Any]:
        self.late.append(self.loop.create_future())
        return self.late[-1]

    read = write

    def read_all(self, operation: Any) -> list[asyncio.Future[Any]]:
        return [self.write("", operation), self.write("", operation)]


class Client:
    """Sends requests to a node whose group coordinator is late."""

    def __init__(self, serving: Serving) -> None:
        self.serving = serving
        services = serving.server.services
        self.coordinator = services.group_coordinator
        self.coordinator.__class__ = LateCoordinator
        self.coordinator.late = []

    @property
    def late(self) -> list[asyncio.Future[Any]]:
        return self.coordinator.late

    def send(self, request: Any, version: int) -> tuple[Any, asyncio.Future[Any]]:
        key = request.API_KEY
        header = struct.pack(">hhih", key, version, 42, 4) + b"test"
        header += b"\0" if request_header_version(key, version) >= 2 else b""
        frame = memoryview(bytearray(header + request.encode(version)))
        context, answer = self.serving.dispatcher.dispatch(self.serving.connection, frame)
        assert isinstance(answer, asyncio.Future), "the handler did not wait"
        return context, answer

    def turns(self, count: int = 8) -> None:
        async def turns() -> None:
            for _ in range(count):
                await asyncio.sleep(0)

        self.serving.loop.run_until_complete(turns())

    def answer(self, context: Any, answer: asyncio.Future[Any]) -> Any:
        self.turns()
        assert answer.done(), "the client waits for ever"
        output = answer.result()
        assert output is not None
        body = b"".join(output)  # type: ignore[arg-type]
        skipped = 8 + response_header_version(context.api_key, context.version)
        return api(context.api_key).response_class.decode(body[skipped:], context.version)


@pytest.fixture(scope="module")
def serving(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    made = Serving(tmp_path_factory.mktemp("node"))
    made.create_topic("t")
    found = made.server.services.image().topics.by_name["t"]
    COMMITTED.topic_id = found.topic_id
    yield made
    made.server.services.group_coordinator.__class__ = GroupCoordinator
    made.close()


@pytest.fixture
def client(serving: Serving) -> Client:
    return Client(serving)


def codes(response: Any) -> set[int]:
    """All error codes of a response."""
    found = set()
    for slot in type(response).__slots__:
        value = getattr(response, slot)
        if slot == "error_code":
            found.add(value)
        for element in value if isinstance(value, list) else ():
            if hasattr(type(element), "__slots__"):
                found |= codes(element)
    return found


@pytest.mark.parametrize("case", REQUESTS, ids=name_of)
def test_a_late_error_is_the_answers_error(client: Client, case: tuple[Any, int]) -> None:
    context, answer = client.send(*case)
    client.turns()
    for future in client.late:
        future.set_exception(KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS))
    expected = ErrorCode.NONE if isinstance(case[0], HeartbeatRequest) else ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert expected in codes(client.answer(context, answer))


@pytest.mark.parametrize("case", REQUESTS, ids=name_of)
def test_a_late_bug_is_an_unknown_server_error(
    client: Client, case: tuple[Any, int], caplog: pytest.LogCaptureFixture
) -> None:
    context, answer = client.send(*case)
    client.turns()
    for future in client.late:
        future.set_exception(ValueError("a bug"))
    with caplog.at_level(logging.ERROR):
        response = client.answer(context, answer)
    assert ErrorCode.UNKNOWN_SERVER_ERROR in codes(response)
    assert "a bug" in caplog.text


@pytest.mark.parametrize("case", REQUESTS, ids=name_of)
def test_a_client_that_leaves_ends_the_wait(client: Client, case: tuple[Any, int]) -> None:
    _, answer = client.send(*case)
    client.turns()
    answer.cancel()
    client.turns()
    assert answer.cancelled()
    assert client.late
    assert all(future.cancelled() for future in client.late), "something still waits"


def in_use(client: Client, monkeypatch: pytest.MonkeyPatch) -> asyncio.Future[Any]:
    """Have share groups in use; the returned future ends the deletion of their states."""
    states: asyncio.Future[Any] = client.serving.loop.create_future()
    share = SimpleNamespace(
        coordinator=SimpleNamespace(is_in_use=True), groups=SimpleNamespace(delete_states=lambda names: states)
    )
    monkeypatch.setattr(client.serving.server.services, "share", share)
    return states


DELETE = DeleteGroupsRequest(groups_names=["g", "h"])


def test_a_group_whose_share_state_cannot_be_deleted_stays(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    states = in_use(client, monkeypatch)
    context, answer = client.send(DELETE, 2)
    states.set_result({"h": ErrorCode.COORDINATOR_NOT_AVAILABLE})
    client.turns()
    (deleting,) = client.late
    deleting.set_result(ErrorCode.NONE)
    results = client.answer(context, answer).results
    assert [(result.group_id, result.error_code) for result in results] == [
        ("h", ErrorCode.COORDINATOR_NOT_AVAILABLE),
        ("g", ErrorCode.NONE),
    ]


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (KafkaError(ErrorCode.NOT_COORDINATOR), ErrorCode.NOT_COORDINATOR),
        (ValueError("a bug"), ErrorCode.UNKNOWN_SERVER_ERROR),
    ],
)
def test_share_states_that_fail_late_fail_the_deletion(
    client: Client, monkeypatch: pytest.MonkeyPatch, error: Exception, code: ErrorCode
) -> None:
    states = in_use(client, monkeypatch)
    context, answer = client.send(DELETE, 2)
    states.set_exception(error)
    assert codes(client.answer(context, answer)) == {code}


def test_a_deletion_that_has_begun_goes_on_without_its_client(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    states = in_use(client, monkeypatch)
    _, answer = client.send(DELETE, 2)
    answer.cancel()
    client.turns()
    assert answer.cancelled()
    states.set_result({})
    client.turns()
    assert len(client.late) == 2, "both groups are deleted"
