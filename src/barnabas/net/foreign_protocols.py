"""What a client speaks that does not speak Kafka's protocol, by its first four bytes.

Kafka's frames begin with their size. The beginning of an HTTP request or of a TLS handshake, read as a size, is larger than any frame
may be; the client's user learns more from the protocol's name than from that number.
"""

from __future__ import annotations

import struct

__all__ = ["HTTP", "TLS", "foreign_protocol", "http_answer"]

HTTP = "an HTTP request"
TLS = "a TLS client hello"

_METHODS = (b"GET ", b"HEAD", b"POST", b"PUT ", b"DELE", b"OPTI", b"PATC", b"CONN", b"TRAC", b"PRI ")
# A record of the handshake, of version 3.0 to 3.4.
_HANDSHAKE = tuple(bytes((22, 3, minor)) for minor in range(5))


def foreign_protocol(size: int) -> str | None:
    """Return what a client sent that looks like a frame of `size` bytes; None if it is nothing known."""
    first = struct.pack(">i", size)
    if first in _METHODS:
        return HTTP
    return TLS if first.startswith(_HANDSHAKE) else None


def http_answer(text: str) -> bytes:
    """Return a response that tells an HTTP client, in one line, why it gets no other."""
    body = f"{text}\n".encode()
    head = f"HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {len(body)}\r\n"
    return f"{head}Connection: close\r\n\r\n".encode() + body
