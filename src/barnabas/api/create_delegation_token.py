"""CreateDelegationToken (API key 38, versions 1-3): make a token that its owner, or who has it, logs in with.

- `metadata.delegation_token_control` has the rules.
- Whose connection may not ask for tokens gets DELEGATION_TOKEN_REQUEST_NOT_ALLOWED (`serving.token_requests`).
- A token for somebody else needs CREATE_TOKENS on that user: DELEGATION_TOKEN_AUTHORIZATION_FAILED. As in Kafka, the broker asks first,
  and then the active controller.
- A broker rejects renewers that are not Users (INVALID_PRINCIPAL_TYPE) before the controller learns of the request, which would first say
  that there are no tokens.

Version 2 is flexible, 3 adds the owner (KIP-373).
"""

from __future__ import annotations

from barnabas.api.authorization.tokens import may_create_for
from barnabas.api.serving.context import AnyContext
from barnabas.api.serving.forwarding import forward
from barnabas.api.serving.token_requests import may_ask_for_tokens, no_token
from barnabas.metadata.delegation_token_control import owner_of
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import CreateDelegationTokenRequest, CreateDelegationTokenResponse
from barnabas.security.principal import USER


async def handle(context: AnyContext, request: CreateDelegationTokenRequest) -> CreateDelegationTokenResponse:
    requester = context.connection.principal
    code = _objection(context, request)
    if code is not None:
        return no_token(context.version, code, owner_of(request, requester), requester)
    response: CreateDelegationTokenResponse = await forward(context, request)
    return response


def _objection(context: AnyContext, request: CreateDelegationTokenRequest) -> ErrorCode | None:
    """Return why this node does not pass the request on."""
    if not may_ask_for_tokens(context.connection):
        return ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
    if context.services.listener_kind != "broker":
        return None
    asker = context.asker
    if asker is not None and not may_create_for(asker, request):
        return ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED
    if any(renewer.principal_type != USER for renewer in request.renewers):
        return ErrorCode.INVALID_PRINCIPAL_TYPE
    return None
