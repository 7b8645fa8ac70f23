"""SaslAuthenticate (key 36), versions 0-2. Control plane.

- Listeners without SASL answer ILLEGAL_SASL_STATE, in Kafka's words.

v1 session lifetime (KIP-368); v2 flexible.
"""

from __future__ import annotations

from barnabas.api.context import RequestContext
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import SaslAuthenticateRequest, SaslAuthenticateResponse

__all__ = ["handle"]


def handle(context: RequestContext, request: SaslAuthenticateRequest) -> SaslAuthenticateResponse:
    return SaslAuthenticateResponse(
        error_code=ErrorCode.ILLEGAL_SASL_STATE,
        error_message="SaslAuthenticate request received after successful authentication",
    )
