"""JoinGroup, SyncGroup, Heartbeat and LeaveGroup in every version."""

from __future__ import annotations

import asyncio

import pytest

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import (
    DescribeGroupsRequest,
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    SyncGroupRequest,
)
from tests.api.group_hosting import GroupHosting
from tests.coordinator.shards import shard_of
from tests.replication.hosting import Hosting


def joining(member_id: str = "", version: int = 9, group_id: str = "g") -> JoinGroupRequest:
    protocol = JoinGroupRequest.JoinGroupRequestProtocol(name="range", metadata=b"m")
    return JoinGroupRequest(
        group_id=group_id,
        session_timeout_ms=10_000,
        rebalance_timeout_ms=-1 if version == 0 else 20_000,
        member_id=member_id,
        protocol_type="consumer",
        protocols=[protocol],
    )


@pytest.mark.parametrize("version", range(10))
def test_member_id_required_from_version_4(hosting: Hosting, version: int) -> None:
    host = GroupHosting(hosting)
    response = host.ask(11, joining(version=version), version)
    if version >= 4:
        assert response.error_code == ErrorCode.MEMBER_ID_REQUIRED
        assert response.protocol_name == (None if version >= 7 else "")
        response = host.ask(11, joining(response.member_id, version), version)
    host.hosting.advance(20)
    answer = host.through_bytes(response.result(), version)
    assert (answer.error_code, answer.generation_id, answer.protocol_name) == (ErrorCode.NONE, 1, "range")
    assert answer.leader == answer.member_id
    assert [member.metadata for member in answer.members] == [b"m"]
    assert answer.member_id.startswith("client-")
    assert answer.protocol_type == ("consumer" if version >= 7 else None)


def test_the_first_version_has_one_timeout_for_both(hosting: Hosting) -> None:
    host = GroupHosting(hosting)
    host.ask(11, joining(version=0), 0)
    shard = shard_of(host.coordinator, host.coordinator.partition_of("g"))
    assert shard.groups["g"].rebalance_timeout_ms == 10_000


@pytest.mark.parametrize("version", range(6))
def test_sync_group(hosting: Hosting, version: int) -> None:
    host = GroupHosting(hosting)
    member_id = host.stable_member()
    request = SyncGroupRequest(group_id="g", generation_id=1, member_id=member_id)
    if version >= 5:
        assert host.ask(14, request, version).error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        request.protocol_type, request.protocol_name = "consumer", "range"
    response = host.ask(14, request, version)
    assert (response.error_code, response.assignment) == (ErrorCode.NONE, b"part")


@pytest.mark.parametrize("version", range(5))
def test_heartbeat(hosting: Hosting, version: int) -> None:
    host = GroupHosting(hosting)
    member_id = host.stable_member()

    def beat(generation_id: int) -> ErrorCode:
        request = HeartbeatRequest(group_id="g", generation_id=generation_id, member_id=member_id)
        return ErrorCode(host.ask(12, request, version).error_code)

    assert beat(1) is ErrorCode.NONE
    assert beat(2) is ErrorCode.ILLEGAL_GENERATION


@pytest.mark.parametrize("version", range(6))
def test_leave_group(hosting: Hosting, version: int) -> None:
    host = GroupHosting(hosting)
    member_id = host.stable_member()
    expected = [ErrorCode.NONE, ErrorCode.UNKNOWN_MEMBER_ID]
    if version < 3:
        request = LeaveGroupRequest(group_id="g", member_id=member_id)
        assert [host.ask(13, request, version).error_code for _ in range(2)] == expected
        return
    identity = LeaveGroupRequest.MemberIdentity(member_id=member_id)
    request = LeaveGroupRequest(group_id="g", members=[identity, identity])
    response = host.ask(13, request, version)
    assert [member.error_code for member in response.members] == expected
    assert response.error_code == ErrorCode.NONE


def test_where_a_member_comes_from(hosting: Hosting) -> None:
    host = GroupHosting(hosting)
    host.stable_member()
    (group,) = host.ask(15, DescribeGroupsRequest(groups=["g"]), 5).groups
    (member,) = group.members
    assert (member.client_id, member.client_host, member.member_assignment) == ("client", "/127.0.0.9", b"part")


def test_a_client_that_gives_up_waiting_harms_nobody(hosting: Hosting) -> None:
    host = GroupHosting(hosting)
    waiting = host.ask(11, joining(version=3), 3)
    assert asyncio.isfuture(waiting)
    waiting.cancel()
    other = host.ask(11, joining(version=3), 3)
    host.hosting.advance(40)
    assert other.result().generation_id == 1
