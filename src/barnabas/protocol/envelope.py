"""The Envelope: a client's request on its way from a broker to the active controller, and the response on its way back (KIP-590).

    EnvelopeRequest    request header | request body,   principal,   4 or 16 bytes of the client's address
    EnvelopeResponse   response header | response body, or an error code of the envelope itself

The inner request keeps its version, client id and correlation id: the controller answers as if the client had dialled it.

Source: Kafka's `EnvelopeRequest`, `ForwardingManager.buildEnvelopeRequest`, `RequestContext.buildResponseEnvelopePayload`.
"""

from __future__ import annotations

import ipaddress
import struct
from typing import Any

from barnabas.protocol.api_keys import api, request_header_version, response_header_version
from barnabas.protocol.errors import ErrorCode, KafkaError, MalformedMessage
from barnabas.protocol.framing import HEADER
from barnabas.protocol.message import Message
from barnabas.protocol.messages import EnvelopeRequest
from barnabas.protocol.primitives import skip_tags
from barnabas.protocol.principal import write_principal
from barnabas.security.principal import Principal

__all__ = ["read_address", "unwrapped", "wrapped"]

_CORRELATION_ID = struct.Struct(">i")
_UNKNOWN_ADDRESS = bytes(4)


def wrapped(
    request: Message, version: int, *, correlation_id: int, client_id: str | None, principal: Principal, host: str
) -> EnvelopeRequest:
    """Return the envelope of a client's request.

    Args:
        host: the client's IP address; one that is not an IP address travels as 0.0.0.0.
    """
    assert request.API_KEY is not None, request.NAME
    name = None if client_id is None else client_id.encode()
    out = bytearray(HEADER.pack(request.API_KEY, version, correlation_id, -1 if name is None else len(name)))
    out += name or b""
    if request_header_version(request.API_KEY, version) >= 2:
        out.append(0)
    request.write(out, version)
    return EnvelopeRequest(
        request_data=bytes(out), request_principal=write_principal(principal), client_host_address=_address(host)
    )


def unwrapped(data: bytes | memoryview | None, api_key: int, version: int, correlation_id: int) -> Any:
    """Return the response in an envelope.

    Raises:
        MalformedMessage: the bytes are not the response to this request.
    """
    view = memoryview(data or b"")
    if len(view) < _CORRELATION_ID.size or _CORRELATION_ID.unpack_from(view)[0] != correlation_id:
        raise MalformedMessage("the envelope does not hold the response to its request")
    position = _CORRELATION_ID.size
    if response_header_version(api_key, version) >= 1:
        position = skip_tags(view, position, len(view))
    return api(api_key).response_class.decode(view[position:], version)


def _address(host: str) -> bytes:
    """Return the bytes of an IP address, without the zone of an IPv6 address."""
    try:
        return ipaddress.ip_address(host.partition("%")[0]).packed
    except ValueError:
        return _UNKNOWN_ADDRESS


def read_address(data: bytes | memoryview) -> str:
    """Return the client's address.

    Raises:
        KafkaError: INVALID_REQUEST, it is neither 4 nor 16 bytes long.
    """
    try:
        return str(ipaddress.ip_address(bytes(data)))
    except ValueError:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Failed to parse client address from envelope") from None
