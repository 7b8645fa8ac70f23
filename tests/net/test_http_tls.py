"""The HTTP port over TLS."""

from __future__ import annotations

import asyncio
import time

import pytest

from barnabas.net.http_listener import Answer, HttpListener
from barnabas.net.http_tls import over_tls
from barnabas.security.dev_certificates import DevelopmentAuthority
from barnabas.security.setting_error import SecuritySettingError
from barnabas.security.tls_settings import client_context
from tests.net.listening import on_both_loops

PREFIX = "barnabas.metrics."
BODY = b"0123456789abcdef" * 100_000


async def large() -> Answer:
    return Answer("text/plain", BODY)


def test_the_settings_are_named_with_their_prefix() -> None:
    with pytest.raises(SecuritySettingError, match=r"^barnabas\.metrics\.ssl\.keystore\.location: is missing"):
        over_tls({}, PREFIX, asyncio.new_event_loop())


@on_both_loops
async def test_requests_large_answers_and_plain_text() -> None:
    loop = asyncio.get_running_loop()
    authority = DevelopmentAuthority.create(int(time.time() * 1000))
    issued = authority.issue("CN=node", hosts=["127.0.0.1"])
    settings = {PREFIX + name: text for name, text in issued.settings().items()}
    listener = HttpListener(loop, "127.0.0.1", 0, {"/large": large}, over_tls=over_tls(settings, PREFIX, loop))
    await listener.bind()
    assert listener.has_tls
    trust = {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": authority.certificate}
    reader, writer = await asyncio.open_connection("127.0.0.1", listener.port, ssl=client_context(trust))
    for _ in range(2):
        writer.write(b"GET /large HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        head = await reader.readuntil(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200 OK\r\n")
        assert await reader.readexactly(len(BODY)) == BODY
    writer.write(b"GET /large HTTP/1.1\r\nHost: evil.example\r\n\r\n")
    assert (await reader.read()).startswith(b"HTTP/1.1 403 Forbidden\r\n")
    writer.close()
    reader, writer = await asyncio.open_connection("127.0.0.1", listener.port)
    writer.write(b"GET /large HTTP/1.1\r\n\r\n")
    assert b"HTTP" not in await reader.read()
    writer.close()
    assert not listener.connections or all(each.is_stuck for each in listener.connections)
    listener.close()
