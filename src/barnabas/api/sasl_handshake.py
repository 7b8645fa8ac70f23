"""SaslHandshake (key 17), versions 0-1. Control plane.

- Listeners without SASL answer ILLEGAL_SASL_STATE, as Kafka does where no authentication is under way.

v1 says that SaslAuthenticate follows (KIP-152). Never flexible.
"""

from __future__ import annotations

from barnabas.api.context import RequestContext
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import SaslHandshakeRequest, SaslHandshakeResponse

__all__ = ["handle"]


def handle(context: RequestContext, request: SaslHandshakeRequest) -> SaslHandshakeResponse:
    return SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE)
