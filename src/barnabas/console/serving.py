"""The console's process: the application is served on one address until SIGINT or SIGTERM."""

from __future__ import annotations

import socket
from collections.abc import Callable, Collection, Sequence

from barnabas.console.app import Console
from barnabas.console.asked_cluster import AskedCluster
from barnabas.console.audit_log import AuditLog
from barnabas.console.logins import Logins
from barnabas.http_serving import HttpServer, listening_socket

__all__ = ["listening_socket", "serve"]


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
    HttpServer(app, is_ready).run([listener])
