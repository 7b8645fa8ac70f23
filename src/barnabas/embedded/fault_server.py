"""The HTTP server of the faults: JSON over HTTP/1.1 on the loopback interface, a thread for each connection.

    barnabas start --nodes 3 --faults 127.0.0.1:9900

It runs in the process that starts the nodes. It blocks while a method of the cluster does, so each connection has a thread.

Only this machine reaches it, and no page of a browser does:
- It listens on a loopback address alone.
- A request under the name of another host gets 403, against DNS rebinding (`http_access`), and so does one with a foreign `Origin`.
- A body has at most `BODY_BYTES` and a length; a silent connection is closed after `IDLE_SECONDS`; beyond `CONNECTIONS` there is 503.
"""

from __future__ import annotations

import json
import logging
import threading
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socket import AF_INET, AF_INET6, SO_REUSEADDR, SOL_SOCKET
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from barnabas.embedded.fault_api import FaultApi, Reply
from barnabas.http_access import is_own_host

__all__ = ["FaultServer"]

logger = logging.getLogger(__name__)

BODY_BYTES = 64 * 1024
CONNECTIONS = 64
IDLE_SECONDS = 60.0


class FaultServer:
    """A server that is bound, and answers after `serve`.

    Args:
        host, port: a loopback address; port 0 takes a free one.

    Attributes:
        address: `host:port`.

    Raises:
        OSError: the address cannot be bound.
    """

    def __init__(self, host: str, port: int) -> None:
        self._server = _Server(host, port)
        bound_host, bound_port = self._server.server_address[:2]
        shown = f"[{bound_host!s}]" if ":" in str(bound_host) else str(bound_host)
        self.address = f"{shown}:{bound_port}"
        self._thread: threading.Thread | None = None

    def __repr__(self) -> str:
        return f"<FaultServer {self.address}>"

    def serve(self, api: FaultApi) -> None:
        """Answer requests from now on; those that wait already are answered too."""
        self._server.api = api
        self._thread = threading.Thread(target=self._server.serve_forever, name="barnabas-faults", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Take no more requests; answers that are under way end with the process."""
        if self._thread is not None:
            self._server.shutdown()
            self._thread.join()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    api: FaultApi

    def __init__(self, host: str, port: int) -> None:
        self.address_family = AF_INET6 if ":" in host else AF_INET
        self.host = host
        self.places = threading.BoundedSemaphore(CONNECTIONS)
        super().__init__((host, port), _Handler)

    def server_bind(self) -> None:
        self.socket.setsockopt(SOL_SOCKET, SO_REUSEADDR, 1)
        # The base asks the name service for the host's full name, which may take seconds.
        self.socket.bind(self.server_address)
        self.server_address = self.socket.getsockname()

    def handle_error(self, request: Any, client_address: Any) -> None:
        logger.debug("A connection of the faults' port ended", exc_info=True)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = IDLE_SECONDS
    server: _Server

    def handle(self) -> None:
        if not self.server.places.acquire(blocking=False):
            self.close_connection = True
            self.requestline, self.request_version, self.command = "", self.protocol_version, ""
            self._send(_error(HTTPStatus.SERVICE_UNAVAILABLE, f"{CONNECTIONS} connections are open: close some first"))
            return
        try:
            super().handle()
        finally:
            self.server.places.release()

    def do_GET(self) -> None:
        """Answer a request of any method."""
        reply = self._refused()
        if reply is None:
            path, body = urlsplit(self.path), None
            try:
                body = self._body()
                query = dict(parse_qsl(path.query, keep_blank_values=True, strict_parsing=bool(path.query)))
                method = "GET" if self.command == "HEAD" else self.command
                reply = self.server.api.answer(method, path.path, query, body)
            except _BadBody as mistake:
                # The next bytes of this connection may be the rest of the body.
                self.close_connection = True
                reply = _error(mistake.status, str(mistake))
            except ValueError as mistake:
                reply = _error(HTTPStatus.BAD_REQUEST, f"the query cannot be read: {mistake}")
            except Exception:
                logger.exception("%s %s failed", self.command, path.path)
                reply = _error(
                    HTTPStatus.INTERNAL_SERVER_ERROR, "a bug of barnabas; standard error of the command has it"
                )
        else:
            self.close_connection = True
        self._send(reply)

    do_HEAD = do_POST = do_DELETE = do_PUT = do_PATCH = do_OPTIONS = do_GET

    def _refused(self) -> Reply | None:
        """Return the answer to a request that a browser may have sent for another site."""
        for name in ("Host", "Origin"):
            value = self.headers.get(name)
            if value is not None and not is_own_host(
                urlsplit(value).netloc if name == "Origin" else value, self.server.host
            ):
                return _error(HTTPStatus.FORBIDDEN, f"this port answers to localhost alone, and not to another {name}")
        return None

    def _body(self) -> object:
        if self.headers.get("Transfer-Encoding"):
            raise _BadBody(HTTPStatus.LENGTH_REQUIRED, "send the body with Content-Length, and not in chunks")
        length = self.headers.get("Content-Length") or "0"
        if not (length.isascii() and length.isdigit()) or int(length) > BODY_BYTES:
            raise _BadBody(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"send a body of at most {BODY_BYTES} bytes")
        data = self.rfile.read(int(length))
        if not data.strip():
            return None
        try:
            found: object = json.loads(data)
            return found
        except (ValueError, RecursionError) as error:
            raise _BadBody(HTTPStatus.BAD_REQUEST, f"the body is not JSON: {error}") from None

    def _send(self, reply: Reply) -> None:
        data = json.dumps(reply.value, indent=2, ensure_ascii=False).encode("utf-8", "backslashreplace") + b"\n"
        self.send_response(reply.status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        if reply.allow:
            self.send_header("Allow", ", ".join(reply.allow))
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Answer bytes that are not a request that this server knows."""
        self.close_connection = True
        self.request_version = self.protocol_version
        self.command = getattr(self, "command", None) or ""
        self._send(_error(HTTPStatus(code), message or HTTPStatus(code).phrase))

    def version_string(self) -> str:
        return "barnabas"

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing: the requests are those of a test."""


class _BadBody(Exception):
    def __init__(self, status: HTTPStatus, text: str) -> None:
        super().__init__(text)
        self.status = status


def _error(status: HTTPStatus, sentence: str) -> Reply:
    return Reply(status, {"error": sentence})
