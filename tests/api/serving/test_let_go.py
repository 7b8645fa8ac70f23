"""A long message is freed with turns for the loop."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.api.serving.let_go import FREED, let_go
from barnabas.protocol.messages import DescribeGroupsResponse
from tests.short_turns import set_turn

PER_TURN = 20
OVER = object()


def test_what_is_within_a_response_is_freed_in_many_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    freed = 0

    class Member:
        def __del__(self) -> None:
            nonlocal freed
            freed += 1

    def response() -> DescribeGroupsResponse:
        members: list[list[Any]] = [[Member() for _ in range(3 * PER_TURN)] for _ in range(2)]
        return DescribeGroupsResponse(groups=[DescribeGroupsResponse.DescribedGroup(members=each) for each in members])

    set_turn(monkeypatch, PER_TURN * FREED)
    turns = let_go(response()).__await__()
    most, is_over = 0, False
    while not is_over:
        before = freed
        is_over = next(turns, OVER) is OVER
        most = max(most, freed - before)
    assert (freed, most) == (6 * PER_TURN, PER_TURN)
