"""Below a listener's connections: its socket, and the transport of each socket that it accepts.

Every listener of a node gets its transports here. All are plain TCP: TLS is a layer between such a transport and its connection
(`net/tls_transport`), never the loop's `ssl=`, which would show a connection only after its handshake. A connection sees nothing but
its transport, and `sendfile` the one place that has to know which it is.

Source: Kafka's `TransportLayer`, `PlaintextTransportLayer`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

__all__ = ["listen"]

BACKLOG = 100
"""Connections that the system keeps until they are accepted, unless a listener says otherwise; asyncio's default."""


async def listen(
    loop: asyncio.AbstractEventLoop,
    make: Callable[[], asyncio.BaseProtocol],
    host: str,
    port: int,
    backlog: int = BACKLOG,
) -> tuple[asyncio.AbstractServer, tuple[str, ...], int]:
    """Bind and accept; return the server, the addresses that it has bound and its port.

    Args:
        make: makes a protocol for each transport.
        host: empty for every address. A name has one address or more.
        port: 0 for a free one.

    Raises:
        OSError: the address cannot be bound.
    """
    # Two address families would each pick a free port of their own.
    bound = host or ("0.0.0.0" if port == 0 else None)
    server = await loop.create_server(make, bound, port, backlog=backlog, reuse_address=True)
    names = [each.getsockname() for each in server.sockets]
    return server, tuple(name[0] for name in names), names[0][1]
