"""One blocking connection to one broker.

The frames are those of `exchange`. `send` only writes and `receive` reads the next response, so several requests may be under way;
`request` does both. Each response has a buffer of its own, which grows with its bytes, and the `records` of a Fetch response are
memoryviews of that buffer: they stay valid as long as they are referenced.

Invariants:

- Requests are answered in order; a correlation id out of order ends the connection.
- After any failure the connection is closed, and every later call raises ConnectionLost.

Limits: plain sockets, one thread at a time.
Source: Kafka protocol guide.
"""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Callable
from typing import Any

from barnabas.client.bootstrap import format_address
from barnabas.client.closeable import Closeable
from barnabas.client.errors import ClientError, ConnectionLost, RequestTimedOut, cannot_connect
from barnabas.client.exchange import NEWEST_API_VERSIONS, SIZE_BYTES, Exchange
from barnabas.client.incoming_response import IncomingResponse
from barnabas.protocol import messages
from barnabas.protocol.errors import MalformedMessage
from barnabas.protocol.message import Message

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

    Raises:
        BrokerNotAvailable: nothing listens there, or the name does not resolve.
        RequestTimedOut: the broker does not answer the first request.
        KafkaError: UNSUPPORTED_VERSION, if no version of ApiVersions is common.
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
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.host = host
        self.port = port
        self.client_id = client_id
        self.timeout_ms = timeout_ms
        self._clock = clock
        self._exchange = Exchange(self.address, client_id)
        self._socket: socket.socket | None = self._connect()
        if negotiate:
            try:
                self._negotiate(first_answer_ms)
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
        """The number of requests without a response."""
        return self._exchange.unanswered

    @property
    def versions(self) -> dict[int, tuple[int, int]]:
        """Lowest and highest version the broker advertises, by API key."""
        return self._exchange.versions

    def fileno(self) -> int:
        """Return the socket's descriptor, for `selectors`; -1 once closed."""
        return -1 if self._socket is None else self._socket.fileno()

    def close(self) -> None:
        """Close the socket; what is unanswered stays so."""
        self._exchange.reset()
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
        return connected

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
        failure: ClientError
        if isinstance(error, TimeoutError):
            failure = RequestTimedOut(f"{self.address} did not answer in time")
        else:
            reason = (error.strerror or str(error)).lower()
            failure = ConnectionLost(f"lost the connection to {self.address} while {doing}: {reason}")
        raise failure from None
