"""The operations on groups, of many groups."""

from __future__ import annotations

import pytest

from barnabas.api.serving.authorized_operations import GROUP_OPERATIONS, NOT_ASKED, add_group_operations
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import DescribeGroupsRequest, DescribeGroupsResponse
from barnabas.steps import start
from barnabas.turns import RECORD
from tests.coordinator.virtual_loop import VirtualLoop
from tests.short_turns import set_turn

PER_TURN = 20


def test_many_groups_get_their_operations_in_many_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    set_turn(monkeypatch, PER_TURN * RECORD)
    found = [DescribeGroupsResponse.DescribedGroup() for _ in range(PER_TURN)]
    missing = [DescribeGroupsResponse.DescribedGroup(error_code=ErrorCode.GROUP_ID_NOT_FOUND) for _ in range(PER_TURN)]
    loop = VirtualLoop()
    adding = start(
        add_group_operations(DescribeGroupsRequest(include_authorized_operations=True), found + missing), loop
    )
    assert not adding.done(), "other clients have a turn meanwhile"
    assert {group.authorized_operations for group in found} == {GROUP_OPERATIONS}
    loop.run_ready()
    adding.result()
    assert {group.authorized_operations for group in found} == {GROUP_OPERATIONS}
    assert {group.authorized_operations for group in missing} == {NOT_ASKED}
