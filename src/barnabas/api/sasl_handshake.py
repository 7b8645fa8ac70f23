"""SaslHandshake (API key 17, versions 0-1): rejected, because no listener has SASL.

- ILLEGAL_SASL_STATE, as in Kafka where no authentication is under way.

Version 1 announces SaslAuthenticate (KIP-152). Never flexible.
"""

from __future__ import annotations

from barnabas.api.serving.context import AnyContext
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import SaslHandshakeRequest, SaslHandshakeResponse


async def handle(context: AnyContext, request: SaslHandshakeRequest) -> SaslHandshakeResponse:
    return SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE)
