"""A response's memory grows with its bytes, whatever size it announces."""

from __future__ import annotations

import asyncio
import struct
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.client import incoming_response
from barnabas.client.channel import Channel
from barnabas.client.errors import ConnectionLost
from barnabas.client.exchange import MAX_RESPONSE_BYTES
from barnabas.client.incoming_response import IncomingResponse
from barnabas.client.wire import BlockingConnection
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.framing import TRUSTED_BYTES
from barnabas.protocol.messages import MetadataRequest
from tests.client.scripted_broker import CLOSE, ScriptedBroker, answer, versions_response

HELLO = answer(versions_response({ApiKey.API_VERSIONS: (0, 4), ApiKey.METADATA: (0, 13)}))
HUGE = struct.pack(">ii", MAX_RESPONSE_BYTES, 2)


def test_an_announced_size_is_only_a_promise() -> None:
    incoming = IncomingResponse(MAX_RESPONSE_BYTES)
    assert incoming.capacity == TRUSTED_BYTES
    incoming.received(len(incoming.room()))
    assert (len(incoming.room()), incoming.capacity) == (TRUSTED_BYTES, 2 * TRUSTED_BYTES)
    incoming.received(10)
    assert (len(incoming.room()), incoming.is_whole) == (TRUSTED_BYTES - 10, False)
    assert repr(incoming) == f"<IncomingResponse {TRUSTED_BYTES + 10} of {MAX_RESPONSE_BYTES}>"


@pytest.mark.parametrize("size", [0, 1, 9])
def test_a_short_response_has_all_of_its_memory(size: int) -> None:
    incoming = IncomingResponse(size)
    assert (incoming.capacity, incoming.put(memoryview(b"123456789abc"))) == (size, size)
    assert incoming.is_whole
    assert bytes(incoming.whole()) == b"123456789"[:size]


@given(st.binary(max_size=200), st.lists(st.integers(1, 50), min_size=1))
def test_the_bytes_are_those_that_arrived(content: bytes, reads: list[int]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(incoming_response, "TRUSTED_BYTES", 16)
        incoming, at = IncomingResponse(len(content)), 0
        while not incoming.is_whole:
            room = incoming.room()
            count = min(len(room), reads[at % len(reads)], len(content) - at)
            room[:count] = content[at : at + count]
            incoming.received(count)
            at += count
            assert incoming.capacity <= max(16, 2 * at)
        assert bytes(incoming.whole()) == content


def test_a_blocking_connection_does_not_allocate_what_a_peer_announces() -> None:
    with ScriptedBroker(HELLO, HUGE, CLOSE) as broker:
        connection = BlockingConnection("127.0.0.1", broker.port)
        connection.send(MetadataRequest())
        connection.send(MetadataRequest())
        tracemalloc.start()
        try:
            with pytest.raises(ConnectionLost):
                connection.receive()
            assert tracemalloc.get_traced_memory()[1] < 4 * TRUSTED_BYTES
        finally:
            tracemalloc.stop()


def test_a_channel_does_not_either() -> None:
    async def story(port: int) -> None:
        channel = Channel(asyncio.get_running_loop(), "127.0.0.1", port, client_id="node-1")
        await channel.version_for(MetadataRequest)
        tracemalloc.start()
        try:
            asked = [asyncio.ensure_future(channel.request(MetadataRequest())) for _ in range(2)]
            outcomes = await asyncio.gather(*asked, return_exceptions=True)
            assert [type(outcome) for outcome in outcomes] == [ConnectionLost] * 2
            assert tracemalloc.get_traced_memory()[1] < 4 * TRUSTED_BYTES
        finally:
            tracemalloc.stop()
            channel.close()

    with ScriptedBroker(HELLO, HUGE, CLOSE) as broker:
        asyncio.run(story(broker.port))
