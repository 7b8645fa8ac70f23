"""The bytes of requests and responses on one connection, apart from how they travel.

    int32 size | request header | body        ->
    int32 size | response header | body       <-      responses come in the order of the requests

`BlockingConnection` sends them through a blocking socket, `Channel` through an event loop. The first exchange is ApiVersions
(`versions_request`, `learn`); from then on every request is encoded in the highest version that both sides know.

Invariant: a response is decoded for the oldest request that waits for one; another correlation id is a MalformedMessage.

Sources: Kafka protocol guide; KIP-35, KIP-511 (ApiVersions and its downgrade), KIP-482 (header versions).
"""

from __future__ import annotations

import struct
from collections import deque
from typing import NamedTuple

from barnabas.protocol import messages
from barnabas.protocol.api_keys import ApiKey, request_header_version, response_header_version
from barnabas.protocol.errors import ErrorCode, KafkaError, MalformedMessage
from barnabas.protocol.message import Message
from barnabas.protocol.primitives import skip_tags
from barnabas.version import VERSION

SIZE_BYTES = 4
MAX_RESPONSE_BYTES = 1 << 30
"""The peer of a longer response is broken, or does not speak Kafka."""

NEWEST_API_VERSIONS = 4
"""The version of ApiVersions that a broker is asked in first."""
_NOT_KAFKA = "is this a Kafka listener, and one without TLS?"

_size = struct.Struct(">i")
_request_start = struct.Struct(">hhi")


class _Expected(NamedTuple):
    correlation_id: int
    api_key: int
    version: int
    response_class: type[Message]


class Exchange:
    """The requests without a response of one connection, and the versions that its broker serves.

    Args:
        address: `host:port`, for messages.
        client_id: shown in the broker's logs and metrics.

    Attributes:
        versions: lowest and highest version the broker advertises, by API key.
    """

    def __init__(self, address: str, client_id: str) -> None:
        self.address = address
        self.versions: dict[int, tuple[int, int]] = {}
        self._correlation_id = 0
        self._expected: deque[_Expected] = deque()
        encoded = client_id.encode()
        self._client_id = struct.pack(">h", len(encoded)) + encoded

    def __repr__(self) -> str:
        return f"<Exchange {self.address} unanswered={self.unanswered}>"

    @property
    def unanswered(self) -> int:
        """The number of requests without a response."""
        return len(self._expected)

    def reset(self) -> None:
        """Forget the requests without a response: their connection is gone."""
        self._expected.clear()

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

    @staticmethod
    def versions_request(version: int = NEWEST_API_VERSIONS) -> messages.ApiVersionsRequest:
        """Return the request that asks for the broker's versions."""
        request = messages.ApiVersionsRequest()
        if version >= 3:
            request.client_software_name = "barnabas"
            request.client_software_version = VERSION
        return request

    def learn(self, response: messages.ApiVersionsResponse) -> int | None:
        """Take the broker's versions from its response.

        Returns:
            None, or the version of ApiVersions to ask again in: an older broker answers in version 0 with UNSUPPORTED_VERSION and
            its own range (KIP-511).

        Raises:
            KafkaError: the broker refuses the request.
        """
        if response.error_code == ErrorCode.UNSUPPORTED_VERSION:
            theirs = {api.api_key: api.max_version for api in response.api_keys}
            return min(NEWEST_API_VERSIONS, theirs.get(ApiKey.API_VERSIONS, 0))
        if response.error_code:
            raise KafkaError(response.error_code, f"the broker {self.address} refused ApiVersions")
        self.versions = {api.api_key: (api.min_version, api.max_version) for api in response.api_keys}
        return None

    # Bytes

    def encode(self, message: Message, version: int) -> bytearray:
        """Return the frame of a request, with its size in front; the next response that is not yet expected is its response."""
        api_key = _api_key(message)
        self._correlation_id = (self._correlation_id + 1) & 0x7FFFFFFF
        out = bytearray(_size.size)
        out += _request_start.pack(api_key, version, self._correlation_id)
        out += self._client_id
        if request_header_version(api_key, version) >= 2:
            out.append(0)
        message.write(out, version)
        _size.pack_into(out, 0, len(out) - _size.size)
        self._expected.append(_Expected(self._correlation_id, api_key, version, _response_class(message)))
        return out

    def size_of(self, header: bytes | bytearray | memoryview) -> int:
        """Return the size of the response that these four bytes announce.

        Raises:
            MalformedMessage: no broker sends a response of this size.
        """
        size: int = _size.unpack(header)[0]
        if not 0 <= size <= MAX_RESPONSE_BYTES:
            raise MalformedMessage(f"{self.address} announces a response of {size} bytes: {_NOT_KAFKA}")
        return size

    def decode(self, frame: memoryview) -> Message:
        """Return the response to the oldest request without one; `records` in it are memoryviews of the frame.

        Args:
            frame: the response without its size.

        Raises:
            MalformedMessage: the bytes are not this response; the connection cannot continue.
        """
        if not self._expected:
            raise MalformedMessage(f"the broker {self.address} answered a request that was not sent")
        expected = self._expected.popleft()
        try:
            return _decode(frame, expected)
        except MalformedMessage as error:
            name = ApiKey(expected.api_key).name
            raise MalformedMessage(
                f"the broker {self.address} answered {name} v{expected.version} with bytes we cannot read: {error.message}"
            ) from error


def _decode(frame: memoryview, expected: _Expected) -> Message:
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


def _api_key(message: type[Message] | Message) -> int:
    assert message.API_KEY is not None, message.NAME
    return message.API_KEY


def _response_class(request: Message) -> type[Message]:
    name: str = type(request).__name__
    assert name.endswith("Request"), name
    return messages.message_class(name.removesuffix("Request") + "Response")
