"""TLS as a layer of a connection, without sockets: ciphertext in, plaintext out, and back.

    socket ── received(data) ──▶ ┌──────────┐ ── read_into(buffer) ──▶ frames
                                 │ TlsLayer │
    socket ◀── to_send() ─────── └──────────┘ ◀── write(data) ──────── frames

The owner moves the bytes. After every call of another method it sends what `to_send` returns: a handshake, a close and a new key put
bytes there too, and so does a failure, whose alert tells the peer the reason. Then it closes the socket.

- A client's first bytes are there from the start; a server's come after `received`.
- What is written before the handshake has ended waits in the layer, and leaves after it.
- Plaintext is encrypted in slices of 64 KiB, because OpenSSL's buffers keep the size that they once had.
- In TLS 1.3 a client is established before the server has looked at its certificate: a refusal arrives with the first read.

Not here: limits and deadlines, which belong to the owner, and renegotiation, which `tls_settings` turns off.

Source: `ssl.MemoryBIO`; Kafka's `SslTransportLayer`.
"""

from __future__ import annotations

import contextlib
import ssl

__all__ = ["TlsLayer"]

SLICE = 1 << 16
"""Plaintext that is encrypted at a time: four records of TLS."""


class TlsLayer:
    """One side of one connection.

    Args:
        context: from `tls_settings`.
        server_name: the host that a client dials, by name or address; it must be in the server's certificate if the context checks names.

    Raises:
        ssl.SSLError: the peer's fault, from every method but `to_send` and the properties; the connection is over, after its alert is sent.
        ValueError: `server_name` is not the name of a host.
    """

    __slots__ = (
        "_early",
        "_encrypted",
        "_failure",
        "_incoming",
        "_is_closed",
        "_is_established",
        "_object",
        "_outgoing",
    )

    def __init__(self, context: ssl.SSLContext, *, is_server: bool, server_name: str | None = None) -> None:
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._object = context.wrap_bio(
            self._incoming, self._outgoing, server_side=is_server, server_hostname=server_name
        )
        self._early: list[bytes] = []
        self._encrypted: list[bytes] = []
        self._failure: ssl.SSLError | None = None
        self._is_established = False
        self._is_closed = False
        if not is_server:
            self._shake_hands()

    def __repr__(self) -> str:
        state = "closed" if self._is_closed else self.version if self._is_established else "in its handshake"
        return f"<TlsLayer {state}>"

    @property
    def is_established(self) -> bool:
        """Whether the handshake has ended, and well."""
        return self._is_established

    @property
    def is_closed(self) -> bool:
        """Whether one of the two sides has closed: nothing more is read."""
        return self._is_closed

    @property
    def version(self) -> str | None:
        """`TLSv1.2` or `TLSv1.3`; None before the handshake has ended."""
        return self._object.version() if self._is_established else None

    def peer_certificate(self) -> bytes | None:
        """Return the peer's own certificate in DER, which was verified; None if it has shown none, or the handshake has not ended."""
        if not self._is_established:
            return None
        try:
            return self._object.getpeercert(binary_form=True)
        except ValueError:
            # OpenSSL read a message of a handshake after the end of the first one. No answer is better than "no certificate".
            raise ssl.SSLError("the peer has begun another handshake") from None

    def received(self, data: bytes | bytearray | memoryview) -> None:
        """Take bytes that the socket has received; they are copied."""
        self._incoming.write(data)
        if not self._is_established:
            self._shake_hands()

    def received_end(self) -> None:
        """Take note that the peer's socket has ended. What was received before can still be read."""
        self._incoming.write_eof()
        if not self._is_established:
            self._shake_hands()

    def read_into(self, buffer: bytearray | memoryview) -> int:
        """Decrypt into a buffer, as much as is there and fits.

        Returns:
            Bytes in the buffer; 0 if there are none now, and none ever if the layer `is_closed`.
        """
        if not self._is_established or self._is_closed:
            return 0
        view, count = memoryview(buffer), 0
        while count < len(view) and self._failure is None and self._has_bytes():
            try:
                read = self._read(view[count:])
            except ssl.SSLWantReadError:
                break
            except (ssl.SSLZeroReturnError, ssl.SSLEOFError):
                read = 0  # A peer that ends without a close is cut off at most in a frame, which its reader notices.
            except ssl.SSLError as error:
                self._failure = error  # OpenSSL says it once; bytes before it are good.
                break
            if not read:
                self._is_closed = True
                break
            count += read
        if self._failure is not None and not count:
            raise self._failure
        return count

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Encrypt bytes; `to_send` has them then, or after the handshake."""
        if not self._is_established:
            self._early.append(bytes(data))
            return
        view = memoryview(data).cast("B")
        for start in range(0, len(view), SLICE):
            self._encrypt(view[start : start + SLICE])

    def to_send(self) -> bytes:
        """Return the bytes that the socket must send; each is returned once."""
        if not self._encrypted:
            return self._outgoing.read() if self._outgoing.pending else b""
        if self._outgoing.pending:
            self._encrypted.append(self._outgoing.read())
        data = self._encrypted[0] if len(self._encrypted) == 1 else b"".join(self._encrypted)
        self._encrypted.clear()
        return data

    def close(self) -> None:
        """Tell the peer that nothing more follows (close_notify); `to_send` has the bytes. Its answer need not be waited for."""
        if self._is_established and not self._is_closed:
            with contextlib.suppress(ssl.SSLError):  # It wants to read the peer's close, which need not come.
                self._object.unwrap()
        self._is_closed = True

    def _shake_hands(self) -> None:
        try:
            self._object.do_handshake()
        except ssl.SSLWantReadError:
            return
        self._is_established = True
        early, self._early = self._early, []
        for data in early:
            self.write(data)

    def _has_bytes(self) -> bool:
        return bool(self._incoming.pending or self._object.pending() or self._incoming.eof)

    def _read(self, view: memoryview) -> int:
        count: object = self._object.read(len(view), view)  # With a buffer it returns a number, whatever its stub says.
        assert isinstance(count, int)
        return count

    def _encrypt(self, view: memoryview) -> None:
        while view:
            view = view[self._object.write(view) :]
        self._encrypted.append(self._outgoing.read())
