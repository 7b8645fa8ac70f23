"""Two layers of TLS back to back, without sockets."""

from __future__ import annotations

import ssl

from barnabas.security.tls_layer import TlsLayer

__all__ = ["TlsPair", "read_all"]


class TlsPair:
    """A client and a server, each of which gets the other's bytes when `exchange` is called."""

    def __init__(self, client: ssl.SSLContext, server: ssl.SSLContext, server_name: str | None = "localhost") -> None:
        self.client = TlsLayer(client, is_server=False, server_name=server_name)
        self.server = TlsLayer(server, is_server=True)

    def __repr__(self) -> str:
        return f"<TlsPair {self.client} {self.server}>"

    def exchange(self, *, piece: int = 1 << 20) -> None:
        """Carry bytes until none are left, in pieces of a size at most.

        Raises:
            ssl.SSLError: one side refuses; its alert has reached the other one.
        """
        moved = True
        while moved:
            moved = False
            for source, target in ((self.client, self.server), (self.server, self.client)):
                data = source.to_send()
                moved = moved or bool(data)
                for start in range(0, len(data), piece):
                    target.received(data[start : start + piece])


def read_all(layer: TlsLayer, size: int = 1 << 16) -> bytes:
    """Return the plaintext that a layer has now."""
    buffer, parts = bytearray(size), []
    while count := layer.read_into(buffer):
        parts.append(bytes(buffer[:count]))
    return b"".join(parts)
