"""DescribeGroups, ListGroups and DeleteGroups in every version."""

from __future__ import annotations

import pytest

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import (
    DeleteGroupsRequest,
    DescribeGroupsRequest,
    ListGroupsRequest,
    OffsetCommitRequest,
)
from tests.api.group_hosting import GroupHosting
from tests.replication.hosting import Hosting


@pytest.mark.parametrize("version", range(7))
def test_describe_groups(hosting: Hosting, version: int) -> None:
    host = GroupHosting(hosting)
    member_id = host.stable_member()
    request = DescribeGroupsRequest(groups=["other", "g"], include_authorized_operations=version >= 3)
    other, group = host.ask(15, request, version).groups
    assert (other.group_id, other.group_state, other.members) == ("other", "Dead", [])
    if version >= 6:
        assert (other.error_code, other.error_message) == (ErrorCode.GROUP_ID_NOT_FOUND, "Group other not found.")
        assert other.authorized_operations == -(1 << 31)
    else:
        assert other.error_code == ErrorCode.NONE
    assert (group.group_state, group.protocol_type, group.protocol_data) == ("Stable", "consumer", "range")
    assert [member.member_id for member in group.members] == [member_id]
    assert group.authorized_operations == (3400 if version >= 3 else -(1 << 31))


def test_authorized_operations_only_on_request(hosting: Hosting) -> None:
    host = GroupHosting(hosting)
    host.stable_member()
    assert host.ask(15, DescribeGroupsRequest(groups=["g"]), 5).groups[0].authorized_operations == -(1 << 31)


@pytest.mark.parametrize("version", range(6))
def test_list_groups(hosting: Hosting, version: int) -> None:
    host = GroupHosting(hosting)
    host.stable_member("a")
    host.stable_member("b", "connect")
    groups = {group.group_id: group for group in host.ask(16, ListGroupsRequest(), version).groups}
    assert {name: group.protocol_type for name, group in groups.items()} == {"a": "consumer", "b": "connect"}
    assert groups["a"].group_state == ("Stable" if version >= 4 else "")
    assert groups["a"].group_type == ("classic" if version >= 5 else "")


@pytest.mark.parametrize("version", range(4))
def test_delete_groups(hosting: Hosting, version: int) -> None:
    host = GroupHosting(hosting)
    host.stable_member("busy")
    id_ = hosting.create_topic("t")
    part = OffsetCommitRequest.OffsetCommitRequestPartition(partition_index=0, committed_offset=1)
    topic = OffsetCommitRequest.OffsetCommitRequestTopic(name="t", topic_id=id_, partitions=[part])
    host.ask(8, OffsetCommitRequest(group_id="idle", topics=[topic]), 9)
    response = host.ask(42, DeleteGroupsRequest(groups_names=["busy", "idle", "other"]), version)
    assert [(result.group_id, ErrorCode(result.error_code)) for result in response.results] == [
        ("busy", ErrorCode.NON_EMPTY_GROUP),
        ("idle", ErrorCode.NONE),
        ("other", ErrorCode.GROUP_ID_NOT_FOUND),
    ]
