"""Listeners with TLS and SASL over real sockets: who is served, as whom, and what ends a connection before its client has logged in."""

from __future__ import annotations

import asyncio
import logging
import ssl
import struct
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import cache
from typing import Any

import pytest

from barnabas.net.listener import Listener
from barnabas.net.listener_security import ListenerSecurity
from barnabas.net.secured_connection import FAILED_LOGINS_MAX
from barnabas.protocol.messages import SaslAuthenticateRequest, SaslHandshakeRequest
from barnabas.security.certificate_names import PrincipalMapper, certificate_name
from barnabas.security.dev_certificates import DevelopmentAuthority, IssuedCertificate
from barnabas.security.sasl.plain import PlainServer
from barnabas.security.server_login import ServerLogin, TokenRejected
from barnabas.security.tls_layer import TlsLayer
from barnabas.security.tls_settings import client_context, server_context
from tests.net.listening import connect, next_response, on_both_loops, until
from tests.net.scripted_dispatcher import METADATA, ScriptedDispatcher, request, response

HANDSHAKE, AUTHENTICATE = 17, 36
LARGE = b"\x00\x01 some records \xff" * 150_000


@cache
def authority(name: str = "CN=ours") -> DevelopmentAuthority:
    return DevelopmentAuthority.create(int(time.time() * 1000), name)


@cache
def issued(name: str, by: str = "CN=ours") -> IssuedCertificate:
    return authority(by).issue(name, hosts=["127.0.0.1"])


def trust(by: str = "CN=ours") -> dict[str, str]:
    return {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": authority(by).certificate}


def tls(client_auth: str = "none", rules: str = "DEFAULT", **more: Any) -> ListenerSecurity:
    context = server_context({**trust(), **issued("CN=node").settings(), "ssl.client.auth": client_auth})
    mapper = PrincipalMapper(rules)
    return ListenerSecurity(
        protocol="SASL_SSL" if "login" in more else "SSL",
        layer=lambda: TlsLayer(context, is_server=True),
        name_of=lambda certificate: mapper(certificate_name(certificate)),
        failure_delay_ms=0,
        **more,
    )


def plain_login(delay_ms: int = 0) -> Callable[[], ServerLogin]:
    users = {"alice": "alice-secret"}
    return lambda: ServerLogin(
        {"PLAIN": lambda during: PlainServer(users.get)}, now_ms=lambda: 0, max_reauth_ms={}, delay_ms=delay_ms
    )


def sasl(**more: Any) -> ListenerSecurity:
    return ListenerSecurity(protocol="SASL_PLAINTEXT", login=plain_login(), failure_delay_ms=0, **more)


class Logins(ScriptedDispatcher):
    """Answers SaslHandshake and SaslAuthenticate by the connection's login, and METADATA with the principal."""

    def __init__(self) -> None:
        super().__init__(self._answered)

    def _answered(self, context: Any, body: bytes) -> Any:
        login = context.connection.login
        if context.api_key == HANDSHAKE:
            asked, _ = SaslHandshakeRequest.read(memoryview(body), 0, 1)
            login.handshake(asked.mechanism, context.version)
            return [response(context.correlation_id)]
        if context.api_key == AUTHENTICATE:
            token, _ = SaslAuthenticateRequest.read(memoryview(body), 0, 1)
            context.connection.principal = None if login.respond(bytes(token.auth_bytes)) else login.principal
            return [response(context.correlation_id)]
        return [response(context.correlation_id, body or str(context.connection.principal).encode())]


@asynccontextmanager
async def listening(security: ListenerSecurity, dispatcher: Any = None, **limits: Any) -> AsyncIterator[Listener]:
    listener = Listener(asyncio.get_running_loop(), name="OUT", host="127.0.0.1", security=security, **limits)
    await listener.bind()
    served: Any = dispatcher or Logins()
    listener.serve(served)
    try:
        yield listener
    finally:
        await listener.stop()


def client(certificate: IssuedCertificate | None = None, by: str = "CN=ours") -> ssl.SSLContext:
    return client_context({**trust(by), **({} if certificate is None else certificate.settings())})


async def principal(listener: Listener, context: ssl.SSLContext) -> str:
    reader, writer = await connect(listener, ssl=context)
    writer.write(request(METADATA, 1))
    _, body = await next_response(reader)
    writer.close()
    return body.decode()


def body(message: Any) -> bytes:
    out = bytearray()
    message.write(out, 1)
    return bytes(out)


def token(user: bytes, password: bytes, correlation_id: int = 2) -> bytes:
    message = SaslAuthenticateRequest(auth_bytes=b"\0" + user + b"\0" + password)
    return request(AUTHENTICATE, correlation_id, body(message))


def handshake(mechanism: str = "PLAIN") -> bytes:
    return request(HANDSHAKE, 1, body(SaslHandshakeRequest(mechanism=mechanism)))


@on_both_loops
async def test_a_certificate_is_a_principal() -> None:
    async with listening(tls("required")) as listener:
        assert await principal(listener, client(issued("CN=alice,O=Example"))) == "User:CN=alice,O=Example"


@on_both_loops
async def test_rules_map_the_certificates_name() -> None:
    async with listening(tls("required", "RULE:^CN=([a-z]+),.*$/$1/U")) as listener:
        assert await principal(listener, client(issued("CN=alice,O=Example"))) == "User:ALICE"


@on_both_loops
async def test_nobody_is_anonymous_unless_the_listener_allows_it() -> None:
    async with listening(tls("requested")) as listener:
        assert await principal(listener, client()) == "User:ANONYMOUS"
        assert await principal(listener, client(issued("CN=alice"))) == "User:CN=alice"


@on_both_loops
async def test_a_certificate_of_another_authority_is_refused(caplog: pytest.LogCaptureFixture) -> None:
    context = client(issued("CN=eve", by="CN=theirs"))
    async with listening(tls("required")) as listener:
        with pytest.raises((ssl.SSLError, ConnectionError, asyncio.IncompleteReadError)):
            await principal(listener, context)
        assert "the TLS handshake failed" in caplog.text
        caplog.clear()


@on_both_loops
async def test_a_name_without_a_rule_is_nobody() -> None:
    async with listening(tls("required", "RULE:^CN=node$/node/")) as listener:
        with pytest.raises((ssl.SSLError, ConnectionError, asyncio.IncompleteReadError)):
            await principal(listener, client(issued("CN=alice")))


@on_both_loops
async def test_large_requests_and_responses_pass_whole() -> None:
    async with listening(tls()) as listener:
        reader, writer = await connect(listener, ssl=client())
        for correlation_id in range(3):
            writer.write(request(METADATA, correlation_id, LARGE))
        for correlation_id in range(3):
            assert await next_response(reader) == (correlation_id, LARGE)
        writer.close()


@on_both_loops
async def test_a_client_without_tls_is_closed_with_a_line(caplog: pytest.LogCaptureFixture) -> None:
    async with listening(tls()) as listener:
        reader, writer = await connect(listener)
        writer.write(request(METADATA, 1))
        await reader.read()
        assert "bytes without TLS arrived; the client needs security.protocol=SSL" in caplog.text
        writer.close()
        caplog.clear()


@on_both_loops
async def test_a_client_logs_in_over_tls() -> None:
    async with listening(tls(login=plain_login())) as listener:
        reader, writer = await connect(listener, ssl=client())
        writer.write(handshake())
        await next_response(reader)
        writer.write(token(b"alice", b"alice-secret"))
        await next_response(reader)
        # Its frames are no longer bound to those of a login.
        writer.write(request(METADATA, 3, LARGE) + request(METADATA, 4))
        assert await next_response(reader) == (3, LARGE)
        assert await next_response(reader) == (4, b"User:alice")
        writer.close()


@pytest.mark.parametrize("before", [b"", handshake()], ids=["at the beginning", "after the handshake"])
def test_a_request_before_the_login_closes_unanswered(before: bytes, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)

    @on_both_loops
    async def run() -> None:
        async with listening(sasl()) as listener:
            reader, writer = await connect(listener)
            writer.write(before)
            if before:
                await next_response(reader)
            writer.write(request(METADATA, 7))
            assert await reader.read() == b""
            assert "an unexpected Kafka request with API key 3" in caplog.text
            writer.close()

    run()


@on_both_loops
async def test_a_frame_before_the_login_is_bounded(caplog: pytest.LogCaptureFixture) -> None:
    async with listening(sasl(max_receive_bytes=100)) as listener:
        reader, writer = await connect(listener)
        writer.write(struct.pack(">i", 101))
        assert await reader.read() == b""
        assert (
            "a frame announces 101 bytes, 100 are allowed before the login (sasl.server.max.receive.size)"
            in caplog.text
        )
        writer.close()
        caplog.clear()


@on_both_loops
async def test_raw_tokens() -> None:
    async with listening(sasl()) as listener:
        reader, writer = await connect(listener)
        asked = struct.pack(">hhih", HANDSHAKE, 0, 1, -1) + body(SaslHandshakeRequest(mechanism="PLAIN"))
        writer.write(struct.pack(">i", len(asked)) + asked)
        await next_response(reader)
        raw = b"\0alice\0alice-secret"
        writer.write(struct.pack(">i", len(raw)) + raw)
        assert await reader.readexactly(4) == bytes(4)
        writer.write(request(METADATA, 3))
        assert await next_response(reader) == (3, b"User:alice")
        writer.close()


@on_both_loops
async def test_a_wrong_raw_token_closes_without_an_answer() -> None:
    async with listening(sasl()) as listener:
        reader, writer = await connect(listener)
        asked = struct.pack(">hhih", HANDSHAKE, 0, 1, -1) + body(SaslHandshakeRequest(mechanism="PLAIN"))
        writer.write(struct.pack(">i", len(asked)) + asked)
        await next_response(reader)
        raw = b"\0alice\0wrong"
        writer.write(struct.pack(">i", len(raw)) + raw)
        assert await reader.read() == b""
        writer.close()


class Delaying(Logins):
    """Answers a login that has failed never."""

    def _answered(self, context: Any, body: bytes) -> Any:
        try:
            return super()._answered(context, body)
        except TokenRejected:
            return asyncio.get_running_loop().create_future()


@on_both_loops
async def test_each_failed_login_is_audited_although_its_client_goes_away(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    async with listening(sasl(), Delaying()) as listener:
        for number in range(FAILED_LOGINS_MAX + 2):
            reader, writer = await connect(listener)
            writer.write(handshake())
            await next_response(reader)
            writer.write(token(b"mallory\n" + b"%d" % number, b"hunter2"))
            writer.close()
            await until(lambda: not listener.connections)
        lines = audited(caplog)
        assert lines == [
            "Failed login from host = 127.0.0.1 on listener = OUT: failed authentication by PLAIN: "
            f"Authentication failed: Invalid username or password: user mallory\\n{number}"
            for number in range(FAILED_LOGINS_MAX)
        ]
    (last,) = audited(caplog)
    assert "user mallory\\n11 (2 lines about failed logins from 127.0.0.1 in the last minute" in last
    assert "hunter2" not in caplog.text
    assert "Closing connection" not in caplog.text


@on_both_loops
async def test_a_mechanism_and_a_certificate_that_are_refused_are_audited(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    async with listening(sasl()) as listener:
        reader, writer = await connect(listener)
        writer.write(handshake("GSSAPI"))
        await next_response(reader)
        await until(lambda: bool(audited(caplog, keep=True)))
        writer.close()
        (line,) = audited(caplog)
        assert line.endswith("on listener = OUT: the mechanism 'GSSAPI' is not enabled")
    async with listening(tls("required")) as listener:
        with pytest.raises((ssl.SSLError, OSError, asyncio.IncompleteReadError)):
            await principal(listener, client(issued("CN=mallory", "CN=theirs")))
        await until(lambda: bool(audited(caplog, keep=True)))
        (line,) = audited(caplog)
        assert "on listener = OUT: failed authentication by SSL: the TLS handshake failed" in line


def audited(caplog: pytest.LogCaptureFixture, *, keep: bool = False) -> list[str]:
    found = [record.getMessage() for record in caplog.records if record.name == "kafka.authorizer.logger"]
    if not keep:
        caplog.records[:] = [record for record in caplog.records if record.name != "kafka.authorizer.logger"]
    return found


@on_both_loops
async def test_a_connection_that_is_not_admitted_costs_no_handshake() -> None:
    made: list[TlsLayer] = []
    security = tls()
    assert security.layer is not None
    layer = security.layer

    def keep() -> TlsLayer:
        made.append(layer())
        return made[-1]

    kept = ListenerSecurity(protocol="SSL", layer=keep)
    listener = Listener(asyncio.get_running_loop(), name="OUT", host="127.0.0.1", security=kept)
    await listener.bind()
    task = asyncio.ensure_future(connect(listener, ssl=client()))
    while not (made and listener.connections and not listener.connections[0]._is_reading):
        await asyncio.sleep(0)
    assert not made[0].is_established
    assert made[0].to_send() == b""
    dispatcher: Any = Logins()
    listener.serve(dispatcher)
    reader, writer = await task
    writer.write(request(METADATA, 1))
    assert await next_response(reader) == (1, b"User:ANONYMOUS")
    writer.close()
    await listener.stop()
