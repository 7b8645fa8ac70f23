"""Requests about classic groups: checks before a group is asked, and errors as each request's own answer."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.group.classic import requests
from barnabas.group.classic.group import ClassicGroup, ClassicGroupState
from barnabas.group.sender import Sender
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages import HeartbeatRequest, JoinGroupRequest, LeaveGroupRequest, SyncGroupRequest
from barnabas.steps import start
from barnabas.turns import ELEMENT, TURN
from tests.group.classic.test_group import member, preparing
from tests.group.script import ScriptRunner
from tests.group.test_group_coordinator import Hosted

SENDER = Sender("c", "/127.0.0.1", 9)
Identity = LeaveGroupRequest.MemberIdentity


def leave(host: Hosted, *members: tuple[str, str | None], group_id: str = "g") -> Any:
    request = LeaveGroupRequest(
        group_id=group_id,
        members=[Identity(member_id=member_id, group_instance_id=instance) for member_id, instance in members],
    )
    return host.ask(requests.leave_group(host.coordinator, request, SENDER))


def test_each_member_that_leaves_a_missing_group_is_unknown() -> None:
    left = leave(Hosted(), ("a", None), ("", "i"))
    assert left.error_code == 0
    assert [(one.member_id, one.group_instance_id, one.error_code) for one in left.members] == [
        ("a", None, ErrorCode.UNKNOWN_MEMBER_ID),
        ("", "i", ErrorCode.UNKNOWN_MEMBER_ID),
    ]


def test_many_members_leave_in_parts_and_each_has_its_outcome() -> None:
    host = Hosted()
    host.commit("g")
    names = [f"m{index}" for index in range(TURN // ELEMENT + 2)]
    request = LeaveGroupRequest(
        group_id="g", members=[Identity(member_id=name, group_instance_id=None) for name in names]
    )
    started = start(requests.leave_group(host.coordinator, request, SENDER), host.loop)
    assert not started.done(), "the loop has a turn"
    host.loop.run_ready()
    assert [one.member_id for one in started.result().members] == names
    assert {one.error_code for one in started.result().members} == {ErrorCode.UNKNOWN_MEMBER_ID}


def test_an_error_of_the_coordinator_is_the_answer_to_all_who_leave() -> None:
    host = Hosted(1)
    host.coordinator.on_resigned(0)
    left = leave(host, ("a", None))
    assert (left.error_code, left.members) == (ErrorCode.NOT_COORDINATOR, [])


def test_a_leave_that_the_log_refuses_is_an_error_of_the_request() -> None:
    runner = ScriptRunner()
    runner.run("> join a version=3\n> advance 3s\n> sync a a=t0\n")
    assert "leave COORDINATOR_NOT_AVAILABLE" in runner.run("> refuse NOT_ENOUGH_REPLICAS\n> leave a\n")


def test_requests_without_a_group_id_are_rejected() -> None:
    host = Hosted()
    joined = host.ask(requests.join_group(host.coordinator, JoinGroupRequest(member_id="m"), SENDER))
    assert (joined.error_code, joined.member_id) == (ErrorCode.INVALID_GROUP_ID, "m")
    synced = host.ask(requests.sync_group(host.coordinator, SyncGroupRequest(), SENDER))
    beaten = host.ask(requests.heartbeat(host.coordinator, HeartbeatRequest(), SENDER))
    left = leave(host, ("m", None), group_id="")
    assert {synced.error_code, beaten.error_code, left.error_code} == {ErrorCode.INVALID_GROUP_ID}


@pytest.mark.parametrize(
    ("timeout_ms", "code"),
    [
        (5_999, ErrorCode.INVALID_SESSION_TIMEOUT),
        (6_000, ErrorCode.MEMBER_ID_REQUIRED),
        (1_800_000, ErrorCode.MEMBER_ID_REQUIRED),
        (1_800_001, ErrorCode.INVALID_SESSION_TIMEOUT),
    ],
)
def test_a_session_timeout_is_within_the_brokers_bounds(timeout_ms: int, code: ErrorCode) -> None:
    host = Hosted()
    request = JoinGroupRequest(
        group_id="g",
        session_timeout_ms=timeout_ms,
        protocol_type="consumer",
        protocols=[JoinGroupRequest.JoinGroupRequestProtocol(name="range", metadata=b"")],
    )
    assert host.ask(requests.join_group(host.coordinator, request, SENDER)).error_code == code


def test_requests_to_a_coordinator_that_has_resigned_have_its_error() -> None:
    host = Hosted(1)
    host.coordinator.on_resigned(0)
    join = JoinGroupRequest(group_id="g", session_timeout_ms=10_000)
    assert host.ask(requests.join_group(host.coordinator, join, SENDER)).error_code == ErrorCode.NOT_COORDINATOR
    sync = SyncGroupRequest(group_id="g")
    assert host.ask(requests.sync_group(host.coordinator, sync, SENDER)).error_code == ErrorCode.NOT_COORDINATOR
    beat = HeartbeatRequest(group_id="g")
    assert host.ask(requests.heartbeat(host.coordinator, beat, SENDER)).error_code == ErrorCode.NOT_COORDINATOR


@pytest.mark.parametrize(("version", "code"), [(5, 0), (6, ErrorCode.GROUP_ID_NOT_FOUND)])
def test_a_missing_group_is_described_as_dead(version: int, code: int) -> None:
    host = Hosted()
    (described,) = host.ask(requests.describe(host.coordinator, ["none"], version))
    assert (described.group_id, described.group_state, described.error_code) == ("none", "Dead", code)
    assert described.error_message == ("Group none not found." if code else None)


def test_only_an_empty_group_that_is_not_being_unloaded_is_deleted() -> None:
    ClassicGroup("g", now_ms=0).validate_delete_group()
    with pytest.raises(KafkaError) as raised:
        preparing(member("a")).validate_delete_group()
    assert raised.value.code is ErrorCode.NON_EMPTY_GROUP
    with pytest.raises(KafkaError) as raised:
        ClassicGroup("g", now_ms=0, state=ClassicGroupState.DEAD).validate_delete_group()
    assert raised.value.code is ErrorCode.GROUP_ID_NOT_FOUND
