"""The operations on groups, of many groups."""

from __future__ import annotations

from barnabas.api.authorized_operations import GROUP_OPERATIONS, NOT_ASKED, add_group_operations
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import DescribeGroupsRequest, DescribeGroupsResponse
from barnabas.steps import PIECE, start
from tests.coordinator.virtual_loop import VirtualLoop


def test_many_groups_get_their_operations_in_pieces() -> None:
    found = [DescribeGroupsResponse.DescribedGroup() for _ in range(PIECE)]
    missing = [DescribeGroupsResponse.DescribedGroup(error_code=ErrorCode.GROUP_ID_NOT_FOUND) for _ in range(PIECE)]
    loop = VirtualLoop()
    adding = start(
        add_group_operations(DescribeGroupsRequest(include_authorized_operations=True), found + missing), loop
    )
    assert not adding.done(), "other clients have a turn between two pieces"
    loop.run_ready()
    adding.result()
    assert {group.authorized_operations for group in found} == {GROUP_OPERATIONS}
    assert {group.authorized_operations for group in missing} == {NOT_ASKED}
