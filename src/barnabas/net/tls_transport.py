"""TLS between a socket and a connection: to the socket a protocol, to the connection its transport.

    socket ─► loop's transport ─► TlsTransport.buffer_updated ─► TlsLayer ─► Connection.get_buffer, buffer_updated
    socket ◄─ loop's transport ◄─ TlsTransport.write          ◄─ TlsLayer ◄─ Connection's transport.write

- The connection is made when the socket is accepted, before the handshake: admission by address, rates and descriptors come first, and a
  connection that is not admitted yet costs no handshake.
- The context is the listener's of this moment: a renewed certificate serves the next connection.
- All connections of a listener receive into one buffer of ciphertext: the layer copies it in the same call.
- The connection sees no socket, so no record leaves by sendfile past the encryption.
- While the connection does not read, the loop's transport does not, and what is decrypted already waits in the layer.

Sources: RFC 8446; Kafka's `SslTransportLayer`.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import ssl
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol, cast

if TYPE_CHECKING:
    from barnabas.security.tls_layer import TlsLayer

__all__ = ["TlsTransport"]

_PIECE = 256 * 1024
_HANDSHAKE_RECORD = b"\x16"


class Encrypted(Protocol):
    """The connection above TLS, as TLS needs it."""

    @property
    def is_starting(self) -> bool: ...
    def connection_made(self, transport: asyncio.BaseTransport) -> None: ...
    def connection_lost(self, exc: Exception | None) -> None: ...
    def get_buffer(self, sizehint: int) -> memoryview: ...
    def buffer_updated(self, nbytes: int) -> None: ...
    def eof_received(self) -> bool: ...
    def pause_writing(self) -> None: ...
    def resume_writing(self) -> None: ...
    def wait_unread(self) -> None: ...
    def release_buffer(self) -> None: ...
    def established(self, certificate: bytes | None) -> None: ...
    def refuse_later(self, reason: str, level: int) -> None: ...


class TlsTransport(asyncio.BufferedProtocol):
    """The TLS of one connection.

    Args:
        make_layer: makes the layer, for the server's side.
        buffer: receives ciphertext; shared by a listener's connections.
    """

    __slots__ = (
        "_buffer",
        "_connection",
        "_held",
        "_is_closing",
        "_is_established",
        "_is_paused",
        "_layer",
        "_loop",
        "_raw",
        "_speaks_tls",
    )

    def __init__(
        self,
        connection: Encrypted,
        make_layer: Callable[[], TlsLayer],
        buffer: memoryview,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self._connection = connection
        self._layer = make_layer()
        self._buffer = buffer
        self._loop = loop
        self._is_paused = False
        self._is_established = False
        self._is_closing = False
        self._speaks_tls = False
        # Ciphertext that has arrived before the connection was admitted.
        self._held = b""
        self._raw: asyncio.Transport

    def __repr__(self) -> str:
        return f"<TlsTransport {self._layer.version or 'handshake'} paused={self._is_paused}>"

    # Calls of the loop.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._raw = cast("asyncio.Transport", transport)
        # To the connection, this is a transport.
        self._connection.connection_made(cast("asyncio.BaseTransport", self))

    def connection_lost(self, exc: Exception | None) -> None:
        self._is_closing = True
        self._connection.connection_lost(exc)

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        if self._is_closing:
            return
        if self._connection.is_starting:
            # The layer would shake hands immediately. The loop's transport brings nothing more until these bytes are read.
            self._held = bytes(self._buffer[:nbytes])
            self._connection.wait_unread()
        elif self._held:
            held, self._held = self._held, b""
            self._take(held + self._buffer[:nbytes])
        else:
            self._take(self._buffer[:nbytes])

    def eof_received(self) -> bool:
        return self._connection.eof_received()

    def pause_writing(self) -> None:
        self._connection.pause_writing()

    def resume_writing(self) -> None:
        self._connection.resume_writing()

    def _take(self, data: memoryview | bytes) -> None:
        """Give ciphertext to the layer, and plaintext to the connection."""
        # The first record of a client is always one of the handshake.
        self._speaks_tls = self._speaks_tls or data[:1] == _HANDSHAKE_RECORD
        try:
            self._layer.received(data)
            self._pump()
        except ssl.SSLError as error:
            self._fail(error)

    def _pump(self) -> None:
        """Decrypt into the connection's buffer as long as there is something, and the connection reads.

        Raises:
            ssl.SSLError: the connection is over.
        """
        connection, layer = self._connection, self._layer
        while not self._is_paused and not self._is_closing:
            if not layer.is_established:
                break
            if not self._is_established:
                self._is_established = True
                connection.established(layer.peer_certificate())
                if self._is_closing:
                    return
            count = layer.read_into(connection.get_buffer(-1))
            if not count:
                connection.release_buffer()
                break
            connection.buffer_updated(count)
        self._flush()
        if layer.is_closed and not self._is_closing:
            # The client has said that nothing more comes.
            self._connection.eof_received()
            self.close()

    def _fail(self, error: ssl.SSLError) -> None:
        self._connection.release_buffer()
        self._flush()
        self._is_closing = True
        self._raw.pause_reading()
        if not self._speaks_tls:
            why = "bytes without TLS arrived; the client needs security.protocol=SSL or SASL_SSL"
        else:
            why = f"the TLS handshake failed: {_reason(error)}" if not self._is_established else _reason(error)
        self._connection.refuse_later(why, logging.WARNING)

    def _flush(self) -> None:
        if data := self._layer.to_send():
            self._raw.write(data)

    # Calls of the connection.

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Encrypt and send."""
        if self._is_closing:
            return
        view = memoryview(data)
        for start in range(0, len(view), _PIECE):
            self._layer.write(view[start : start + _PIECE])
            self._flush()

    def close(self) -> None:
        """Say that nothing more comes, and close after what is unsent."""
        if not self._is_closing:
            self._is_closing = True
            # A handshake that has not ended has nothing to close.
            with contextlib.suppress(ssl.SSLError):
                self._layer.close()
                self._flush()
        self._raw.close()

    def abort(self) -> None:
        self._is_closing = True
        self._raw.abort()

    def is_closing(self) -> bool:
        return self._is_closing or self._raw.is_closing()

    def pause_reading(self) -> None:
        self._is_paused = True
        self._raw.pause_reading()

    def resume_reading(self) -> None:
        self._is_paused = False
        self._raw.resume_reading()
        self._loop.call_soon(self._read_on)

    def _read_on(self) -> None:
        if not self._is_paused and not self._is_closing and not self._connection.is_starting:
            held, self._held = self._held, b""
            self._take(held)

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self._raw.set_write_buffer_limits(high, low)

    def get_write_buffer_size(self) -> int:
        return self._raw.get_write_buffer_size()

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """As the loop's transport, but for the socket: no byte may go past the encryption."""
        if name == "socket":
            return default
        if name == "ssl_object":
            return self._layer
        return self._raw.get_extra_info(name, default)


def _reason(error: ssl.SSLError) -> str:
    return (getattr(error, "reason", None) or str(error)).replace("_", " ").lower()
