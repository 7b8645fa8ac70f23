"""SaslAuthenticate (API key 36, versions 0-2): rejected, because no listener has SASL.

- ILLEGAL_SASL_STATE, in Kafka's words.

Version 1 adds the session lifetime (KIP-368), 2 is flexible.
"""

from __future__ import annotations

from barnabas.api.serving.context import AnyContext
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import SaslAuthenticateRequest, SaslAuthenticateResponse


async def handle(context: AnyContext, request: SaslAuthenticateRequest) -> SaslAuthenticateResponse:
    return SaslAuthenticateResponse(
        error_code=ErrorCode.ILLEGAL_SASL_STATE,
        error_message="SaslAuthenticate request received after successful authentication",
    )
