"""The order of a connection's requests and responses, without a connection."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Iterator
from typing import Any

import pytest

from barnabas.api.serving.context import ConnectionInfo, RequestContext
from barnabas.net.response_queue import PIPELINE_LIMIT, ResponseQueue
from tests.net.scripted_dispatcher import FETCH, METADATA, PRODUCE

OTHER = 0x0100
"""A key that only its first byte tells from Produce."""


@pytest.fixture
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    loop = asyncio.new_event_loop()
    yield loop
    loop.close()


def context(key: int, correlation_id: int = 0) -> RequestContext:
    return RequestContext(None, ConnectionInfo("c"), key, 1, correlation_id)  # type: ignore[arg-type]


def frame(key: int) -> memoryview:
    return memoryview(struct.pack(">hhi", key, 1, 0))


def admitted(queue: ResponseQueue) -> list[int]:
    return [key for key in (PRODUCE, FETCH, METADATA, OTHER) if queue.admits(frame(key))]


def test_any_request_is_admitted_while_no_response_waits() -> None:
    queue = ResponseQueue()
    assert admitted(queue) == [PRODUCE, FETCH, METADATA, OTHER]
    assert queue.admits(memoryview(b"")), "the dispatcher rejects it"


def test_only_produce_is_admitted_behind_a_produce(loop: asyncio.AbstractEventLoop) -> None:
    queue = ResponseQueue()
    queue.add(context(PRODUCE), loop.create_future())
    assert admitted(queue) == [PRODUCE]
    assert not queue.admits(memoryview(b"\0"))


@pytest.mark.parametrize("key", [FETCH, METADATA])
def test_nothing_is_admitted_behind_another_request(loop: asyncio.AbstractEventLoop, key: int) -> None:
    queue = ResponseQueue()
    queue.add(context(key), loop.create_future())
    assert admitted(queue) == []


def test_nothing_is_admitted_behind_a_produce_that_holds_the_order(loop: asyncio.AbstractEventLoop) -> None:
    queue = ResponseQueue()
    queue.add(context(PRODUCE), loop.create_future())
    holding = context(PRODUCE)
    holding.holds_order = True
    queue.add(holding, loop.create_future())
    assert admitted(queue) == []


def test_produce_requests_are_admitted_up_to_the_limit(loop: asyncio.AbstractEventLoop) -> None:
    queue = ResponseQueue()
    for _ in range(PIPELINE_LIMIT):
        assert queue.admits(frame(PRODUCE))
        queue.add(context(PRODUCE), loop.create_future())
    assert not queue.admits(frame(PRODUCE))


def test_responses_are_taken_in_the_order_of_requests(loop: asyncio.AbstractEventLoop) -> None:
    queue = ResponseQueue()
    first, third = loop.create_future(), loop.create_future()
    results: list[Any] = [first, [bytearray(b"second")], third, None]
    for correlation_id, result in enumerate(results, 1):
        queue.add(context(PRODUCE, correlation_id), result)

    def taken() -> list[int]:
        return [ready[0].correlation_id for ready in iter(queue.take, None)]

    third.set_result("third")
    assert taken() == []
    first.set_result("first")
    assert taken() == [1, 2, 3, 4]
    assert repr(queue) == "<ResponseQueue waiting=0>"


def test_cancel_reaches_every_future_and_empties_the_queue(loop: asyncio.AbstractEventLoop) -> None:
    queue = ResponseQueue()
    waiting, done = loop.create_future(), loop.create_future()
    done.set_result("too late")
    queue.add(context(PRODUCE), waiting)
    queue.add(context(PRODUCE), None)
    queue.add(context(PRODUCE), done)
    queue.cancel()
    assert waiting.cancelled()
    assert not done.cancelled()
    assert queue.take() is None
