"""Requests for many partitions whose logs are not open yet: creating one takes milliseconds, so each turn of the loop opens a few."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from barnabas.api import fetch, list_offsets, produce
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import ListOffsetsRequest, ProduceRequest
from barnabas.steps import step
from barnabas.turns import LOG_OPENED, TURN
from tests.api import test_fetch, test_produce
from tests.replication.hosting import NODE, Hosting, batch

COUNT = 30
PER_TURN = TURN // LOG_OPENED + 1
"""What an append or a read costs is spent when it is done, so the last one of a turn costs too much."""


@pytest.fixture
def opened(hosting: Hosting, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many logs each turn of the loop has opened."""
    turns = [0]
    open_log = hosting.replicas.open_log

    def counted(partition: Any) -> Any:
        turns[-1] += 1
        return open_log(partition)

    def next_turn() -> None:
        turns.append(0)
        hosting.loop.call_soon(next_turn)

    monkeypatch.setattr(hosting.replicas, "open_log", counted)
    next_turn()
    return turns


def answered(hosting: Hosting, handle: Callable[[], Any]) -> Any:
    """Handle a request as the dispatcher does, and wait for its response."""

    async def asked() -> Any:
        response = handle()
        return await response if isinstance(response, Awaitable) else response

    return hosting.loop.run_until_complete(asked())


@pytest.mark.parametrize("acks", [1, -1])
def test_a_produce_request(hosting: Hosting, opened: list[int], acks: int) -> None:
    hosting.create_topic("t", COUNT)
    context = hosting.context(0, 9)
    released: list[int] = []
    context.when_released = lambda: released.append(sum(opened))
    batches = [("t", index, batch(b"a")) for index in range(COUNT)]
    handled = step(produce.handle(context, test_produce.request(*batches, acks=acks)), hosting.loop)
    assert context.holds_order, "the next request of the connection must not overtake this one"
    response = answered(hosting, lambda: handled)
    assert (released, context.holds_order) == ([COUNT], False)
    found = test_produce.answers(response)
    assert [(answer.index, answer.error_code, answer.base_offset) for answer in found] == [
        (index, 0, 0) for index in range(COUNT)
    ]
    assert len(response.responses) == 1
    assert (sum(opened), max(opened)) == (COUNT, PER_TURN)


@pytest.mark.parametrize("acks", [0, 1, -1])
def test_the_records_survive_the_next_read_of_the_connection(hosting: Hosting, acks: int) -> None:
    """The next request is of the same shape, so that its records would pass every check in the place of these."""
    hosting.create_topic("t", COUNT)
    first, second = (
        test_produce.request(*(("t", index, batch(b"%s%02d" % (name, index))) for index in range(COUNT)), acks=acks)
        for name in (b"a", b"b")
    )
    buffer = bytearray(first.encode(9))
    context = hosting.context(0, 9)

    def handle() -> Any:
        response = step(produce.handle(context, ProduceRequest.decode(memoryview(buffer), 9)), hosting.loop)
        buffer[:] = second.encode(9)
        return response

    answered(hosting, handle)
    parts = [test_fetch.part(index) for index in range(COUNT)]
    found = answered(hosting, lambda: fetch.handle(hosting.context(1, 12), test_fetch.request(*parts)))
    assert [test_fetch.values(data) for data in test_fetch.answers(found)] == [[b"a%02d" % i] for i in range(COUNT)]


def test_the_logs_of_a_produce_request_are_open_before_a_follower_has_its_records(hosting: Hosting) -> None:
    """A follower that is slow costs one wait, not one for each few partitions."""
    hosting.create_topic("t", COUNT, replicas=(NODE, 2))
    batches = [("t", index, batch(b"a")) for index in range(COUNT)]
    response = step(produce.handle(hosting.context(0, 9), test_produce.request(*batches)), hosting.loop)
    for _ in range(COUNT):
        hosting.spin()
    assert not response.done()
    assert all(hosting.replicas.partition("t", index).log.log_end_offset == 1 for index in range(COUNT))
    hosting.advance(1_000)
    assert {answer.error_code for answer in test_produce.answers(response.result())} == {ErrorCode.REQUEST_TIMED_OUT}


def test_a_produce_request_without_acknowledgement_that_fails_first(hosting: Hosting, opened: list[int]) -> None:
    hosting.create_topic("t", COUNT)
    context = hosting.context(0, 9)
    batches = [("none", 0, batch(b"a")), *(("t", index, batch(b"a")) for index in range(COUNT))]
    request = test_produce.request(*batches, acks=0)
    assert answered(hosting, lambda: produce.handle(context, request)) is None
    assert context.close_connection
    assert sum(opened) == COUNT


@pytest.mark.parametrize("session", [(0, -1), (0, 0)], ids=["no session", "session"])
def test_a_fetch(hosting: Hosting, opened: list[int], session: tuple[int, int]) -> None:
    hosting.create_topic("t", COUNT)
    parts = [test_fetch.part(index) for index in range(COUNT)]
    for _ in range(2):
        request = test_fetch.request(*parts, session=session)
        response = answered(hosting, lambda asked=request: fetch.handle(hosting.context(1, 12), asked))
        assert [data.partition_index for data in test_fetch.answers(response)] == list(range(COUNT))
    assert (sum(opened), max(opened)) == (COUNT, PER_TURN)


def test_a_fetch_of_open_logs_takes_one_turn(hosting: Hosting) -> None:
    hosting.create_topic("t", COUNT)
    for index in range(COUNT):
        hosting.append("t", b"a", index=index)
    parts = [test_fetch.part(index) for index in range(COUNT)]
    response = step(fetch.handle(hosting.context(1, 12), test_fetch.request(*parts)), hosting.loop)
    assert all(test_fetch.values(data) == [b"a"] for data in test_fetch.answers(response))


def test_list_offsets(hosting: Hosting, opened: list[int]) -> None:
    hosting.create_topic("t", COUNT)
    asked = [ListOffsetsRequest.ListOffsetsPartition(partition_index=index, timestamp=-1) for index in range(COUNT)]
    request = ListOffsetsRequest(topics=[ListOffsetsRequest.ListOffsetsTopic(name="t", partitions=asked)])
    response = answered(hosting, lambda: list_offsets.handle(hosting.context(2, 7), request))
    assert [data.offset for data in response.topics[0].partitions] == [0] * COUNT
    assert (sum(opened), max(opened)) == (COUNT, TURN // LOG_OPENED)
