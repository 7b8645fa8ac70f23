"""Other protocols at the Kafka port: they are named, and an HTTP client gets an answer."""

from __future__ import annotations

import asyncio
import http.client
import ssl
import struct
import threading

import pytest

from barnabas.net.foreign_protocols import HTTP, TLS, foreign_protocol
from tests.net.listening import connect, echo, listening, on_both_loops


@pytest.mark.parametrize(
    ("first", "expected"),
    [
        (b"GET ", HTTP),
        (b"POST", HTTP),
        (b"PRI ", HTTP),
        (b"\x16\x03\x01\x02", TLS),
        (b"\x16\x03\x04\x00", TLS),
        (b"\x16\x03\x05\x00", None),
        (b"get ", None),
        (b"\x7f\xff\xff\xff", None),
    ],
)
def test_a_protocol_is_known_by_its_first_bytes(first: bytes, expected: str | None) -> None:
    (size,) = struct.unpack(">i", first)
    assert foreign_protocol(size) == expected


def lines_of(caplog: pytest.LogCaptureFixture) -> list[str]:
    # Another test's embedded broker may log from its own thread.
    return [record.getMessage() for record in caplog.records if record.thread == threading.get_ident()]


@pytest.mark.parametrize("metrics_url", ["http://localhost:9308/metrics", ""])
@on_both_loops
async def test_an_http_client_reads_where_the_metrics_are(caplog: pytest.LogCaptureFixture, metrics_url: str) -> None:
    caplog.clear()
    words = "an HTTP request arrived on the Kafka listener PLAINTEXT; metrics are "
    words += f"served at {metrics_url}" if metrics_url else "off (--metrics-listen)"
    async with listening(echo) as (listener, _):
        listener.metrics_url = metrics_url

        def get() -> tuple[int, bytes]:
            connection = http.client.HTTPConnection("127.0.0.1", listener.port, timeout=60)
            connection.request("GET", "/metrics")
            answer = connection.getresponse()
            return answer.status, answer.read()

        assert await asyncio.get_running_loop().run_in_executor(None, get) == (400, f"{words}\n".encode())
    assert [line for line in lines_of(caplog) if line.endswith(f": {words}")]


@on_both_loops
async def test_a_tls_client_is_named_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.clear()
    async with listening(echo) as (listener, _):
        with pytest.raises((ssl.SSLError, ConnectionError)):
            await connect(listener, ssl=ssl.create_default_context(), server_hostname="localhost")
    assert any("a TLS client hello arrived on the Kafka listener PLAINTEXT" in line for line in lines_of(caplog))
    assert "announces" not in caplog.text


@on_both_loops
async def test_a_hundred_bad_frames_from_one_address_are_one_line(caplog: pytest.LogCaptureFixture) -> None:
    caplog.clear()
    async with listening(echo) as (listener, _):
        for _ in range(100):
            reader, writer = await connect(listener)
            writer.write(struct.pack(">i", -5))
            assert await reader.read() == b""
            writer.close()
        first = lines_of(caplog)
        assert len([line for line in first if "malformed frame" in line]) == 1
    (_, last) = [line for line in lines_of(caplog) if "malformed frame" in line]
    assert "(99 lines about 127.0.0.1 in the last minute" in last
