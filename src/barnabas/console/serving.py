"""The console's process: uvicorn serves the application on one address until SIGINT or SIGTERM."""

from __future__ import annotations

import socket
from collections.abc import Callable, Collection, Sequence

import uvicorn

from barnabas.console.app import Console
from barnabas.console.asked_cluster import AskedCluster
from barnabas.console.audit_log import AuditLog
from barnabas.console.logins import Logins

STOP_S = 1
"""How long streams may take to end; a browser opens them again."""
_BACKLOG = 128


class _Server(uvicorn.Server):
    """Says where it listens once it does."""

    def __init__(self, config: uvicorn.Config, is_ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._is_ready = is_ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._is_ready()


def listening_socket(host: str, port: int) -> socket.socket:
    """Return a socket that listens.

    Raises:
        OSError: the address is taken, or is not this machine's.
    """
    family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
    found = socket.socket(family)
    try:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind(address)
        found.listen(_BACKLOG)
    except OSError:
        found.close()
        raise
    return found


def serve(
    clusters: Sequence[AskedCluster],
    listener: socket.socket,
    *,
    host: str,
    logins: Logins,
    base_path: str,
    names: Collection[str],
    audit: AuditLog | None,
    is_ready: Callable[[], None],
) -> None:
    """Serve the console until a signal ends it; it closes the socket and the clients.

    Args:
        audit: the log of changes; None if the console changes nothing.
        is_ready: called when the pages can be read.
    """
    app = Console(clusters, logins, base_path=base_path, host=host, names=names, audit=audit).app()
    config = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        server_header=False,
        date_header=True,
        proxy_headers=False,
        lifespan="on",
        ws="none",
        timeout_graceful_shutdown=STOP_S,
        h11_max_incomplete_event_size=64 * 1024,
    )
    _Server(config, is_ready).run([listener])
