"""Who may ask for delegation tokens, and what the others get.

- A client that logged in by a token may not: else a token would last for ever.
- Nor may one that is not encrypted and has not logged in (PLAINTEXT), nor an unknown one of SSL (ANONYMOUS).
- The active controller looks at the principal alone in a request that a broker has forwarded: the broker has looked at the connection.

Source: Kafka's `KafkaApis.allowTokenRequests`, `ControllerApis.allowTokenRequests`; KIP-48.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from barnabas.api.serving.forwarding import forward
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import (
    CreateDelegationTokenResponse,
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
    RenewDelegationTokenRequest,
    RenewDelegationTokenResponse,
)
from barnabas.security.principal import ANONYMOUS, Principal
from barnabas.turns import ELEMENT, is_long

if TYPE_CHECKING:
    from barnabas.api.serving.context import AnyContext, ConnectionInfo
    from barnabas.metadata.image import MetadataImage

__all__ = ["NO_TIME", "REQUESTER_SINCE", "forward_time", "has_many_tokens", "may_ask_for_tokens", "no_token"]

R = TypeVar("R", RenewDelegationTokenResponse, ExpireDelegationTokenResponse)

NO_TIME = -1
"""The times in an answer without a token."""
REQUESTER_SINCE = 3
"""The version of CreateDelegationToken that tells the requester from the owner."""


def may_ask_for_tokens(connection: ConnectionInfo) -> bool:
    """Return whether requests about tokens are allowed on a connection."""
    principal, protocol = connection.principal, connection.security_protocol
    is_unknown = protocol == "PLAINTEXT" or (protocol == "SSL" and principal == ANONYMOUS)
    return not principal.by_token and not is_unknown


def has_many_tokens(image: MetadataImage) -> bool:
    """Return whether the search for the token of an HMAC takes longer than a turn of the loop may."""
    return is_long(len(image.delegation_tokens.tokens) * ELEMENT)


async def forward_time(
    context: AnyContext, request: RenewDelegationTokenRequest | ExpireDelegationTokenRequest, response: type[R]
) -> R:
    """Forward a request that lets a token expire at another time; refuse it if its connection may not ask."""
    if not may_ask_for_tokens(context.connection):
        return response(error_code=ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, expiry_timestamp_ms=NO_TIME)
    context.is_long = context.is_long or has_many_tokens(context.services.image())
    answer: R = await forward(context, request)
    return answer


def no_token(
    version: int, code: ErrorCode | int, owner: Principal, requester: Principal
) -> CreateDelegationTokenResponse:
    """Return the response to a CreateDelegationToken that is refused."""
    response = CreateDelegationTokenResponse(
        error_code=code,
        principal_type=owner.type,
        principal_name=owner.name,
        issue_timestamp_ms=NO_TIME,
        expiry_timestamp_ms=NO_TIME,
        max_timestamp_ms=NO_TIME,
    )
    if version >= REQUESTER_SINCE:
        response.token_requester_principal_type = requester.type
        response.token_requester_principal_name = requester.name
    return response
