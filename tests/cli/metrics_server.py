"""A node's HTTP port, as far as a support bundle asks it: one text, or a status, for requests with the token."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class _Handler(BaseHTTPRequestHandler):
    server: MetricsServer

    def do_GET(self) -> None:
        mine = self.server
        mine.asked.append((self.path, self.headers.get("Authorization", "")))
        status = (
            mine.status if mine.token in ("", self.headers.get("Authorization", "").removeprefix("Bearer ")) else 401
        )
        self.send_response(status)
        if status == 302:
            self.send_header("Location", f"http://127.0.0.1:{mine.server_port}/elsewhere")
        self.send_header("Content-Length", str(len(mine.body)))
        self.end_headers()
        self.wfile.write(mine.body)

    def log_message(self, format: str, *arguments: object) -> None:
        pass


class MetricsServer(ThreadingHTTPServer):
    """Serves on a free port of 127.0.0.1.

    Attributes:
        asked: path and `Authorization` of each request.
    """

    daemon_threads = True

    def __init__(self, body: str, status: int, token: str) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.body, self.status, self.token = body.encode(), status, token
        self.asked: list[tuple[str, str]] = []

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.server_port}"


@contextmanager
def metrics_server(
    body: str, *, status: int = 200, token: str = "", context: ssl.SSLContext | None = None
) -> Iterator[MetricsServer]:
    with MetricsServer(body, status, token) as server:
        if context is not None:
            server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
