"""Connections with a login, blocking and on a loop: the same script for both."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from barnabas.client.channel import Channel
from barnabas.client.errors import ConnectionLost
from barnabas.client.wire import BlockingConnection
from barnabas.protocol import messages
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.security.client_security import ClientSecurity
from tests.client.scripted_broker import CLOSE, ScriptedBroker, answer, versions_response
from tests.client.test_login import Machine

RANGES = {
    ApiKey.API_VERSIONS: (0, 4), ApiKey.METADATA: (0, 12), ApiKey.SASL_HANDSHAKE: (0, 1), ApiKey.SASL_AUTHENTICATE: (0, 2)
}  # fmt: skip
HELLO = answer(versions_response(RANGES))
HANDSHAKE = answer(messages.SaslHandshakeResponse(mechanisms=["PLAIN"]))
WITH_LOGIN = ClientSecurity("SASL_PLAINTEXT", "PLAIN", mechanism=Machine)
BEGINNING = [ApiKey.API_VERSIONS, ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE]


def accepted(lifetime_ms: int = 0) -> Any:
    return answer(messages.SaslAuthenticateResponse(auth_bytes=b"right", session_lifetime_ms=lifetime_ms))


def named(name: str) -> Any:
    return answer(messages.MetadataResponse(cluster_id=name))


METADATA = messages.MetadataRequest(topics=[])


def ask_blocking(port: int, count: int, seconds: Callable[[], float]) -> list[str]:
    options: dict[str, Any] = {"security": WITH_LOGIN, "clock": seconds}
    with BlockingConnection("127.0.0.1", port, **options) as connection:
        return [connection.request(METADATA).cluster_id for _ in range(count)]


def ask_on_a_loop(port: int, count: int, seconds: Callable[[], float]) -> list[str]:
    async def run() -> list[str]:
        loop = asyncio.get_running_loop()
        channel = Channel(loop, "127.0.0.1", port, client_id="me", security=WITH_LOGIN)
        found = []
        try:
            for _ in range(count):
                found.append((await channel.request(METADATA)).cluster_id)
                if channel.connection is not None and channel.connection.renews_login_at is not None:
                    channel.connection.renews_login_at += loop.time() - seconds()
        finally:
            channel.close()
        return found

    return asyncio.run(run())


BOTH = pytest.mark.parametrize("ask", [ask_blocking, ask_on_a_loop])


@BOTH
def test_the_login_comes_after_the_versions_and_before_the_first_request(ask: Any) -> None:
    with ScriptedBroker(HELLO, HANDSHAKE, accepted(), named("a"), named("b")) as broker:
        assert ask(broker.port, 2, lambda: 0.0) == ["a", "b"]
    assert [each.api_key for each in broker.seen] == [*BEGINNING, ApiKey.METADATA, ApiKey.METADATA]
    assert [each.version for each in broker.seen[1:3]] == [1, 2]
    assert broker.seen[2].message.auth_bytes == b"one 127.0.0.1"


@BOTH
def test_a_rejected_login_closes_the_connection_and_is_no_connections_error(ask: Any) -> None:
    refused = answer(messages.SaslAuthenticateResponse(error_code=58, error_message="Authentication failed"))
    with ScriptedBroker(HELLO, HANDSHAKE, refused, CLOSE) as broker, pytest.raises(KafkaError) as raised:
        ask(broker.port, 1, lambda: 0.0)
    assert raised.value.code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert raised.value.message.endswith("with PLAIN failed: Authentication failed")
    assert len(broker.seen) == 3


@BOTH
def test_a_broker_that_closes_during_the_login_may_be_asked_again(ask: Any) -> None:
    with ScriptedBroker(HELLO, CLOSE) as broker, pytest.raises(ConnectionLost):
        ask(broker.port, 1, lambda: 0.0)


def test_a_blocking_connection_renews_its_login_before_the_session_ends() -> None:
    now = [0.0]
    with (
        ScriptedBroker(HELLO, HANDSHAKE, accepted(10_000), named("a"), HANDSHAKE, accepted(), named("b")) as broker,
        BlockingConnection("127.0.0.1", broker.port, security=WITH_LOGIN, clock=lambda: now[0]) as connection,
    ):
        now[0] = 8.4
        assert connection.request(METADATA).cluster_id == "a"
        now[0] = 8.5
        assert connection.request(METADATA).cluster_id == "b"
        now[0] = 1e9  # this session has no end
        assert connection.renews_login_at is None
    assert [each.api_key for each in broker.seen[3:]] == [
        ApiKey.METADATA, ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE, ApiKey.METADATA
    ]  # fmt: skip


def test_a_blocking_connection_keeps_what_it_was_owed_when_it_renews_its_login() -> None:
    now = [0.0]
    script = [HELLO, HANDSHAKE, accepted(10_000), named("a"), named("b"), HANDSHAKE, accepted(), named("c")]
    with (
        ScriptedBroker(*script) as broker,
        BlockingConnection("127.0.0.1", broker.port, security=WITH_LOGIN, clock=lambda: now[0]) as connection,
    ):
        connection.send(METADATA)
        connection.send(METADATA)
        now[0] = 9.0
        connection.send(METADATA)
        assert connection.unanswered == 3
        assert [connection.receive().cluster_id for _ in range(3)] == ["a", "b", "c"]
        assert connection.unanswered == 0


def test_a_renewed_login_that_fails_closes_a_blocking_connection() -> None:
    now = [0.0]
    refused = answer(messages.SaslAuthenticateResponse(error_code=58))
    with (
        ScriptedBroker(HELLO, HANDSHAKE, accepted(10_000), HANDSHAKE, refused) as broker,
        BlockingConnection("127.0.0.1", broker.port, security=WITH_LOGIN, clock=lambda: now[0]) as connection,
    ):
        now[0] = 9.0
        with pytest.raises(KafkaError, match="SASL_AUTHENTICATION_FAILED"):
            connection.send(METADATA)
        assert connection.closed


def test_a_channel_renews_its_login_when_the_requests_under_way_are_answered() -> None:
    """Those that come meanwhile wait, and share the renewed login."""
    script = [
        HELLO,
        HANDSHAKE,
        accepted(3_600_000),
        named("a"),
        named("b"),
        HANDSHAKE,
        accepted(),
        named("c"),
        named("d"),
    ]

    async def run(port: int) -> list[str]:
        loop = asyncio.get_running_loop()
        channel = Channel(loop, "127.0.0.1", port, client_id="me", security=WITH_LOGIN)
        await channel.version_for(METADATA)
        connection = channel.connection
        assert connection is not None
        assert connection.renews_login_at is not None
        try:
            first = [asyncio.ensure_future(channel.request(METADATA)) for _ in range(2)]
            while "unanswered=2" not in repr(channel):
                await asyncio.sleep(0)
            connection.renews_login_at = loop.time()
            second = [channel.request(METADATA) for _ in range(2)]
            answers = await asyncio.gather(*first, *second)
            assert connection.renews_login_at is None
            assert channel.connection is connection
            return [each.cluster_id for each in answers]
        finally:
            channel.close()

    with ScriptedBroker(*script) as broker:
        assert asyncio.run(run(broker.port)) == ["a", "b", "c", "d"]
    assert [each.api_key for each in broker.seen[3:]] == [
        ApiKey.METADATA, ApiKey.METADATA, ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE, ApiKey.METADATA, ApiKey.METADATA
    ]  # fmt: skip


def test_a_channel_whose_renewed_login_fails_connects_again() -> None:
    refused = answer(messages.SaslAuthenticateResponse(error_code=58))
    script = [HELLO, HANDSHAKE, accepted(3_600_000), HANDSHAKE, refused, CLOSE]

    async def run(port: int) -> None:
        loop = asyncio.get_running_loop()
        channel = Channel(loop, "127.0.0.1", port, client_id="me", security=WITH_LOGIN)
        await channel.version_for(METADATA)
        connection = channel.connection
        assert connection is not None
        connection.renews_login_at = loop.time()
        try:
            with pytest.raises(KafkaError, match="SASL_AUTHENTICATION_FAILED"):
                await channel.request(METADATA)
            assert connection.is_lost
        finally:
            channel.close()

    with ScriptedBroker(*script) as broker:
        asyncio.run(run(broker.port))
