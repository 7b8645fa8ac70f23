"""A long message is freed in slices."""

from __future__ import annotations

from typing import Any

from barnabas.api.let_go import let_go
from barnabas.protocol.messages import DescribeGroupsResponse
from barnabas.steps import PIECE


def test_what_is_within_a_response_is_freed_in_slices() -> None:
    freed = 0

    class Member:
        def __del__(self) -> None:
            nonlocal freed
            freed += 1

    def response() -> DescribeGroupsResponse:
        members: list[list[Any]] = [[Member() for _ in range(3 * PIECE)] for _ in range(2)]
        return DescribeGroupsResponse(groups=[DescribeGroupsResponse.DescribedGroup(members=each) for each in members])

    steps = let_go(response())
    most = 0
    while freed < 6 * PIECE:
        before = freed
        steps.send(None)
        most = max(most, freed - before)
    assert most == PIECE
    steps.close()
