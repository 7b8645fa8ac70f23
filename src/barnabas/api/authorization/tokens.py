"""The check of CreateDelegationToken by the active controller: a token for somebody else needs a right to that user.

The other requests about tokens ask for nothing here: the token itself says who may renew and expire it.

Source: Kafka's `ControllerApis.handleCreateDelegationTokenRequest`; KIP-373.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from barnabas.api.serving.token_requests import no_token
from barnabas.metadata.delegation_token_control import owner_of
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import CreateDelegationTokenRequest, CreateDelegationTokenResponse
from barnabas.security.acls import AclOperation, ResourceType

if TYPE_CHECKING:
    from barnabas.api.authorization.asker import Asker

__all__ = ["create_delegation_token", "may_create_for"]


def may_create_for(asker: Asker, request: CreateDelegationTokenRequest) -> bool:
    """Return whether a client may create a token for the owner that its request names."""
    owner = owner_of(request, asker.principal)
    return owner == asker.principal or asker.may(AclOperation.CREATE_TOKENS, ResourceType.USER, str(owner))


async def create_delegation_token(
    asker: Asker,
    request: CreateDelegationTokenRequest,
    then: Callable[[CreateDelegationTokenRequest], Awaitable[CreateDelegationTokenResponse]],
) -> CreateDelegationTokenResponse:
    """Ask for the owner, unless it is the client itself."""
    if not may_create_for(asker, request):
        owner, code = owner_of(request, asker.principal), ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED
        return no_token(asker.version, code, owner, asker.principal)
    return await then(request)
