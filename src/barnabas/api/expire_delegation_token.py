"""ExpireDelegationToken (API key 40, versions 1-2): let a token expire at another time, or remove it.

- `metadata.delegation_token_control` has the rules.
- Whose connection may not ask for tokens gets DELEGATION_TOKEN_REQUEST_NOT_ALLOWED (`serving.token_requests`).
- Connections that have logged in with the token stay until their login ends, as in Kafka.

Version 2 is flexible (KIP-48).
"""

from __future__ import annotations

from barnabas.api.serving.context import AnyContext
from barnabas.api.serving.token_requests import forward_time
from barnabas.protocol.messages import ExpireDelegationTokenRequest, ExpireDelegationTokenResponse


async def handle(context: AnyContext, request: ExpireDelegationTokenRequest) -> ExpireDelegationTokenResponse:
    return await forward_time(context, request, ExpireDelegationTokenResponse)
