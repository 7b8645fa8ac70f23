"""Serves an ASGI application on one address, with uvicorn: for the HTTP programs that are not the broker's own.

`run` ends at SIGINT or SIGTERM in a process's main thread, and at `stop` in any thread.
"""

from __future__ import annotations

import socket
from collections.abc import Callable

import uvicorn
from starlette.types import ASGIApp

__all__ = ["HttpServer", "listening_socket"]

STOP_S = 1
"""How long streams may take to end; a browser opens them again."""
_BACKLOG = 128


class HttpServer(uvicorn.Server):
    """A server of one application.

    Args:
        is_ready: called when requests are answered.
    """

    def __init__(self, app: ASGIApp, is_ready: Callable[[], None]) -> None:
        super().__init__(
            uvicorn.Config(
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
        )
        self._is_ready = is_ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, and say so."""
        await super().startup(sockets)
        self._is_ready()

    def stop(self) -> None:
        """Let `run` end; from any thread."""
        self.should_exit = True


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
