"""A small read-only HTTP server on the broker's loop, for metrics.

    GET /path ──► route ──► Answer ──► 200, plain or gzipped

- GET and HEAD of known paths, HTTP/1.0 and 1.1, with keep-alive. Other requests return a status: 400 for bytes that are not a request
  and for a request with a body, 404, 405, 431 for a head above `HEAD_BYTES`, 503 above `CONNECTIONS` connections.
- A route is a coroutine that makes the answer to one request. If it fails, the error is logged and the status is 500.
- Large answers are compressed in the executor if the client accepts gzip, as Prometheus does.
- A connection that is silent for `IDLE_SECONDS` is closed.

It has no TLS and no authentication, as is usual for a metrics port: do not expose it.

Source: RFC 9110, RFC 9112.
"""

from __future__ import annotations

import asyncio
import gzip
import logging
from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus
from typing import NamedTuple, cast

__all__ = ["Answer", "HttpListener"]

logger = logging.getLogger(__name__)

HEAD_BYTES = 8192
CONNECTIONS = 64
IDLE_SECONDS = 60.0
_GZIP_FROM_BYTES = 1024


class Answer(NamedTuple):
    """A route's answer."""

    content_type: str
    body: bytes


Route = Callable[[], Awaitable[Answer]]


class _Request(NamedTuple):
    method: str
    path: str
    is_kept_alive: bool
    takes_gzip: bool
    has_body: bool


class HttpListener:
    """The server.

    Args:
        port: 0 for a free port, which `port` has after `bind`.
        routes: the route of each path.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, host: str, port: int, routes: Mapping[str, Route]) -> None:
        self.loop = loop
        self.host = host
        self.port = port
        self.routes = routes
        self.connections: set[_Connection] = set()
        self._server: asyncio.AbstractServer | None = None

    def __repr__(self) -> str:
        return f"<HttpListener {self.host}:{self.port} connections={len(self.connections)}>"

    async def bind(self) -> None:
        """Bind and answer.

        Raises:
            OSError: the address cannot be bound.
        """
        self._server = await self.loop.create_server(
            lambda: _Connection(self), self.host or None, self.port, reuse_address=True
        )
        self.port = self._server.sockets[0].getsockname()[1]

    def close(self) -> None:
        """Stop at once, in the middle of an answer if need be."""
        if self._server is not None:
            self._server.close()
        for connection in list(self.connections):
            connection.abort()


class _Connection(asyncio.Protocol):
    """One client's connection; its requests are answered one after the other."""

    def __init__(self, listener: HttpListener) -> None:
        self._listener = listener
        self._head = bytearray()
        self._answering: asyncio.Task[None] | None = None
        self._idle: asyncio.TimerHandle | None = None
        self._transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        connections = self._listener.connections
        if len(connections) >= CONNECTIONS:
            self._send(HTTPStatus.SERVICE_UNAVAILABLE, _words(HTTPStatus.SERVICE_UNAVAILABLE), keep=False)
            return
        connections.add(self)
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        self._listener.connections.discard(self)
        if self._idle is not None:
            self._idle.cancel()
        if self._answering is not None:
            self._answering.cancel()

    def abort(self) -> None:
        self._transport.abort()

    def data_received(self, data: bytes) -> None:
        self._head += data
        self._next()

    def _wait(self) -> None:
        if self._idle is not None:
            self._idle.cancel()
        self._idle = self._listener.loop.call_later(IDLE_SECONDS, self.abort)

    def _next(self) -> None:
        if self._answering is not None:
            if len(self._head) > HEAD_BYTES:
                self._transport.pause_reading()
            return
        end = self._head.find(b"\r\n\r\n")
        if end < 0 or end > HEAD_BYTES:
            if len(self._head) > HEAD_BYTES:
                self._refuse(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)
            return
        head = bytes(self._head[:end])
        del self._head[: end + 4]
        request = _parse(head)
        if request is None or request.has_body:
            self._refuse(HTTPStatus.BAD_REQUEST)
            return
        if self._idle is not None:
            self._idle.cancel()
        self._answering = self._listener.loop.create_task(self._answer(request))
        self._answering.add_done_callback(self._answered)

    def _answered(self, task: asyncio.Task[None]) -> None:
        self._answering = None
        if not task.cancelled() and not self._transport.is_closing():
            self._wait()
            self._transport.resume_reading()
            self._next()

    async def _answer(self, request: _Request) -> None:
        status, answer, encoding = HTTPStatus.OK, None, ""
        route = self._listener.routes.get(request.path)
        if request.method not in ("GET", "HEAD"):
            status = HTTPStatus.METHOD_NOT_ALLOWED
        elif route is None:
            status = HTTPStatus.NOT_FOUND
        else:
            try:
                answer = await route()
            except Exception as error:
                logger.error("GET %s failed", request.path, exc_info=error)
                status = HTTPStatus.INTERNAL_SERVER_ERROR
        answer = answer or _words(status)
        if request.takes_gzip and len(answer.body) >= _GZIP_FROM_BYTES:
            packed = await self._listener.loop.run_in_executor(None, gzip.compress, answer.body, 1)
            answer, encoding = answer._replace(body=packed), "gzip"
        self._send(status, answer, encoding, keep=request.is_kept_alive, head_only=request.method == "HEAD")

    def _refuse(self, status: HTTPStatus) -> None:
        self._send(status, _words(status), keep=False)

    def _send(
        self, status: HTTPStatus, answer: Answer, encoding: str = "", *, keep: bool, head_only: bool = False
    ) -> None:
        lines = [
            f"HTTP/1.1 {status.value} {status.phrase}",
            f"Content-Type: {answer.content_type}",
            f"Content-Length: {len(answer.body)}",
            f"Connection: {'keep-alive' if keep else 'close'}",
        ]
        if encoding:
            lines.append(f"Content-Encoding: {encoding}")
        if status is HTTPStatus.METHOD_NOT_ALLOWED:
            lines.append("Allow: GET, HEAD")
        head = "\r\n".join(lines).encode() + b"\r\n\r\n"
        self._transport.write(head if head_only else head + answer.body)
        if not keep:
            self._transport.close()


def _words(status: HTTPStatus) -> Answer:
    return Answer("text/plain; charset=utf-8", f"{status.value} {status.phrase}\n".encode())


def _parse(head: bytes) -> _Request | None:
    """Parse a request's head, without the empty line after it; None if it is not a request."""
    first, *rest = head.decode("latin-1").split("\r\n")
    words = first.split(" ")
    if len(words) != 3 or words[2] not in ("HTTP/1.0", "HTTP/1.1") or not words[1].startswith("/"):
        return None
    fields: dict[str, str] = {}
    for line in rest:
        name, separator, value = line.partition(":")
        if not separator or not name or name != name.strip():
            return None
        fields[name.lower()] = value.strip()
    wishes = [wish.strip() for wish in fields.get("connection", "").lower().split(",")]
    kept = "keep-alive" in wishes if words[2] == "HTTP/1.0" else "close" not in wishes
    codings = [coding.partition(";") for coding in fields.get("accept-encoding", "").lower().split(",")]
    takes_gzip = any(name.strip() == "gzip" and rest.replace(" ", "") != "q=0" for name, _, rest in codings)
    has_body = fields.get("content-length", "0") != "0" or "transfer-encoding" in fields
    return _Request(words[0], words[1].partition("?")[0], kept, takes_gzip, has_body)
