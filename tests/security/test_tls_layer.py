"""Two layers back to back, and one against what is no TLS."""

from __future__ import annotations

import ssl

import pytest

from barnabas.security.tls_layer import TlsLayer
from barnabas.security.tls_settings import client_context, server_context
from tests.security.certificates import authority, foreign_authority, node, user
from tests.security.tls_pair import TlsPair, read_all

TRUST = authority().settings()


def pair(client: dict[str, str] | None = None, server: dict[str, str] | None = None) -> TlsPair:
    return TlsPair(client_context(TRUST | (client or {})), server_context(node().settings() | TRUST | (server or {})))


@pytest.mark.parametrize("version", ["TLSv1.2", "TLSv1.3"])
@pytest.mark.parametrize("piece", [1, 1 << 20])
def test_bytes_arrive_in_both_directions(version: str, piece: int) -> None:
    tls = pair({"ssl.enabled.protocols": version})
    tls.exchange(piece=piece)
    assert tls.client.version == tls.server.version == version
    tls.client.write(b"question")
    tls.server.write(memoryview(b"answer"))
    tls.exchange(piece=piece)
    assert read_all(tls.server) == b"question"
    assert read_all(tls.client) == b"answer"


def test_what_is_written_before_the_end_of_the_handshake_follows_it() -> None:
    tls = pair()
    frame = bytearray(b"first")
    tls.client.write(frame)
    frame[:] = b"later"  # The layer has a copy.
    tls.client.write(b" second")
    tls.exchange()
    assert read_all(tls.server) == b"first second"


@pytest.mark.parametrize("size", [1, 16_384, 16_385, 1_000_003])
def test_long_texts_and_small_buffers(size: int) -> None:
    tls = pair()
    data = bytes(index * 7 & 255 for index in range(size))
    tls.exchange()
    tls.client.write(data)
    tls.exchange(piece=5000)
    assert read_all(tls.server, size=4099) == data


def test_a_read_fills_the_buffer_over_many_records() -> None:
    tls = pair()
    tls.client.write(bytes(100_000))
    tls.exchange()
    buffer = bytearray(70_000)
    assert tls.server.read_into(buffer) == 70_000
    assert tls.server.read_into(memoryview(buffer)[:40_000]) == 30_000
    assert tls.server.read_into(buffer) == 0
    assert not tls.server.is_closed


def test_each_byte_is_sent_once() -> None:
    tls = pair()
    assert tls.client.to_send()
    assert tls.client.to_send() == b""
    assert tls.server.to_send() == b""


def test_the_peers_certificate() -> None:
    tls = pair(user().settings(), {"ssl.client.auth": "required"})
    assert tls.client.peer_certificate() is None
    tls.exchange()
    assert tls.server.peer_certificate() == ssl.PEM_cert_to_DER_cert(user().certificate)
    assert tls.client.peer_certificate() == ssl.PEM_cert_to_DER_cert(node().certificate)


def test_a_close_follows_the_last_bytes() -> None:
    tls = pair()
    tls.exchange()
    tls.client.write(b"last")
    tls.client.close()
    assert tls.client.is_closed
    tls.exchange()
    assert not tls.server.is_closed  # It is still to be read.
    assert read_all(tls.server) == b"last"
    assert tls.server.is_closed
    tls.server.close()
    tls.server.close()


def test_a_socket_that_ends_without_a_close_closes_after_its_bytes() -> None:
    tls = pair()
    tls.exchange()
    tls.client.write(b"last")
    tls.exchange()
    tls.server.received_end()
    assert read_all(tls.server) == b"last"
    assert tls.server.is_closed


def test_a_socket_that_ends_in_the_handshake_is_an_error() -> None:
    tls = pair()
    tls.server.received(tls.client.to_send()[:20])
    with pytest.raises(ssl.SSLError, match="EOF"):
        tls.server.received_end()


def test_a_close_before_the_handshake_sends_nothing() -> None:
    server = TlsLayer(server_context(node().settings()), is_server=True)
    server.close()
    assert server.is_closed
    assert server.to_send() == b""
    assert server.read_into(bytearray(10)) == 0


@pytest.mark.parametrize("frame", [b"\0\0\0\x20\0\x12\0\4\0\0\0\1", b"GET / HTTP/1.1\r\n\r\n"], ids=["kafka", "http"])
def test_what_is_no_tls_is_an_error(frame: bytes) -> None:
    server = TlsLayer(server_context(node().settings()), is_server=True)
    with pytest.raises(ssl.SSLError):
        server.received(frame)


def test_changed_bytes_are_an_error_after_the_good_ones() -> None:
    tls = pair()
    tls.exchange()
    tls.client.write(b"good")
    good = tls.client.to_send()
    tls.client.write(b"bad")
    bad = bytearray(tls.client.to_send())
    bad[-1] ^= 1
    tls.server.received(good + bad)
    buffer = bytearray(100)
    assert tls.server.read_into(buffer) == 4
    with pytest.raises(ssl.SSLError, match=r"(?i)bad.record"):
        tls.server.read_into(buffer)
    assert tls.server.to_send()  # The alert.


@pytest.mark.parametrize("version", ["TLSv1.2", "TLSv1.3"])
def test_an_untrusted_server_is_refused_and_learns_it(version: str) -> None:
    tls = TlsPair(
        client_context(foreign_authority().settings() | {"ssl.enabled.protocols": version}),
        server_context(node().settings()),
    )
    with pytest.raises(ssl.SSLCertVerificationError):
        tls.exchange()
    with pytest.raises(ssl.SSLError, match=r"(?i)unknown.ca"):
        tls.exchange()
    assert not tls.client.is_established
    assert not tls.server.is_established


def test_another_host_is_refused() -> None:
    tls = TlsPair(client_context(TRUST), server_context(node().settings()), "other.example")
    with pytest.raises(ssl.SSLCertVerificationError, match="Hostname mismatch"):
        tls.exchange()


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "localhost"])
def test_a_host_may_be_an_address(host: str) -> None:
    tls = TlsPair(client_context(TRUST), server_context(node().settings()), host)
    tls.exchange()
    assert tls.server.is_established


def test_reprs() -> None:
    tls = pair()
    assert repr(tls.client) == "<TlsLayer in its handshake>"
    tls.exchange()
    assert repr(tls.client) == "<TlsLayer TLSv1.3>"
    tls.client.close()
    assert repr(tls.client) == "<TlsLayer closed>"
