"""One connection to one broker, on an event loop: how a node sends requests to another node.

- A request is a coroutine: it connects if there is no connection, negotiates the versions once a connection, and waits for its response.
- Several requests may be under way; a broker answers them in their order. A request that may wait long (Fetch) therefore has a channel of
  its own, as in Kafka: heartbeats, fetches, forwarded requests and changes of an ISR never wait for each other.
- With `security` the connection has TLS and begins with a login. The login is renewed before the session ends: new requests wait until
  those under way are answered and the login is done.
- A failure ends the connection and fails every request under way: with RequestTimedOut the one whose time is up, with ConnectionLost the
  others. The next request connects again. The caller waits between attempts.

Invariant: after `close`, nothing of the channel runs on the loop, and each request ends with ConnectionLost.

The loop itself does TLS here: unlike a listener, who dials has nothing to count before the handshake is over.

Sources: Kafka's `NetworkClient`, `InterBrokerSendThread`; KIP-368.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections import deque
from dataclasses import dataclass
from typing import Any, cast

from barnabas.client.bootstrap import format_address
from barnabas.client.errors import ConnectionLost, RequestTimedOut, cannot_connect
from barnabas.client.exchange import NEWEST_API_VERSIONS, SIZE_BYTES, Exchange
from barnabas.client.incoming_response import IncomingResponse
from barnabas.client.login import login, login_version, renewed_after_s
from barnabas.client.tls_failures import is_tls_failure, tls_failure
from barnabas.protocol.errors import KafkaError, MalformedMessage
from barnabas.protocol.message import Message
from barnabas.security.client_security import ClientSecurity

__all__ = ["Channel", "ChannelTraffic"]

BEGINNING_BYTES = 4096
"""The size of that buffer: how long a response is, is known when its first bytes have been read."""


@dataclass(slots=True)
class ChannelTraffic:
    """The requests that channels have sent, and the responses that they have received; bytes as before TLS."""

    requests: int = 0
    responses: int = 0
    bytes_out: int = 0
    bytes_in: int = 0


class Channel:
    """A connection to one broker that is made when a request needs it.

    Args:
        loop: runs the connection; every method is called on it.
        client_id: shown in the broker's logs and metrics.
        timeout_ms: for connecting, and for each response without a timeout of its own.
        security: TLS and the login; None for a plain connection.
        traffic: counts what this channel carries; several channels may share one.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        host: str,
        port: int,
        *,
        client_id: str,
        timeout_ms: int = 30_000,
        security: ClientSecurity | None = None,
        traffic: ChannelTraffic | None = None,
    ) -> None:
        self.host = host
        self.port = port
        self.security = security
        self._loop = loop
        self._client_id = client_id
        self._timeout_ms = timeout_ms
        self._traffic = ChannelTraffic() if traffic is None else traffic
        self.connection: _Connection | None = None
        self._connecting: asyncio.Task[Exception | None] | None = None
        self._is_closed = False

    def __repr__(self) -> str:
        if self._is_closed:
            state = "closed"
        elif self._connecting is not None:
            state = "connecting"
        else:
            state = "idle" if self.connection is None else repr(self.connection)
        return f"<Channel {self.address} {state}>"

    @property
    def address(self) -> str:
        """`host:port`, with brackets around an IPv6 address."""
        return format_address(self.host, self.port)

    async def request(
        self, message: Message, *, version: int | None = None, highest: int | None = None, timeout_ms: int | None = None
    ) -> Any:
        """Send a request and return its response; the caller checks the error codes in it.

        Args:
            version: exactly this version; None negotiates.
            highest: the highest version to negotiate.
            timeout_ms: for this response; None for the channel's.

        Raises:
            BrokerNotAvailable: nothing listens there, or the name does not resolve: the request was not sent.
            ConnectionLost, RequestTimedOut: the broker may have handled the request.
            OtherSecurity: no TLS, or no login, with these security settings at this listener: the request was not sent.
            KafkaError: UNSUPPORTED_VERSION, SASL_AUTHENTICATION_FAILED, UNSUPPORTED_SASL_MECHANISM: the request was not sent.
            MalformedMessage: the response cannot be read; the connection is closed.
        """
        connection = await self._connected()
        if version is None:
            version = connection.exchange.version_for(message, highest)
        return await connection.request(message, version, self._timeout_ms if timeout_ms is None else timeout_ms)

    async def version_for(self, message_class: type[Message] | Message, highest: int | None = None) -> int:
        """Connect if there is no connection, and return the version in which a request would be sent; see `Exchange.version_for`.

        Raises:
            BrokerNotAvailable, ConnectionLost, RequestTimedOut: there is no connection.
            KafkaError: as `request`.
        """
        return (await self._connected()).exchange.version_for(message_class, highest)

    def close(self) -> None:
        """Close the connection; requests under way end with ConnectionLost, and so does every later one."""
        self._is_closed = True
        if self._connecting is not None:
            self._connecting.cancel()
        if self.connection is not None:
            self.connection.fail(self._closed())

    async def _connected(self) -> _Connection:
        while self.connection is None or self.connection.is_lost or self.connection.is_login_due:
            if self._is_closed:
                raise self._closed()
            if self._connecting is None:
                connection = self.connection
                is_there = connection is not None and not connection.is_lost
                self._connecting = self._loop.create_task(self._renew_login() if is_there else self._connect())
            connecting = self._connecting
            try:
                # Several requests wait for one connection: none of them may cancel it.
                failure = await asyncio.shield(connecting)
            except asyncio.CancelledError:
                if connecting.cancelled():
                    raise self._closed() from None
                raise
            if failure is not None:
                raise failure
        return self.connection

    async def _connect(self) -> Exception | None:
        """Connect; return why that failed.

        asyncio would report an exception that is never retrieved: the callers may be gone, and the loop may end in this turn.
        """
        connection = _Connection(self._loop, Exchange(self.address, self._client_id), self._timeout_ms, self._traffic)
        try:
            # Not `wait_for`, which makes another task before Python 3.12.
            async with asyncio.timeout(self._timeout_ms / 1000):
                await self._dial(connection)
            await self._negotiate(connection)
            await self._log_in(connection)
        except OSError as error:
            if is_tls_failure(error):
                return tls_failure(self.address, error, self._timeout_ms)
            return cannot_connect(self.address, error, self._timeout_ms)
        except Exception as error:
            connection.fail(self._closed())
            return error
        except asyncio.CancelledError:
            connection.fail(self._closed())
            raise
        finally:
            self._connecting = None
        self.connection = connection
        return None

    async def _dial(self, connection: _Connection) -> None:
        if self.security is None or self.security.context is None:
            await self._loop.create_connection(lambda: connection, self.host, self.port)
        else:
            await self._loop.create_connection(
                lambda: connection, self.host, self.port, ssl=self.security.context, server_hostname=self.host
            )

    async def _log_in(self, connection: _Connection) -> None:
        """Log in, if the security settings ask for it; note when to do so again."""
        if self.security is None or self.security.mechanism is None:
            return
        steps = login(connection.exchange, self.security, self.host)
        try:
            request = next(steps)
            while True:
                version = login_version(connection.exchange, request)
                request = steps.send(await connection.request(request, version, self._timeout_ms))
        except StopIteration as finished:
            seconds = renewed_after_s(finished.value)
            connection.renews_login_at = None if seconds is None else self._loop.time() + seconds

    async def _renew_login(self) -> Exception | None:
        """Log in again when no request is under way; return why that failed."""
        connection = self.connection
        assert connection is not None, self
        try:
            await connection.answered()
            await self._log_in(connection)
        except Exception as error:
            connection.fail(self._closed())
            return error
        except asyncio.CancelledError:
            connection.fail(self._closed())
            raise
        finally:
            self._connecting = None
        return None

    async def _negotiate(self, connection: _Connection) -> None:
        version: int | None = NEWEST_API_VERSIONS
        while version is not None:
            request = connection.exchange.versions_request(version)
            response = await connection.request(request, version, self._timeout_ms)
            version = connection.exchange.learn(response)

    def _closed(self) -> ConnectionLost:
        return ConnectionLost(f"the connection to {self.address} is closed")


class _Connection(asyncio.BufferedProtocol):
    """One connection of a channel.

    A response is first read into a small shared buffer, so most responses take a single read. The rest of a longer one is received
    into its own buffer, which grows with it.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        exchange: Exchange,
        timeout_ms: int = 30_000,
        traffic: ChannelTraffic | None = None,
    ) -> None:
        self.exchange = exchange
        self._traffic = ChannelTraffic() if traffic is None else traffic
        self.is_lost = False
        # On the loop's clock; None if the session has no end.
        self.renews_login_at: float | None = None
        self._loop = loop
        self._timeout_ms = timeout_ms
        self._all_answered: asyncio.Future[None] | None = None
        self._transport: asyncio.Transport | None = None
        self._waiting: deque[asyncio.Future[Message]] = deque()
        self._beginning = memoryview(bytearray(BEGINNING_BYTES))
        # How many bytes of the beginning are there.
        self._filled = 0
        self._incoming: IncomingResponse | None = None

    def __repr__(self) -> str:
        return f"{'lost' if self.is_lost else 'connected'} unanswered={len(self._waiting)}"

    @property
    def is_login_due(self) -> bool:
        return self.renews_login_at is not None and self._loop.time() >= self.renews_login_at

    async def answered(self) -> None:
        """Wait until no request is under way; each has a timeout of its own."""
        if self._waiting:
            self._all_answered = self._loop.create_future()
            await self._all_answered

    def _note_answered(self) -> None:
        if self._all_answered is not None and not self._waiting:
            if not self._all_answered.done():
                self._all_answered.set_result(None)
            self._all_answered = None

    async def request(self, message: Message, version: int, timeout_ms: int) -> Any:
        """Send a request and return its response.

        Raises:
            ConnectionLost, RequestTimedOut, MalformedMessage: the connection is lost then.
        """
        if self._transport is None or self.is_lost:
            raise self._lost("sending")
        frame = self.exchange.encode(message, version)
        self._transport.write(frame)
        self._traffic.requests += 1
        self._traffic.bytes_out += len(frame)
        response: asyncio.Future[Message] = self._loop.create_future()
        self._waiting.append(response)
        timer = self._loop.call_later(timeout_ms / 1000, self._time_out, response)
        try:
            return await response
        finally:
            timer.cancel()

    def _time_out(self, response: asyncio.Future[Message]) -> None:
        if not response.done():
            response.set_exception(RequestTimedOut(f"{self.exchange.address} did not answer in time"))
            self.fail(self._lost("waiting for the answer"))

    def fail(self, error: KafkaError) -> None:
        """End the connection; what waits for a response fails with the error."""
        self.is_lost = True
        if self._transport is not None:
            self._transport.abort()
        waiting, self._waiting = self._waiting, deque()
        self.exchange.reset()
        for response in waiting:
            if not response.done():
                response.set_exception(error)
        self._note_answered()

    def _lost(self, doing: str, reason: str = "the broker closed it") -> ConnectionLost:
        return ConnectionLost(f"lost the connection to {self.exchange.address} while {doing}: {reason}")

    # asyncio's calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # A stream has a transport that writes; uvloop's is of no class of asyncio.
        self._transport = cast("asyncio.Transport", transport)
        connected = transport.get_extra_info("socket")
        if connected is not None:
            with contextlib.suppress(OSError):
                connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def connection_lost(self, error: Exception | None) -> None:
        if self.is_lost:
            return
        if isinstance(error, OSError) and is_tls_failure(error):
            self.fail(tls_failure(self.exchange.address, error, self._timeout_ms))
            return
        reason = str(getattr(error, "strerror", None) or error or "the broker closed it").lower()
        self.fail(self._lost("waiting for the answer", reason))

    def get_buffer(self, sizehint: int) -> memoryview:
        if self._incoming is None:
            return self._beginning[self._filled :]
        return self._incoming.room()

    def buffer_updated(self, nbytes: int) -> None:
        try:
            self._take(nbytes)
        except MalformedMessage as error:
            if self._waiting and not (waiting := self._waiting.popleft()).done():
                waiting.set_exception(error)
            self.fail(self._lost("reading the answer", "it cannot be read"))

    def _take(self, count: int) -> None:
        """Take the responses whose bytes are all here, after so many more have arrived."""
        self._traffic.bytes_in += count
        incoming = self._incoming
        if incoming is None:
            self._filled += count
            self._take_beginnings()
            return
        incoming.received(count)
        if incoming.is_whole:
            self._incoming = None
            self._answer(incoming)

    def _take_beginnings(self) -> None:
        arrived, position = self._beginning[: self._filled], 0
        self._filled = 0
        while len(arrived) - position >= SIZE_BYTES:
            incoming = IncomingResponse(self.exchange.size_of(arrived[position : position + SIZE_BYTES]))
            position += SIZE_BYTES
            position += incoming.put(arrived[position:])
            if not incoming.is_whole:
                self._incoming = incoming
                return
            self._answer(incoming)
        self._filled = len(arrived) - position
        self._beginning[: self._filled] = arrived[position:]

    def _answer(self, incoming: IncomingResponse) -> None:
        response = self.exchange.decode(incoming.whole())
        self._traffic.responses += 1
        waiting = self._waiting.popleft()
        if not waiting.done():
            waiting.set_result(response)
        self._note_answered()
