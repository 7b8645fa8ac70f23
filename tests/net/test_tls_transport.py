"""TLS below a connection: what the connection sees of the socket, and bytes that arrive before it is admitted."""

from __future__ import annotations

import ssl
from typing import Any

import pytest

from barnabas.net.tls_transport import TlsTransport


class Raw:
    """The loop's transport."""

    def __init__(self) -> None:
        self.sent = bytearray()
        self.calls: list[str] = []

    def write(self, data: bytes) -> None:
        self.sent += data

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return {"socket": "a socket", "peername": ("10.0.0.9", 5)}.get(name, default)

    def is_closing(self) -> bool:
        return "close" in self.calls

    def __getattr__(self, name: str) -> Any:
        return lambda *_: self.calls.append(name)


class Layer:
    """Decrypts by turning letters small, and encrypts by turning them large; `!` ends the handshake."""

    version = "TLSv1.3"

    def __init__(self) -> None:
        self.is_established = False
        self.is_closed = False
        self.plain = b""
        self.out = bytearray()

    def received(self, data: Any) -> None:
        if b"bad" in bytes(data):
            raise ssl.SSLError(1, "[SSL: WRONG] wrong")
        self.is_established = True
        self.plain += bytes(data).removeprefix(b"\x16").lower()

    def read_into(self, buffer: memoryview) -> int:
        count = min(len(buffer), len(self.plain))
        buffer[:count] = self.plain[:count]
        self.plain = self.plain[count:]
        return count

    def peer_certificate(self) -> bytes | None:
        return b"der"

    def write(self, data: Any) -> None:
        self.out += bytes(data).upper()

    def to_send(self) -> bytes:
        sent = bytes(self.out)
        self.out.clear()
        return sent

    def close(self) -> None:
        self.out += b"<close>"


class Connection:
    """The connection above: eight bytes at a time."""

    def __init__(self) -> None:
        self.is_starting = False
        self.read = b""
        self.calls: list[str] = []
        self.reason = ""
        self.pauses_after = 1 << 30
        self.buffer = memoryview(bytearray(8))
        self.transport: Any = None

    def connection_made(self, transport: Any) -> None:
        self.transport = transport

    def get_buffer(self, sizehint: int) -> memoryview:
        return self.buffer

    def buffer_updated(self, nbytes: int) -> None:
        self.read += bytes(self.buffer[:nbytes])
        if len(self.read) >= self.pauses_after:
            self.transport.pause_reading()

    def wait_unread(self) -> None:
        self.transport.pause_reading()

    def established(self, certificate: bytes | None) -> None:
        self.calls.append(f"established {certificate!r}")

    def refuse_later(self, reason: str, level: int) -> None:
        self.reason = reason

    def __getattr__(self, name: str) -> Any:
        return lambda *_: self.calls.append(name)


class Loop:
    def __init__(self) -> None:
        self.soon: list[Any] = []

    def call_soon(self, callback: Any) -> None:
        self.soon.append(callback)

    def turn(self) -> None:
        soon, self.soon = self.soon, []
        for callback in soon:
            callback()


class Joined:
    def __init__(self) -> None:
        self.raw, self.layer, self.connection, self.loop = Raw(), Layer(), Connection(), Loop()
        parts: Any = (self.connection, lambda: self.layer, memoryview(bytearray(64)), self.loop)
        self.transport = TlsTransport(*parts)
        raw: Any = self.raw
        self.transport.connection_made(raw)

    def arrive(self, data: bytes) -> None:
        self.transport.get_buffer(-1)[: len(data)] = data
        self.transport.buffer_updated(len(data))


@pytest.fixture
def joined() -> Joined:
    return Joined()


def test_bytes_pass_both_ways(joined: Joined) -> None:
    joined.arrive(b"\x16ABCDEFGHIJKL")
    assert joined.connection.read == b"abcdefghijkl"
    assert joined.connection.calls[0] == "established b'der'"
    joined.transport.write(b"answer")
    assert joined.raw.sent == b"ANSWER"


def test_the_socket_is_nobodys_business(joined: Joined) -> None:
    assert joined.transport.get_extra_info("socket") is None
    assert joined.transport.get_extra_info("ssl_object") is joined.layer
    assert joined.transport.get_extra_info("peername") == ("10.0.0.9", 5)


def test_nothing_is_decrypted_before_the_admission(joined: Joined) -> None:
    joined.connection.is_starting = True
    joined.arrive(b"\x16ABC")
    assert not joined.layer.is_established
    assert joined.raw.calls[-1] == "pause_reading"
    joined.connection.is_starting = False
    joined.transport.resume_reading()
    joined.loop.turn()
    assert joined.connection.read == b"abc"


def test_bytes_that_arrive_first_stay_first(joined: Joined) -> None:
    joined.connection.is_starting = True
    joined.arrive(b"\x16ABC")
    joined.connection.is_starting = False
    joined.transport.resume_reading()
    joined.arrive(b"DEF")
    joined.loop.turn()
    assert joined.connection.read == b"abcdef"


def test_a_connection_that_pauses_gets_the_rest_later(joined: Joined) -> None:
    joined.connection.pauses_after = 8
    joined.arrive(b"\x16ABCDEFGHIJKL")
    assert joined.connection.read == b"abcdefgh"
    joined.connection.pauses_after = 1 << 30
    joined.transport.resume_reading()
    joined.loop.turn()
    assert joined.connection.read == b"abcdefghijkl"


@pytest.mark.parametrize(
    ("first", "reason"),
    [(b"\x16bad", "the TLS handshake failed"), (b"bad", "bytes without TLS arrived")],
)
def test_a_failed_handshake_says_why(joined: Joined, first: bytes, reason: str) -> None:
    joined.arrive(first)
    assert joined.connection.reason.startswith(reason)
    assert joined.transport.is_closing()
    joined.arrive(b"MORE")
    assert joined.connection.read == b""


def test_the_end_is_said_once(joined: Joined) -> None:
    joined.arrive(b"\x16A")
    joined.transport.close()
    joined.transport.close()
    assert joined.raw.sent == b"<close>"
    joined.transport.write(b"late")
    assert joined.raw.sent == b"<close>"


def test_a_client_that_closes_is_closed(joined: Joined) -> None:
    joined.layer.is_closed = True
    joined.arrive(b"\x16A")
    assert "eof_received" in joined.connection.calls
    assert "close" in joined.raw.calls


def test_repr(joined: Joined) -> None:
    assert repr(joined.transport) == "<TlsTransport TLSv1.3 paused=False>"
