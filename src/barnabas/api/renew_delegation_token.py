"""RenewDelegationToken (API key 39, versions 1-2): let a token expire later.

- `metadata.delegation_token_control` has the rules.
- Whose connection may not ask for tokens gets DELEGATION_TOKEN_REQUEST_NOT_ALLOWED (`serving.token_requests`).

Version 2 is flexible (KIP-48).
"""

from __future__ import annotations

from barnabas.api.serving.context import AnyContext
from barnabas.api.serving.forwarding import forward
from barnabas.api.serving.token_requests import NO_TIME, has_many_tokens, may_ask_for_tokens
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import RenewDelegationTokenRequest, RenewDelegationTokenResponse


async def handle(context: AnyContext, request: RenewDelegationTokenRequest) -> RenewDelegationTokenResponse:
    if not may_ask_for_tokens(context.connection):
        code = ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
        return RenewDelegationTokenResponse(error_code=code, expiry_timestamp_ms=NO_TIME)
    context.is_long = context.is_long or has_many_tokens(context.services.image())
    response: RenewDelegationTokenResponse = await forward(context, request)
    return response
