"""One blocking connection to one broker.

The frames are those of `exchange`. `send` only writes and `receive` reads the next response, so several requests may be under way;
`request` does both. Each response has a buffer of its own, which grows with its bytes, and the `records` of a Fetch response are
memoryviews of that buffer: they stay valid as long as they are referenced.

Invariants:

- Requests are answered in order; a correlation id out of order ends the connection.
- After any failure the connection is closed, and every later call raises ConnectionLost.
- A login is renewed before the session ends, while no request is under way: `send` first receives what is unanswered, and keeps it for
  `receive`.

Limits: one thread at a time.
Sources: Kafka protocol guide; KIP-368 (renewed logins).
"""

from __future__ import annotations

import contextlib
import socket
import time
from collections import deque
from collections.abc import Callable
from typing import Any

from barnabas.client.bootstrap import format_address
from barnabas.client.closeable import Closeable
from barnabas.client.errors import ConnectionLost, RequestTimedOut, cannot_connect
from barnabas.client.exchange import NEWEST_API_VERSIONS, SIZE_BYTES, Exchange
from barnabas.client.incoming_response import IncomingResponse
from barnabas.client.login import login, login_version, renewed_after_s
from barnabas.client.tls_failures import is_tls_failure, tls_failure
from barnabas.protocol import messages
from barnabas.protocol.errors import KafkaError, MalformedMessage
from barnabas.protocol.message import Message
from barnabas.security.client_security import ClientSecurity

DEFAULT_CLIENT_ID = "barnabas"
_SEND_BUFFER_BYTES = 1 << 18


class BlockingConnection(Closeable):
    """A connection in the versions that its broker speaks.

    Args:
        host: name or address.
        port: TCP port.
        client_id: shown in the broker's logs and metrics.
        timeout_ms: for connecting, and for each response without a timeout of its own.
        first_answer_ms: for the response to the first request; None for `timeout_ms`.
        negotiate: exchange ApiVersions in the beginning; if False, every call needs a `version`.
        security: TLS and the login; None for a plain connection.

    Raises:
        BrokerNotAvailable: nothing listens there, or the name does not resolve.
        RequestTimedOut: the broker does not answer the first request.
        OtherSecurity: no TLS, or no login, with these security settings at this listener.
        KafkaError: UNSUPPORTED_VERSION, if no version of ApiVersions is common; SASL_AUTHENTICATION_FAILED,
            UNSUPPORTED_SASL_MECHANISM: the broker rejects the login.
    """

    def __init__(
        self,
        host: str,
        port: int,
        *,
        client_id: str = DEFAULT_CLIENT_ID,
        timeout_ms: int = 30_000,
        first_answer_ms: int | None = None,
        negotiate: bool = True,
        security: ClientSecurity | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.host = host
        self.port = port
        self.client_id = client_id
        self.timeout_ms = timeout_ms
        self.security = security
        self._clock = clock
        self._exchange = Exchange(self.address, client_id)
        # Responses that a renewed login has received before their caller did.
        self._kept: deque[Message] = deque()
        self.renews_login_at: float | None = None
        self._socket: socket.socket | None = self._connect()
        try:
            if negotiate:
                self._negotiate(first_answer_ms)
            self._log_in()
        except BaseException:
            self.close()
            raise

    def __repr__(self) -> str:
        state = "closed" if self._socket is None else f"{self.unanswered} unanswered"
        return f"<BlockingConnection {self.address} {state}>"

    @property
    def address(self) -> str:
        """`host:port`, with brackets around an IPv6 address."""
        return format_address(self.host, self.port)

    @property
    def closed(self) -> bool:
        return self._socket is None

    @property
    def unanswered(self) -> int:
        """The number of requests whose response `receive` has not returned."""
        return self._exchange.unanswered + len(self._kept)

    @property
    def versions(self) -> dict[int, tuple[int, int]]:
        """Lowest and highest version the broker advertises, by API key."""
        return self._exchange.versions

    def fileno(self) -> int:
        """Return the socket's descriptor, for `selectors`; -1 once closed.

        With TLS a response may be here already, and the socket silent.
        """
        return -1 if self._socket is None else self._socket.fileno()

    def close(self) -> None:
        """Close the socket; what is unanswered stays so."""
        self._exchange.reset()
        self._kept.clear()
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    # Versions

    def supports(self, api_key: int, version: int = 0) -> bool:
        """Return whether the broker serves this version, or a higher one, of an API."""
        return self._exchange.supports(api_key, version)

    def version_for(self, message_class: type[Message] | Message, highest: int | None = None) -> int:
        """Return the highest version of a request that both sides know; see `Exchange.version_for`."""
        return self._exchange.version_for(message_class, highest)

    def _negotiate(self, first_answer_ms: int | None) -> None:
        """Ask for the broker's versions; some services close the connection instead, so the second attempt is in version 0."""
        try:
            response = self._ask_versions(NEWEST_API_VERSIONS, first_answer_ms)
        except ConnectionLost:
            self._socket = self._connect()
            response = self._ask_versions(0, first_answer_ms)
        version = self._exchange.learn(response)
        if version is not None:
            self._exchange.learn(self._ask_versions(version))

    def _ask_versions(self, version: int, timeout_ms: int | None = None) -> messages.ApiVersionsResponse:
        request = self._exchange.versions_request(version)
        response: messages.ApiVersionsResponse = self.request(request, version=version, timeout_ms=timeout_ms)
        return response

    # Login

    def _log_in(self) -> None:
        """Log in, if the security settings ask for it; note when to do so again."""
        if self.security is None or self.security.mechanism is None:
            return
        self.renews_login_at = None
        steps = login(self._exchange, self.security, self.host)
        try:
            request = next(steps)
            while True:
                request = steps.send(self.request(request, version=login_version(self._exchange, request)))
        except StopIteration as finished:
            seconds = renewed_after_s(finished.value)
            self.renews_login_at = None if seconds is None else self._clock() + seconds

    def _renew_login(self) -> None:
        """Log in again; a broker accepts that only while it owes no response."""
        kept: deque[Message] = deque()
        while self.unanswered:
            kept.append(self.receive())
        try:
            self._log_in()
        except BaseException:
            self.close()
            raise
        self._kept = kept

    # Requests
    def request(
        self, message: Message, *, version: int | None = None, highest: int | None = None, timeout_ms: int | None = None
    ) -> Any:
        """Send a request and return its response; the caller checks the error codes in it.

        Args:
            message: any `…Request` of `messages`.
            version: exactly this version; None negotiates.
            highest: the highest version to negotiate.
            timeout_ms: for this response; None for the connection's.

        Returns:
            The `…Response`, decoded in the version that was sent.

        Raises:
            ConnectionLost, RequestTimedOut: the connection is closed then.
            KafkaError: UNSUPPORTED_VERSION before anything was sent.
        """
        assert not self.unanswered, "pipelined requests must be received before request() is used"
        self.send(message, version=version, highest=highest)
        return self.receive(timeout_ms=timeout_ms)

    def send(self, message: Message, version: int | None = None, *, highest: int | None = None) -> int:
        """Write a request and do not wait.

        Returns:
            The version it was encoded in.
        """
        if version is None:
            version = self.version_for(message, highest)
        if self.renews_login_at is not None and self._clock() >= self.renews_login_at:
            self._renew_login()
        self._write(self._exchange.encode(message, version))
        return version

    def _write(self, frame: bytearray) -> None:
        connected = self._open_socket()
        try:
            connected.settimeout(self.timeout_ms / 1000)
            connected.sendall(frame)
        except OSError as error:
            self._fail(error, "sending")

    def receive(self, *, timeout_ms: int | None = None) -> Any:
        """Wait for the response to the oldest unanswered request and return it.

        Raises:
            ConnectionLost, RequestTimedOut, MalformedMessage: the connection is closed then.
        """
        if self._kept:
            return self._kept.popleft()
        frame = self._receive_frame(self._clock() + (self.timeout_ms if timeout_ms is None else timeout_ms) / 1000)
        try:
            return self._exchange.decode(frame)
        except MalformedMessage:
            self.close()
            raise

    # Bytes
    def _connect(self) -> socket.socket:
        try:
            connected = socket.create_connection((self.host, self.port), timeout=self.timeout_ms / 1000)
        except OSError as error:
            raise cannot_connect(self.address, error, self.timeout_ms) from None
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with contextlib.suppress(OSError):
            connected.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BUFFER_BYTES)
        if self.security is None or self.security.context is None:
            return connected
        try:
            return self.security.context.wrap_socket(connected, server_hostname=self.host)
        except OSError as error:
            connected.close()
            raise tls_failure(self.address, error, self.timeout_ms) from None

    def _open_socket(self) -> socket.socket:
        if self._socket is None:
            raise ConnectionLost(f"the connection to {self.address} is closed")
        return self._socket

    def _receive_frame(self, deadline: float) -> memoryview:
        header = self._receive_whole(IncomingResponse(SIZE_BYTES), deadline)
        try:
            size = self._exchange.size_of(header)
        except MalformedMessage:
            self.close()
            raise
        return self._receive_whole(IncomingResponse(size), deadline)

    def _receive_whole(self, incoming: IncomingResponse, deadline: float) -> memoryview:
        connected = self._open_socket()
        try:
            while not incoming.is_whole:
                remaining = deadline - self._clock()
                if remaining <= 0:
                    raise TimeoutError
                connected.settimeout(remaining)
                count = connected.recv_into(incoming.room())
                if not count:
                    raise ConnectionResetError("the broker closed it")
                incoming.received(count)
        except OSError as error:
            self._fail(error, "waiting for the answer")
        return incoming.whole()

    def _fail(self, error: OSError, doing: str) -> None:
        self.close()
        failure: KafkaError
        if is_tls_failure(error):
            failure = tls_failure(self.address, error, self.timeout_ms)
        elif isinstance(error, TimeoutError):
            failure = RequestTimedOut(f"{self.address} did not answer in time")
        else:
            reason = (error.strerror or str(error)).lower()
            failure = ConnectionLost(f"lost the connection to {self.address} while {doing}: {reason}")
        raise failure from None
