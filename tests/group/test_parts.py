"""Long requests are handled in parts, and answered as if they had been handled in one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.group.parts import extend_topics, is_one_part, parts, parts_of
from barnabas.protocol.messages import OffsetDeleteRequest
from barnabas.turns import ELEMENT, TURN, new_budget
from tests.at_once import at_once

Topic = OffsetDeleteRequest.OffsetDeleteRequestTopic
Partition = OffsetDeleteRequest.OffsetDeleteRequestPartition

T = TypeVar("T")

PART = TURN // ELEMENT


def topics(counts: list[int]) -> list[Topic]:
    return [
        Topic(name=f"t{number}", partitions=[Partition(partition_index=index) for index in range(count)])
        for number, count in enumerate(counts)
    ]


def all_of(cut: AsyncIterator[T]) -> list[T]:
    async def collected() -> list[T]:
        return [part async for part in cut]

    return at_once(collected())


@given(st.lists(st.integers(0, 3 * PART // 2), max_size=4), st.integers(0, 3))
def test_parts_put_together_are_the_whole(counts: list[int], more: int) -> None:
    asked = topics([*counts, *[PART] * more])
    whole: list[Topic] = []
    found = all_of(parts(asked))
    for part in found:
        assert sum(len(topic.partitions) for topic in part) <= PART
        extend_topics(whole, part)
    assert whole == topics([*counts, *[PART] * more])
    assert is_one_part(asked) == (len(found) == 1 and found[0] is asked)


def test_a_short_request_is_one_part_of_its_own_topics() -> None:
    asked = topics([1, 2])
    (part,) = all_of(parts(asked))
    assert [one is topic for one, topic in zip(part, asked, strict=True)] == [True, True]


def test_a_request_without_topics_is_one_part() -> None:
    assert all_of(parts([])) == [[]]
    assert all_of(parts_of([])) == [[]]


def test_topics_without_partitions_count_too() -> None:
    assert [len(part) for part in all_of(parts(topics([0] * (PART + 1))))] == [PART, 1]


def test_elements_without_others_in_them_are_cut_by_their_number() -> None:
    items = list(range(2 * PART + 1))
    assert all_of(parts_of(items)) == [items[:PART], items[PART : 2 * PART], items[2 * PART :]]


@pytest.mark.parametrize(
    "cut",
    [lambda: parts(topics([1] * 2 * PART)), lambda: parts(topics([2 * PART - 2])), lambda: parts_of([0] * 2 * PART)],
    ids=["topics", "partitions", "elements"],
)
def test_no_turn_has_two_parts_whoever_asks(cut: Callable[[], AsyncIterator[object]]) -> None:
    turn, handled_in = 0, list[int]()

    async def handle() -> None:
        async for _ in cut():
            handled_in.append(turn)

    async def count_turns() -> None:
        nonlocal turn
        while len(handled_in) < 6 and turn < 100:
            turn += 1
            await asyncio.sleep(0)

    async def side_by_side() -> None:
        await asyncio.gather(count_turns(), handle(), handle(), handle())

    new_budget()
    asyncio.run(side_by_side())
    assert len(handled_in) == len(set(handled_in)) == 6, handled_in


def test_short_requests_are_paid_for_too() -> None:
    handled = 0

    async def handle() -> None:
        nonlocal handled
        async for _ in parts(topics([PART // 4 - 1])):
            handled += 1

    async def side_by_side() -> None:
        requests = asyncio.gather(*(handle() for _ in range(6)))
        await asyncio.sleep(0)
        assert handled == 4, "a turn has time for four of them"
        await requests
        assert handled == 6

    new_budget()
    asyncio.run(side_by_side())
