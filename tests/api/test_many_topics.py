"""Long requests whose topics name no partitions: the topics alone take turns of the loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from barnabas import turns
from barnabas.api import fetch, offset_commit, produce
from barnabas.api.serving.excess import MISSING_TOPICS_MAX, check_subscription
from barnabas.protocol.errors import KafkaError
from barnabas.protocol.messages import FetchRequest, OffsetCommitRequest, ProduceRequest
from barnabas.turns import ELEMENT
from tests.replication.hosting import Hosting
from tests.short_turns import set_turn

TOPICS = 200
PER_TURN = 10


def produced(acks: int) -> ProduceRequest:
    return ProduceRequest(acks=acks, topic_data=[ProduceRequest.TopicProduceData(name="t")] * TOPICS)


@pytest.fixture
def waits(hosting: Hosting, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Turns are short; the element is how often somebody has waited for one."""
    count = [0]
    wait = turns.next_turn_of

    def counted(loop: asyncio.AbstractEventLoop) -> asyncio.Future[None]:
        count[0] += 1
        return wait(loop)

    def at_once(executor: Any, function: Callable[..., Any], *arguments: Any) -> asyncio.Future[Any]:
        future = hosting.loop.create_future()
        future.set_result(function(*arguments))
        return future

    monkeypatch.setattr(turns, "next_turn_of", counted)
    monkeypatch.setattr(hosting.loop, "run_in_executor", at_once)
    set_turn(monkeypatch, PER_TURN * ELEMENT)
    return count


@pytest.mark.parametrize(
    ("handle", "key", "version", "request_"),
    [
        pytest.param(produce.handle, 0, 9, produced(-1), id="Produce"),
        pytest.param(produce.handle, 0, 9, produced(7), id="Produce, acks=7"),
        pytest.param(
            offset_commit.handle,
            8,
            8,
            OffsetCommitRequest(group_id="g", topics=[OffsetCommitRequest.OffsetCommitRequestTopic(name="t")] * TOPICS),
            id="OffsetCommit",
        ),
    ],
)
def test_topics_without_partitions(
    hosting: Hosting, waits: list[int], handle: Any, key: int, version: int, request_: Any
) -> None:
    context = hosting.context(key, version)
    # As the dispatcher says of a long request.
    context.is_long, context.holds_order = True, key == 0
    hosting.loop.run_until_complete(handle(context, request_))
    assert waits[0] >= TOPICS // PER_TURN - 1


def test_the_topics_of_a_long_fetch_are_read_in_the_executor(
    hosting: Hosting, waits: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """They change nothing, so they need no turn of the loop."""
    in_executor: list[str] = []
    run = hosting.loop.run_in_executor

    def noted(executor: Any, function: Callable[..., Any], *arguments: Any) -> asyncio.Future[Any]:
        in_executor.append(function.__name__)
        return run(executor, function, *arguments)

    monkeypatch.setattr(hosting.loop, "run_in_executor", noted)
    request = FetchRequest(session_epoch=-1, topics=[FetchRequest.FetchTopic()] * TOPICS)
    for is_long, ran in ((False, []), (True, ["_wanted"])):
        context = hosting.context(1, 12)
        context.is_long = is_long
        hosting.loop.run_until_complete(fetch.handle(context, request))
        assert in_executor == ran


def test_the_partitions_that_a_session_forgets(hosting: Hosting, waits: list[int]) -> None:
    context = hosting.context(1, 12)
    context.is_long = True
    forgotten = FetchRequest.ForgottenTopic(topic="t", partitions=list(range(TOPICS)))
    request = FetchRequest(session_id=5, session_epoch=1, forgotten_topics_data=[forgotten])
    hosting.loop.run_until_complete(fetch.handle(context, request))
    assert waits[0] >= TOPICS // (PER_TURN * ELEMENT) - 1


def test_a_subscription_is_looked_up_turn_by_turn(hosting: Hosting, waits: list[int]) -> None:
    """To make one set of all its names would hold the loop, whatever is waited for afterwards."""
    looked_up: list[int] = []

    class Name(str):
        __slots__ = ()

        def __hash__(self) -> int:
            looked_up.append(waits[0])
            return super().__hash__()

    context = hosting.context(68, 1)
    context.is_long = True
    names: list[str] = [Name(f"missing-{number}") for number in range(MISSING_TOPICS_MAX + 1)]
    with pytest.raises(KafkaError, match="names 1001 topics that do not exist"):
        hosting.loop.run_until_complete(check_subscription(context, names))
    assert max(looked_up.count(turn) for turn in set(looked_up)) <= 2 * PER_TURN
