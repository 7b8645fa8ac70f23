"""The listener at an address where a client gets no answer: one with TLS, one without, or an HTTP server.

None says so by itself. A listener with TLS closes the connection when it reads a request, and one without when it reads the beginning of
TLS; an HTTP server waits for the end of a line that never comes. So the address is asked in each protocol, each on a connection of its
own, and the first bytes of an answer name the protocol:

    TLS     record type 21 (alert) or 22 (handshake) | version 3.x       RFC 8446 5.1
    HTTP    "HTTP/"                                                      RFC 9112 4
    Kafka   int32 size | int32 correlation id of our ApiVersions v0       Kafka protocol guide

Limit: a broker that is only slow logs the questions as what they are. So they are asked late, and of an address that has never
answered (`first_contact`).
"""

from __future__ import annotations

import selectors
import socket
import struct
import time
from contextlib import ExitStack, suppress

__all__ = ["HTTP", "KAFKA", "TLS", "protocol_at", "protocol_of"]

TLS = "TLS"
HTTP = "HTTP"
KAFKA = "Kafka"

_HTTP_REQUEST = b"GET / HTTP/1.0\r\n\r\n"
_CORRELATION_ID = 0x6B61666B
# Size, ApiVersions, version 0, the correlation id, no client id.
_KAFKA_REQUEST = struct.pack(">ihhih", 10, 18, 0, _CORRELATION_ID, -1)
_RECORD_TYPES = (21, 22)
_TLS_MAJOR = 3
_FIRST_BYTES = 1024
_OWN_ANSWER = b"Kafka listener"
"""Our own brokers answer HTTP with one line that says what they are."""


def protocol_of(answer: bytes) -> str | None:
    """Return the protocol of an answer's first bytes: TLS, KAFKA or HTTP; None for other bytes."""
    if len(answer) > 1 and answer[0] in _RECORD_TYPES and answer[1] == _TLS_MAJOR:
        return TLS
    if answer[4:8] == struct.pack(">i", _CORRELATION_ID):
        return KAFKA
    return HTTP if answer.startswith(b"HTTP/") and _OWN_ANSWER not in answer else None


def protocol_at(host: str, port: int, timeout_s: float = 1.0) -> str | None:
    """Return the protocol that a server speaks: TLS, KAFKA or HTTP; None if it speaks another one, or does not answer in time."""
    deadline = time.monotonic() + timeout_s
    with ExitStack() as stack, selectors.DefaultSelector() as selector:
        for question in (_client_hello(host), _HTTP_REQUEST, _KAFKA_REQUEST):
            with suppress(OSError):
                asked = stack.enter_context(socket.create_connection((host, port), timeout_s))
                asked.sendall(question)
                selector.register(asked, selectors.EVENT_READ)
        while selector.get_map() and (left := deadline - time.monotonic()) > 0:
            for key, _ in selector.select(left):
                selector.unregister(key.fileobj)
                with suppress(OSError):
                    if found := protocol_of(key.fileobj.recv(_FIRST_BYTES)):  # type: ignore[union-attr]
                        return found
    return None


def _client_hello(host: str) -> bytes:
    """Return how a client begins TLS with a host."""
    import ssl  # 20 ms, which only a failure needs

    outgoing = ssl.MemoryBIO()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    with suppress(ssl.SSLWantReadError):
        context.wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname=host).do_handshake()
    return outgoing.read()
