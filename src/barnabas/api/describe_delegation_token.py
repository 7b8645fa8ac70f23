"""DescribeDelegationToken (API key 41, versions 1-3): the tokens of owners, with their HMACs.

- Each broker answers from its own image; the request is not forwarded. A controller lists this API and answers UNKNOWN_SERVER_ERROR, as
  Kafka's does, which has no handler for it.
- Whose connection may not ask for tokens gets DELEGATION_TOKEN_REQUEST_NOT_ALLOWED (`serving.token_requests`), and without the secret
  everybody gets DELEGATION_TOKEN_AUTH_DISABLED.
- An empty list of owners selects nothing, null every token, names those that one of them owns, has requested, or may renew.
- Of these a client sees its own (the same three) and those it has a right to: DESCRIBE on the token, or DESCRIBE_TOKENS on its owner. The
  others are left out.

Version 2 is flexible, 3 adds the requester (KIP-373).

Source: Kafka's `KafkaApis.handleDescribeTokensRequest`, `DelegationTokenManager.filterToken`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.api.serving.context import AnyContext
from barnabas.api.serving.token_requests import REQUESTER_SINCE, may_ask_for_tokens
from barnabas.config.token_settings import token_settings
from barnabas.metadata.security_images import DelegationToken
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages import DescribeDelegationTokenRequest, DescribeDelegationTokenResponse
from barnabas.security.acls import AclOperation, ResourceType
from barnabas.security.principal import Principal, principal_of_record
from barnabas.turns import ELEMENT, pace

if TYPE_CHECKING:
    from barnabas.api.authorization.asker import Asker

_Token = DescribeDelegationTokenResponse.DescribedDelegationToken
_Renewer = DescribeDelegationTokenResponse.DescribedDelegationTokenRenewer


async def handle(context: AnyContext, request: DescribeDelegationTokenRequest) -> DescribeDelegationTokenResponse:
    if context.services.listener_kind != "broker":
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "Unsupported ApiKey 41")
    if not may_ask_for_tokens(context.connection):
        return DescribeDelegationTokenResponse(error_code=ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)
    settings = token_settings(context.services.config)
    if settings is None:
        return DescribeDelegationTokenResponse(error_code=ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED)
    owners = None
    if request.owners is not None:
        owners = {f"{owner.principal_type}:{owner.principal_name}" for owner in request.owners}
    response, asker = DescribeDelegationTokenResponse(), context.asker
    principal = str(context.connection.principal)
    for token_id, token in context.services.image().delegation_tokens.tokens.items():
        await pace(ELEMENT)
        is_asked_for = owners is None or not owners.isdisjoint((token.owner, token.requester, *token.renewers))
        if is_asked_for and (token.is_known_to(principal) or _may_see(asker, token_id, token)):
            response.tokens.append(_described(token_id, token, settings.key.hmac(token_id), context.version))
    return response


def _may_see(asker: Asker | None, token_id: str, token: DelegationToken) -> bool:
    """Return whether a client has a right to a token that is not its own."""
    if asker is None or asker.may(AclOperation.DESCRIBE, ResourceType.DELEGATION_TOKEN, token_id):
        return True
    return asker.may(AclOperation.DESCRIBE_TOKENS, ResourceType.USER, token.owner)


def _described(token_id: str, token: DelegationToken, hmac: bytes, version: int) -> _Token:
    owner, requester = principal_of_record(token.owner), principal_of_record(token.requester)
    described = _Token(
        principal_type=owner.type,
        principal_name=owner.name,
        issue_timestamp=token.issue_timestamp_ms,
        expiry_timestamp=token.expiration_timestamp_ms,
        max_timestamp=token.max_timestamp_ms,
        token_id=token_id,
        hmac=hmac,
        renewers=[_renewer(principal_of_record(renewer)) for renewer in token.renewers],
    )
    if version >= REQUESTER_SINCE:
        described.token_requester_principal_type = requester.type
        described.token_requester_principal_name = requester.name
    return described


def _renewer(principal: Principal) -> _Renewer:
    return _Renewer(principal_type=principal.type, principal_name=principal.name)
