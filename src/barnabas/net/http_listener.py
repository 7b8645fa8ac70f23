"""A small read-only HTTP server on the broker's loop: for metrics and health.

    GET /path ──► route ──► Answer ──► 200, plain or gzipped

- GET and HEAD of known paths, HTTP/1.0 and 1.1, with keep-alive. Other requests return a status: 400 for bytes that are not a request
  and for a request with a body, 404, 405, 431 for a head above `HEAD_BYTES`.
- A route is a coroutine that makes the answer to one request. If it fails, the error is logged and the status is 500.
- Large answers are compressed in the executor if the client accepts gzip, as Prometheus does.

One client costs little
- One request at a time: while it is answered, and until the client has taken the answer, the connection is not read. It holds one
  head's bytes, and what the kernel holds.
- A head must arrive within `HEAD_SECONDS`, an answer must be taken within `WRITE_SECONDS`, the next request begin within
  `IDLE_SECONDS`; else the connection is closed.
- Beyond `CONNECTIONS` the one that has been silent longest makes room, or else one that does not take its answer, so that nobody can
  keep a health check out. If the answers of all are being made, the new one gets 503 for a costly path, and makes room itself.
- Beyond `UNSENT_BYTES` of answers that nobody takes, other large answers become 503.

Protection (`http_access`)
- A request that arrives over the loopback interface under the name of another host gets 403.
- With a token, `guarded` paths return 401 without it. The others say only whether the node works, to probes that can keep no secret.
- TLS is a layer below the connections (`http_tls`).

Source: RFC 9110, RFC 9112.
"""

from __future__ import annotations

import asyncio
import gzip
import logging
from collections.abc import Awaitable, Callable, Collection, Mapping
from http import HTTPStatus
from typing import TYPE_CHECKING, NamedTuple, cast

from barnabas.http_access import BadTokenFile, is_loopback, is_own_host, read_token, shows_token
from barnabas.net.transport_layer import listen
from barnabas.repeated_lines import RepeatedLines

if TYPE_CHECKING:
    from barnabas.net.tls_transport import Encrypted

__all__ = ["Answer", "HttpListener", "Route"]

logger = logging.getLogger(__name__)

HEAD_BYTES = 8192
CONNECTIONS = 16
UNSENT_BYTES = 16 << 20
IDLE_SECONDS = 60.0
HEAD_SECONDS = 10.0
WRITE_SECONDS = 30.0
_GZIP_FROM_BYTES = 1024
_END = b"\r\n\r\n"


class Answer(NamedTuple):
    """A route's answer."""

    content_type: str
    body: bytes | bytearray
    status: HTTPStatus = HTTPStatus.OK


Route = Callable[[], Awaitable[Answer]]


class _Request(NamedTuple):
    method: str
    path: str
    is_kept_alive: bool
    takes_gzip: bool
    has_body: bool
    host: str | None
    authorization: str

    def __repr__(self) -> str:
        return f"<_Request {self.method} {self.path}>"


class HttpListener:
    """The server.

    Args:
        port: 0 for a free port, which `port` has after `bind`.
        routes: the route of each path; more may come later.
        costly: the paths whose answers take time to make.
        guarded: the paths that need the token, if there is one.
        token_file: has the bearer token; empty for none.
        over_tls: puts TLS below a connection; None for plain text.

    Attributes:
        connections: the longest silent first.
        bound_hosts: the addresses that `bind` has bound; a name has one or more.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        host: str,
        port: int,
        routes: Mapping[str, Route],
        costly: Collection[str] = (),
        *,
        guarded: Collection[str] = (),
        token_file: str = "",
        over_tls: Callable[[Encrypted], asyncio.BaseProtocol] | None = None,
    ) -> None:
        self.loop = loop
        self.host = host
        self.port = port
        self.routes = dict(routes)
        self.costly = costly
        self._guarded = guarded
        self._token_file = token_file
        self._over_tls = over_tls
        self._lines = RepeatedLines(loop)
        self.connections: dict[_Connection, None] = {}
        self.bound_hosts: tuple[str, ...] = ()
        self._server: asyncio.AbstractServer | None = None

    def __repr__(self) -> str:
        return f"<HttpListener {self.host}:{self.port} connections={len(self.connections)}>"

    async def bind(self) -> None:
        """Bind and answer.

        Raises:
            OSError: the address cannot be bound.
        """
        self._server, self.bound_hosts, self.port = await listen(self.loop, self._make_connection, self.host, self.port)

    def _make_connection(self) -> asyncio.BaseProtocol:
        connection = _Connection(self)
        return connection if self._over_tls is None else self._over_tls(connection)

    @property
    def has_tls(self) -> bool:
        return self._over_tls is not None

    @property
    def has_token(self) -> bool:
        return bool(self._token_file)

    def close(self) -> None:
        """Stop at once, in the middle of an answer if need be."""
        if self._server is not None:
            self._server.close()
        for connection in list(self.connections):
            connection.abort()
        self._lines.close()

    async def may_read(self, path: str, authorization: str) -> bool:
        """Return whether a request may read a path: it shows the token, or needs none."""
        if not self._token_file or path not in self._guarded:
            return True
        if not authorization:
            return False
        try:
            token = await self.loop.run_in_executor(None, read_token, self._token_file)
        except BadTokenFile as error:
            self._lines.log(logger, logging.ERROR, "the token", f"Nobody may read {path}: {error}")
            return False
        return shows_token(authorization, token)

    def admit(self, connection: _Connection) -> bool:
        """Add a connection, and return whether it gets costly answers; another one may have to make room for it."""
        in_the_way = next((one for one in self.connections if one.is_silent), None)
        in_the_way = in_the_way or next((one for one in self.connections if one.is_stuck), None)
        if len(self.connections) >= CONNECTIONS and in_the_way is not None:
            in_the_way.abort()
        self.connections[connection] = None
        return len(self.connections) <= CONNECTIONS

    @property
    def unsent_bytes(self) -> int:
        """Bytes of answers that wait for their clients."""
        return sum(connection.unsent_bytes for connection in self.connections)


class _Connection(asyncio.BufferedProtocol):
    """One client's connection; its requests are answered one after the other."""

    def __init__(self, listener: HttpListener) -> None:
        self._listener = listener
        self._buffer = bytearray(HEAD_BYTES + len(_END))
        self._received = 0
        self._answering: asyncio.Task[None] | None = None
        self._deadline: asyncio.TimerHandle | None = None
        self._is_unsent = False
        self._is_closing = False
        self._is_admitted = True
        self._is_local = False
        self._transport: asyncio.Transport

    @property
    def is_silent(self) -> bool:
        """Whether no request is being answered."""
        return self._answering is None and not self.is_stuck

    @property
    def is_stuck(self) -> bool:
        """Whether an answer waits for its client."""
        return self._is_unsent or self._is_closing

    @property
    def unsent_bytes(self) -> int:
        return self._transport.get_write_buffer_size()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transport has the methods of asyncio.Transport without being one.
        self._transport = cast("asyncio.Transport", transport)
        # Any byte that the socket did not take pauses writing.
        self._transport.set_write_buffer_limits(high=0)
        self._is_local = is_loopback((transport.get_extra_info("sockname") or ("",))[0])
        self._is_admitted = self._listener.admit(self)
        self._expect(IDLE_SECONDS if self._is_admitted else HEAD_SECONDS)

    def connection_lost(self, exc: Exception | None) -> None:
        self._listener.connections.pop(self, None)
        if self._deadline is not None:
            self._deadline.cancel()
        if self._answering is not None:
            self._answering.cancel()

    # Calls of a layer of TLS alone.

    @property
    def is_starting(self) -> bool:
        return False

    def wait_unread(self) -> None:
        raise AssertionError("a connection of the HTTP port is always admitted")

    def release_buffer(self) -> None:
        """The buffer stays."""

    def established(self, certificate: bytes | None) -> None:
        """The handshake is over; clients need no certificate."""

    def refuse_later(self, reason: str, level: int) -> None:
        logger.debug("Closing a connection of the HTTP port: %s", reason)
        # The last word of TLS still leaves; the deadline ends a client that does not take it.
        self._is_closing = True
        self._transport.close()

    def eof_received(self) -> bool:
        return False

    def abort(self) -> None:
        self._is_closing = True
        self._listener.connections.pop(self, None)
        self._transport.abort()

    def get_buffer(self, sizehint: int) -> memoryview:
        return memoryview(self._buffer)[self._received :]

    def buffer_updated(self, nbytes: int) -> None:
        if not self._received:
            self._expect(HEAD_SECONDS)
        self._received += nbytes
        self._next()

    def pause_writing(self) -> None:
        self._is_unsent = True

    def resume_writing(self) -> None:
        self._is_unsent = False
        self._go_on()

    def _expect(self, seconds: float) -> None:
        """Close the connection unless the next thing happens in time."""
        if self._deadline is not None:
            self._deadline.cancel()
        self._deadline = self._listener.loop.call_later(seconds, self.abort)

    def _next(self) -> None:
        """Answer the next request if its head is there; reading rests meanwhile."""
        head, end, _ = bytes(self._buffer[: self._received]).partition(_END)
        if not end:
            if self._received == len(self._buffer):
                self._refuse(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)
            return
        used, rest = len(head) + len(_END), self._received - len(head) - len(_END)
        self._buffer[:rest] = self._buffer[used : self._received]
        self._received = rest
        request = _parse(head)
        if request is None or request.has_body:
            self._refuse(HTTPStatus.BAD_REQUEST)
            return
        if self._is_local and request.host is not None and not is_own_host(request.host, self._listener.host):
            self._refuse(HTTPStatus.FORBIDDEN, "here this port answers to localhost, and not to another name (Host)")
            return
        if not self._is_admitted and request.path in self._listener.costly:
            self._refuse(HTTPStatus.SERVICE_UNAVAILABLE)
            return
        self._transport.pause_reading()
        if self._deadline is not None:
            self._deadline.cancel()
        self._answering = self._listener.loop.create_task(self._answer(request))
        self._answering.add_done_callback(self._answered)

    def _answered(self, task: asyncio.Task[None]) -> None:
        self._answering = None
        if task.cancelled():
            return
        if (error := task.exception()) is not None:
            logger.error("An answer to %s failed", self._transport.get_extra_info("peername"), exc_info=error)
            self.abort()
        self._go_on()

    def _go_on(self) -> None:
        """Read the next request, once the answer is made and taken."""
        if self._answering is not None or self._is_unsent or self._is_closing or self._transport.is_closing():
            return
        # The last one to be answered is the last one to make room.
        self._listener.connections.pop(self, None)
        self._listener.connections[self] = None
        self._expect(HEAD_SECONDS if self._received else IDLE_SECONDS)
        self._transport.resume_reading()
        self._next()

    async def _answer(self, request: _Request) -> None:
        answer, encoding = await self._routed(request), ""
        if request.takes_gzip and len(answer.body) >= _GZIP_FROM_BYTES:
            packed = await self._listener.loop.run_in_executor(None, gzip.compress, answer.body, 1)
            answer, encoding = answer._replace(body=packed), "gzip"
        if len(answer.body) > HEAD_BYTES and self._listener.unsent_bytes > UNSENT_BYTES:
            answer, encoding = _words(HTTPStatus.SERVICE_UNAVAILABLE), ""
        self._send(answer, encoding, keep=request.is_kept_alive, head_only=request.method == "HEAD")

    async def _routed(self, request: _Request) -> Answer:
        route = self._listener.routes.get(request.path)
        if request.method not in ("GET", "HEAD"):
            return _words(HTTPStatus.METHOD_NOT_ALLOWED)
        if route is None:
            return _words(HTTPStatus.NOT_FOUND)
        if not await self._listener.may_read(request.path, request.authorization):
            return _words(HTTPStatus.UNAUTHORIZED)
        try:
            return await route()
        except Exception as error:
            logger.error("GET %s failed", request.path, exc_info=error)
            return _words(HTTPStatus.INTERNAL_SERVER_ERROR)

    def _refuse(self, status: HTTPStatus, why: str = "") -> None:
        self._send(_words(status, why), keep=False)

    def _send(self, answer: Answer, encoding: str = "", *, keep: bool, head_only: bool = False) -> None:
        lines = [
            f"HTTP/1.1 {answer.status.value} {answer.status.phrase}",
            f"Content-Type: {answer.content_type}",
            f"Content-Length: {len(answer.body)}",
            f"Connection: {'keep-alive' if keep else 'close'}",
        ]
        if encoding:
            lines.append(f"Content-Encoding: {encoding}")
        if answer.status is HTTPStatus.METHOD_NOT_ALLOWED:
            lines.append("Allow: GET, HEAD")
        if answer.status is HTTPStatus.UNAUTHORIZED:
            lines.append("WWW-Authenticate: Bearer")
        head = "\r\n".join(lines).encode() + _END
        self._expect(WRITE_SECONDS)
        if head_only or len(answer.body) <= HEAD_BYTES:
            self._transport.write(head if head_only else head + answer.body)
        else:
            # Tens of megabytes are not copied for the sake of their head.
            self._transport.write(head)
            self._transport.write(memoryview(answer.body))
        if not keep:
            self._is_closing = True
            self._transport.close()


def _words(status: HTTPStatus, why: str = "") -> Answer:
    line = f"{status.value} {status.phrase}{f': {why}' if why else ''}\n"
    return Answer("text/plain; charset=utf-8", line.encode(), status)


def _parse(head: bytes) -> _Request | None:
    """Parse a request's head, without the empty line after it; None if it is not a request."""
    first, *rest = head.decode("latin-1").split("\r\n")
    words = first.split(" ")
    if len(words) != 3 or words[2] not in ("HTTP/1.0", "HTTP/1.1") or not words[1].startswith("/"):
        return None
    fields: dict[str, str] = {}
    for line in rest:
        name, separator, value = line.partition(":")
        if not separator or not name or name != name.strip() or (name.lower() == "host" and "host" in fields):
            return None
        fields[name.lower()] = value.strip()
    wishes = [wish.strip() for wish in fields.get("connection", "").lower().split(",")]
    kept = "keep-alive" in wishes if words[2] == "HTTP/1.0" else "close" not in wishes
    codings = [coding.partition(";") for coding in fields.get("accept-encoding", "").lower().split(",")]
    takes_gzip = any(name.strip() == "gzip" and rest.replace(" ", "") != "q=0" for name, _, rest in codings)
    has_body = fields.get("content-length", "0") != "0" or "transfer-encoding" in fields
    path = words[1].partition("?")[0]
    host, authorization = fields.get("host"), fields.get("authorization", "")
    return _Request(words[0], path, kept, takes_gzip, has_body, host, authorization)
