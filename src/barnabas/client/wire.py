"""One blocking connection to one broker.

    int32 size | request header | body        ->
    int32 size | response header | body       <-      answers come in the order of the requests

The first exchange is ApiVersions; from then on every request is encoded in the highest version that both sides know. `send` only
writes and `receive` reads the next response, so several requests may be under way; `request` does both. Each response has a buffer
of its own, and the `records` of a Fetch response are memoryviews of that buffer: nothing is copied, and they stay valid as long as
they are referenced.

Invariants:

- Requests are answered in order; a correlation id out of order ends the connection.
- After any failure the connection is closed, and every later call raises ConnectionLost.

Limits: plain sockets, one thread at a time.
Sources: Kafka protocol guide; KIP-35, KIP-511 (ApiVersions and its downgrade), KIP-482 (header versions).
"""

from __future__ import annotations

import contextlib
import socket
import struct
import time
from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple

from barnabas.client.closeable import Closeable
from barnabas.client.errors import BrokerNotAvailable, ClientError, ConnectionLost, RequestTimedOut
from barnabas.protocol import messages
from barnabas.protocol.api_keys import ApiKey, request_header_version, response_header_version
from barnabas.protocol.errors import ErrorCode, KafkaError, MalformedMessage
from barnabas.protocol.message import Message
from barnabas.protocol.primitives import skip_tags

DEFAULT_CLIENT_ID = "barnabas"
SOFTWARE_VERSION = "0.1.0.dev0"
"""Sent to brokers (KIP-511). Looking up the package's version is slow; a test compares the two."""
MAX_RESPONSE_BYTES = 1 << 30
"""The peer of a longer response is broken, or does not speak Kafka."""
_SEND_BUFFER_BYTES = 1 << 18
_NOT_KAFKA = "is this a Kafka listener, and one without TLS?"

_size = struct.Struct(">i")
_request_start = struct.Struct(">hhi")


class _Expected(NamedTuple):
    correlation_id: int
    api_key: int
    version: int
    response_class: type[Message]


def _api_key(message: type[Message] | Message) -> int:
    assert message.API_KEY is not None, message.NAME
    return message.API_KEY


def _response_class(request: Message) -> type[Message]:
    name: str = type(request).__name__
    assert name.endswith("Request"), name
    return messages.message_class(name.removesuffix("Request") + "Response")


class BlockingConnection(Closeable):
    """A connection in the versions that its broker speaks.

    Args:
        host: name or address.
        port: TCP port.
        client_id: shown in the broker's logs and metrics.
        timeout_ms: for connecting, and for each response without a timeout of its own.
        negotiate: exchange ApiVersions at once; if False, every call needs a `version`.

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
        negotiate: bool = True,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.host = host
        self.port = port
        self.client_id = client_id
        self.timeout_ms = timeout_ms
        self.versions: dict[int, tuple[int, int]] = {}
        """Lowest and highest version the broker advertises, by API key."""
        self._clock = clock
        self._correlation_id = 0
        self._expected: deque[_Expected] = deque()
        encoded = client_id.encode()
        self._client_id = struct.pack(">h", len(encoded)) + encoded
        self._socket: socket.socket | None = self._connect()
        if negotiate:
            try:
                self._negotiate()
            except BaseException:
                self.close()
                raise

    def __repr__(self) -> str:
        state = "closed" if self._socket is None else f"{len(self._expected)} unanswered"
        return f"<BlockingConnection {self.address} {state}>"

    @property
    def address(self) -> str:
        """`host:port`, with brackets around an IPv6 address."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def closed(self) -> bool:
        return self._socket is None

    @property
    def unanswered(self) -> int:
        """The number of requests without a response."""
        return len(self._expected)

    def fileno(self) -> int:
        """Return the socket's descriptor, for `selectors`; -1 once closed."""
        return -1 if self._socket is None else self._socket.fileno()

    def close(self) -> None:
        """Close the socket; what is unanswered stays so."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    # Versions
    def supports(self, api_key: int, version: int = 0) -> bool:
        """Return whether the broker serves this version, or a higher one, of an API."""
        return api_key in self.versions and self.versions[api_key][1] >= version

    def version_for(self, message_class: type[Message] | Message, highest: int | None = None) -> int:
        """Return the highest version of a request that both sides know.

        Args:
            message_class: the request's class, or the request.
            highest: do not go above this one (topic ids, for instance, need other fields).

        Raises:
            KafkaError: UNSUPPORTED_VERSION, naming both ranges.
        """
        api_key = _api_key(message_class)
        lowest = message_class.MIN_VERSION
        highest = message_class.MAX_VERSION if highest is None else min(highest, message_class.MAX_VERSION)
        try:
            theirs = self.versions[api_key]
        except KeyError:
            what = f"{self.address} does not serve {ApiKey(api_key).name}"
            if ApiKey.METADATA not in self.versions:
                what += ": it is not a broker's listener, perhaps a controller's"
            raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, what) from None
        version = min(highest, theirs[1])
        if version < max(lowest, theirs[0]):
            raise KafkaError(
                ErrorCode.UNSUPPORTED_VERSION,
                f"no common version of {ApiKey(api_key).name}: the broker {self.address} serves"
                f" {theirs[0]}-{theirs[1]}, we speak {lowest}-{highest}",
            )
        return version

    def _negotiate(self) -> None:
        """Ask for the broker's versions. An older broker answers in version 0 with UNSUPPORTED_VERSION and its own range of
        ApiVersions (KIP-511); some services close the connection instead, so the second attempt is in version 0."""
        version = min(4, messages.ApiVersionsRequest.MAX_VERSION)
        try:
            response = self._ask_versions(version)
        except ConnectionLost:
            self._socket = self._connect()
            self._expected.clear()
            response = self._ask_versions(0)
        if response.error_code == ErrorCode.UNSUPPORTED_VERSION:
            theirs = {api.api_key: api.max_version for api in response.api_keys}
            response = self._ask_versions(min(version, theirs.get(ApiKey.API_VERSIONS, 0)))
        if response.error_code:
            raise KafkaError(response.error_code, f"the broker {self.address} refused ApiVersions")
        self.versions = {api.api_key: (api.min_version, api.max_version) for api in response.api_keys}

    def _ask_versions(self, version: int) -> messages.ApiVersionsResponse:
        request = messages.ApiVersionsRequest()
        if version >= 3:
            request.client_software_name = "barnabas"
            request.client_software_version = SOFTWARE_VERSION
        response: messages.ApiVersionsResponse = self.request(request, version=version)
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
        assert not self._expected, "pipelined requests must be received before request() is used"
        self.send(message, version=version, highest=highest)
        return self.receive(timeout_ms=timeout_ms)

    def send(self, message: Message, version: int | None = None, *, highest: int | None = None) -> int:
        """Write a request and do not wait.

        Returns:
            The version it was encoded in.
        """
        if version is None:
            version = self.version_for(message, highest)
        self.send_without_response(message, version)
        self._expected.append(_Expected(self._correlation_id, _api_key(message), version, _response_class(message)))
        return version

    def send_without_response(self, message: Message, version: int | None = None) -> None:
        """Write a request that brokers do not answer: Produce with acks 0."""
        if version is None:
            version = self.version_for(message)
        self._correlation_id = (self._correlation_id + 1) & 0x7FFFFFFF
        out = bytearray(_size.size)
        out += _request_start.pack(_api_key(message), version, self._correlation_id)
        out += self._client_id
        if request_header_version(_api_key(message), version) >= 2:
            out.append(0)
        message.write(out, version)
        _size.pack_into(out, 0, len(out) - _size.size)
        connected = self._open_socket()
        try:
            connected.settimeout(self.timeout_ms / 1000)
            connected.sendall(out)
        except OSError as error:
            self._fail(error, "sending")

    def receive(self, *, timeout_ms: int | None = None) -> Any:
        """Wait for the response to the oldest unanswered request and return it.

        Raises:
            ConnectionLost, RequestTimedOut, MalformedMessage: the connection is closed then.
        """
        expected = self._expected.popleft()
        frame = self._receive_frame(self._clock() + (self.timeout_ms if timeout_ms is None else timeout_ms) / 1000)
        try:
            return self._decode(frame, expected)
        except MalformedMessage as error:
            self.close()
            name = ApiKey(expected.api_key).name
            raise MalformedMessage(
                f"the broker {self.address} answered {name} v{expected.version} with bytes we cannot read: {error.message}"
            ) from error

    def _decode(self, frame: memoryview, expected: _Expected) -> Message:
        end = len(frame)
        if end < 4:
            raise MalformedMessage("the answer is too short for a header")
        (correlation_id,) = _size.unpack_from(frame)
        if correlation_id != expected.correlation_id:
            raise MalformedMessage(f"correlation id {correlation_id} instead of {expected.correlation_id}")
        pos, version = 4, expected.version
        if response_header_version(expected.api_key, version) >= 1:
            pos = skip_tags(frame, pos, end)
        if expected.api_key == ApiKey.API_VERSIONS and bytes(frame[pos : pos + 2]) == b"\x00\x23":
            version = 0  # UNSUPPORTED_VERSION: the one response in another version than the request
        return expected.response_class.decode(frame[pos:], version)

    # Bytes
    def _connect(self) -> socket.socket:
        try:
            connected = socket.create_connection((self.host, self.port), timeout=self.timeout_ms / 1000)
        except TimeoutError:
            raise BrokerNotAvailable(
                f"cannot reach {self.address}: no answer within {self.timeout_ms} ms: a firewall, or the wrong host?"
            ) from None
        except socket.gaierror:
            raise BrokerNotAvailable(f"cannot reach {self.address}: the host name does not resolve") from None
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            raise BrokerNotAvailable(f"cannot reach {self.address}: {reason}") from None
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with contextlib.suppress(OSError):
            connected.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BUFFER_BYTES)
        return connected

    def _open_socket(self) -> socket.socket:
        if self._socket is None:
            raise ConnectionLost(f"the connection to {self.address} is closed")
        return self._socket

    def _receive_frame(self, deadline: float) -> memoryview:
        header = bytearray(_size.size)
        self._receive_into(memoryview(header), deadline)
        (size,) = _size.unpack(header)
        if not 0 <= size <= MAX_RESPONSE_BYTES:
            self.close()
            raise MalformedMessage(f"{self.address} announces a response of {size} bytes: {_NOT_KAFKA}")
        frame = memoryview(bytearray(size))
        self._receive_into(frame, deadline)
        return frame

    def _receive_into(self, view: memoryview, deadline: float) -> None:
        connected = self._open_socket()
        pos, end = 0, len(view)
        try:
            while pos < end:
                remaining = deadline - self._clock()
                if remaining <= 0:
                    raise TimeoutError
                connected.settimeout(remaining)
                count = connected.recv_into(view[pos:])
                if not count:
                    raise ConnectionResetError("the broker closed it")
                pos += count
        except OSError as error:
            self._fail(error, "waiting for the answer")

    def _fail(self, error: OSError, doing: str) -> None:
        self.close()
        failure: ClientError
        if isinstance(error, TimeoutError):
            failure = RequestTimedOut(f"{self.address} did not answer in time")
        else:
            reason = (error.strerror or str(error)).lower()
            failure = ConnectionLost(f"lost the connection to {self.address} while {doing}: {reason}")
        raise failure from None
