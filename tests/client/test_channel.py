"""A channel: one connection on a loop, its requests in order, and every way the other side can misbehave."""

from __future__ import annotations

import asyncio
import gc
import socket
import struct
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from barnabas.client.channel import BEGINNING_BYTES, Channel, ChannelTraffic, _Connection
from barnabas.client.errors import BrokerNotAvailable, ConnectionLost, RequestTimedOut
from barnabas.client.exchange import Exchange
from barnabas.protocol import messages
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.errors import ErrorCode, KafkaError, MalformedMessage
from barnabas.steps import observe, start
from tests.client.scripted_broker import (
    CLOSE,
    SILENCE,
    ScriptedBroker,
    answer,
    frame_response,
    versions_response,
)

RANGES = {ApiKey.API_VERSIONS: (0, 4), ApiKey.METADATA: (0, 12)}
HELLO = answer(versions_response(RANGES))


def metadata(cluster_id: str) -> messages.MetadataResponse:
    return messages.MetadataResponse(cluster_id=cluster_id)


def play(
    *script: Any, then: Callable[[Channel], Coroutine[Any, Any, None]], timeout_ms: int = 30_000
) -> ScriptedBroker:
    """Let a channel talk to a broker that follows a script."""

    async def run() -> None:
        channel = Channel(
            asyncio.get_running_loop(), "127.0.0.1", broker.port, client_id="broker-1", timeout_ms=timeout_ms
        )
        try:
            await then(channel)
        finally:
            channel.close()

    with ScriptedBroker(*script) as broker:
        asyncio.run(run())
    return broker


async def ask(channel: Channel, timeout_ms: int | None = None) -> str:
    response = await channel.request(messages.MetadataRequest(topics=None), timeout_ms=timeout_ms)
    assert isinstance(response, messages.MetadataResponse)
    return str(response.cluster_id)


def test_it_connects_at_the_first_request_and_asks_in_the_highest_common_version() -> None:
    async def then(channel: Channel) -> None:
        assert "idle" in repr(channel)
        assert await ask(channel) == "c"
        assert await ask(channel) == "d"
        assert "unanswered=0" in repr(channel)

    broker = play(HELLO, answer(metadata("c")), answer(metadata("d")), then=then)
    assert [(seen.api_key, seen.version, seen.client_id) for seen in broker.seen] == [
        (ApiKey.API_VERSIONS, 4, "broker-1"),
        (ApiKey.METADATA, 12, "broker-1"),
        (ApiKey.METADATA, 12, "broker-1"),
    ]


def test_an_older_broker_answers_in_version_0_with_its_range() -> None:
    unsupported = versions_response({ApiKey.API_VERSIONS: (0, 2)}, ErrorCode.UNSUPPORTED_VERSION)

    async def then(channel: Channel) -> None:
        assert await ask(channel) == "c"

    broker = play(answer(unsupported, body_version=0), HELLO, answer(metadata("c")), then=then)
    assert [seen.version for seen in broker.seen] == [4, 2, 12]


def test_requests_under_way_share_a_connection_and_are_answered_in_order() -> None:
    async def then(channel: Channel) -> None:
        assert await asyncio.gather(ask(channel), ask(channel), ask(channel)) == ["a", "b", "c"]

    broker = play(HELLO, *(answer(metadata(name)) for name in "abc"), then=then)
    assert len(broker.seen) == 4


class Transport(asyncio.Transport):
    """Loses what is written."""

    def write(self, data: Any) -> None:
        assert data

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return default


@pytest.mark.parametrize("read_bytes", [1, 3, 4, 5, 107, BEGINNING_BYTES - 1, BEGINNING_BYTES, 3 * BEGINNING_BYTES])
def test_responses_arrive_in_reads_of_any_size(read_bytes: int) -> None:
    names = ["a", "b" * 100, "c" * (BEGINNING_BYTES - 60), "d" * 3 * BEGINNING_BYTES, "", "e", "f" * BEGINNING_BYTES]
    arriving = b"".join(
        frame_response(ApiKey.METADATA, 12, number, metadata(name)) for number, name in enumerate(names, 1)
    )

    traffic = ChannelTraffic()

    async def run() -> list[str]:
        connection = _Connection(asyncio.get_running_loop(), Exchange("h:1", "broker-1"), 30_000, traffic)
        connection.connection_made(Transport())
        request = messages.MetadataRequest(topics=None)
        asked = [asyncio.ensure_future(connection.request(request, 12, 30_000)) for _ in names]
        while f"unanswered={len(names)}" not in repr(connection):
            await asyncio.sleep(0)
        position = 0
        while position < len(arriving):
            room = connection.get_buffer(-1)
            piece = arriving[position : position + min(read_bytes, len(room))]
            room[: len(piece)] = piece
            connection.buffer_updated(len(piece))
            position += len(piece)
        return [(await response).cluster_id for response in asked]

    assert asyncio.run(run()) == names
    assert (traffic.requests, traffic.responses, traffic.bytes_in) == (len(names), len(names), len(arriving))
    assert traffic.bytes_out > 0


def test_a_request_that_is_cancelled_leaves_its_answer_to_nobody() -> None:
    async def then(channel: Channel) -> None:
        first, second = (asyncio.ensure_future(ask(channel)) for _ in range(2))
        while "unanswered=2" not in repr(channel):
            await asyncio.sleep(0)
        first.cancel()
        assert await second == "b"
        assert first.cancelled()

    play(HELLO, answer(metadata("a")), answer(metadata("b")), then=then)


def test_the_first_of_several_that_wait_for_the_connection_is_cancelled() -> None:
    async def then(channel: Channel) -> None:
        first, second = (asyncio.ensure_future(ask(channel)) for _ in range(2))
        await asyncio.sleep(0)
        first.cancel()
        assert await second == "a"

    play(HELLO, answer(metadata("a")), then=then)


def test_a_broker_that_closes_fails_what_is_under_way_and_is_dialled_again() -> None:
    async def then(channel: Channel) -> None:
        first, second = (asyncio.ensure_future(ask(channel)) for _ in range(2))
        for each in (first, second):
            with pytest.raises(ConnectionLost, match="while waiting for the answer"):
                await each
        assert await ask(channel) == "again"

    play(HELLO, CLOSE, HELLO, answer(metadata("again")), then=then)


def test_a_broker_that_does_not_answer_in_time() -> None:
    async def then(channel: Channel) -> None:
        waits, times_out = asyncio.ensure_future(ask(channel)), asyncio.ensure_future(ask(channel, timeout_ms=1))
        with pytest.raises(RequestTimedOut, match="did not answer in time"):
            await times_out
        with pytest.raises(ConnectionLost):
            await waits

    play(HELLO, SILENCE, SILENCE, then=then)


def test_nobody_listens() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]

    async def run() -> None:
        channel = Channel(asyncio.get_running_loop(), "127.0.0.1", port, client_id="c")
        with pytest.raises(BrokerNotAvailable, match=f"cannot reach 127.0.0.1:{port}: .*"):
            await ask(channel)

    asyncio.run(run())


def test_a_failure_to_connect_that_nobody_waits_for_is_forgotten() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    reports: list[Any] = []

    async def run() -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, report: reports.append(report))
        channel = Channel(loop, "127.0.0.1", port, client_id="c", timeout_ms=50)
        cancelled = asyncio.ensure_future(ask(channel))
        while "connecting" not in repr(channel):
            await asyncio.sleep(0)
        cancelled.cancel()
        while "idle" not in repr(channel):
            await asyncio.sleep(0)
        with socket.create_server(("127.0.0.1", port)), pytest.raises(RequestTimedOut):
            await ask(channel)

    asyncio.run(run())
    gc.collect()
    assert reports == []


def test_a_listener_that_never_answers_the_first_request() -> None:
    async def then(channel: Channel) -> None:
        with pytest.raises(RequestTimedOut):
            await ask(channel)

    play(SILENCE, then=then, timeout_ms=50)


@pytest.mark.parametrize(
    ("response", "reason"),
    [
        (struct.pack(">i", 3) + b"abc", "too short"),
        (struct.pack(">i", -5), "announces a response of -5 bytes"),
        (b"HTTP/1.1 400 Bad Request\r\n", "is this a Kafka listener"),
        (struct.pack(">ii", 4, 99), "correlation id 99"),
    ],
    ids=["short", "negative", "http", "another's"],
)
def test_an_answer_that_cannot_be_read(response: bytes, reason: str) -> None:
    async def then(channel: Channel) -> None:
        with pytest.raises(MalformedMessage, match=reason):
            await ask(channel)
        assert await ask(channel) == "again"

    play(HELLO, response, HELLO, answer(metadata("again")), then=then)


def test_an_answer_that_cannot_be_read_ends_the_requests_behind_it() -> None:
    async def then(channel: Channel) -> None:
        first, second = (asyncio.ensure_future(ask(channel)) for _ in range(2))
        with pytest.raises(MalformedMessage, match="correlation id 99"):
            await first
        with pytest.raises(ConnectionLost, match="while reading the answer"):
            await second

    play(HELLO, struct.pack(">ii", 4, 99), SILENCE, then=then)


def test_an_answer_to_a_cancelled_request_that_cannot_be_read() -> None:
    async def then(channel: Channel) -> None:
        reports: list[Any] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, report: reports.append(report))
        first, second = (asyncio.ensure_future(ask(channel)) for _ in range(2))
        while "unanswered=2" not in repr(channel):
            await asyncio.sleep(0)
        first.cancel()
        with pytest.raises(ConnectionLost, match="while reading the answer: it cannot be read"):
            await second
        assert reports == []

    play(HELLO, struct.pack(">ii", 4, 99), SILENCE, then=then)


def test_a_version_nobody_speaks_is_refused_before_it_is_sent() -> None:
    async def then(channel: Channel) -> None:
        with pytest.raises(KafkaError, match="does not serve LIST_GROUPS"):
            await channel.request(messages.ListGroupsRequest())
        assert await ask(channel) == "c"

    play(HELLO, answer(metadata("c")), then=then)


def test_a_closed_channel_ends_what_is_under_way_and_refuses_more() -> None:
    async def then(channel: Channel) -> None:
        under_way = asyncio.ensure_future(ask(channel))
        while "unanswered=1" not in repr(channel):
            await asyncio.sleep(0)
        channel.close()
        for each in (under_way, ask(channel)):
            with pytest.raises(ConnectionLost, match="is closed"):
                await each

    play(HELLO, SILENCE, then=then)


def test_a_channel_that_is_closed_while_it_connects() -> None:
    async def then(channel: Channel) -> None:
        connecting = asyncio.ensure_future(ask(channel))
        await asyncio.sleep(0)
        channel.close()
        with pytest.raises(ConnectionLost, match="is closed"):
            await connecting

    play(HELLO, then=then)


def test_the_version_of_a_request_is_known_before_it_is_made() -> None:
    async def then(channel: Channel) -> None:
        assert await channel.version_for(messages.MetadataRequest) == 12
        assert await channel.version_for(messages.MetadataRequest, 5) == 5
        with pytest.raises(KafkaError) as refused:
            await channel.version_for(messages.VoteRequest)
        assert refused.value.code is ErrorCode.UNSUPPORTED_VERSION
        assert await ask(channel) == "c"

    play(HELLO, answer(metadata("c")), then=then)


def test_a_failure_to_connect_in_the_last_turn_of_the_loop_is_forgotten() -> None:
    """A node that stops ends its loop: callbacks of what failed in its last turn do not run any more."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    reports: list[Any] = []
    loop = asyncio.new_event_loop()
    loop.set_exception_handler(lambda _, report: reports.append(report["message"]))
    channel = Channel(loop, "127.0.0.1", port, client_id="c")
    asked = start(channel.version_for(messages.MetadataRequest), loop)
    (connecting,) = asyncio.all_tasks(loop)
    asked.cancel()
    observe(asked)
    while not connecting.done():
        loop.call_soon(loop.stop)
        loop.run_forever()
    channel.close()
    loop.close()
    del connecting, asked, channel
    gc.collect()
    assert reports == []
