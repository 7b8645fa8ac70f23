"""RenewDelegationToken (API key 39, versions 1-2): let a token expire later.

- `metadata.delegation_token_control` has the rules.
- Whose connection may not ask for tokens gets DELEGATION_TOKEN_REQUEST_NOT_ALLOWED (`serving.token_requests`).

Version 2 is flexible (KIP-48).
"""

from __future__ import annotations

from barnabas.api.serving.context import AnyContext
from barnabas.api.serving.token_requests import forward_time
from barnabas.protocol.messages import RenewDelegationTokenRequest, RenewDelegationTokenResponse


async def handle(context: AnyContext, request: RenewDelegationTokenRequest) -> RenewDelegationTokenResponse:
    return await forward_time(context, request, RenewDelegationTokenResponse)
