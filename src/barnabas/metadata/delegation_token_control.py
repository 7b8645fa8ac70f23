"""CreateDelegationToken, RenewDelegationToken, ExpireDelegationToken: the tokens in the metadata log.

    issue ──── renewals ──── expiration ── … ── max           a token may be used up to `expiration`, which a renewal moves up to `max`

- Each answer has its error in it: DELEGATION_TOKEN_AUTH_DISABLED without the secret; UNSUPPORTED_VERSION below metadata.version 3.6-IV2;
  DELEGATION_TOKEN_NOT_FOUND for an HMAC of no token; DELEGATION_TOKEN_EXPIRED; DELEGATION_TOKEN_OWNER_MISMATCH for a client that is neither
  the owner nor a renewer, even if it requested the token; INVALID_PRINCIPAL_TYPE for a renewer that is not a User. They are checked in this
  order, except that ExpireDelegationToken checks the owner first: a negative period removes a token that has expired, too.
- A period of a request only shortens what the settings allow; 0 and less, as -1 in Kafka's tools, mean the setting's own.
- Records have the token's id and never its HMAC. The token of an HMAC is found by a comparison with each token's.
- `token_sweep` removes the expired tokens.

Sources: Kafka's `DelegationTokenControlManager`; KIP-48, KIP-373, KIP-900.
"""

from __future__ import annotations

from typing import TypeVar

from barnabas.metadata.controller_view import ControllerResult, ControllerView
from barnabas.metadata.metadata_version import DELEGATION_TOKENS_SINCE
from barnabas.metadata.security_images import DelegationToken
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
    RemoveDelegationTokenRecord,
    RenewDelegationTokenRequest,
    RenewDelegationTokenResponse,
)
from barnabas.protocol.primitives import uuid_to_str
from barnabas.security.delegation_tokens import TokenSettings
from barnabas.security.principal import USER, Principal

__all__ = ["create_token", "expire_token", "owner_of", "renew_token"]

REQUESTER_SINCE = 3
"""The version of CreateDelegationToken with an owner that is not the requester."""
_LAST = (1 << 63) - 1

Q = TypeVar("Q", RenewDelegationTokenResponse, ExpireDelegationTokenResponse)


def owner_of(request: CreateDelegationTokenRequest, requester: Principal) -> Principal:
    """Return whom a requested token is for: the requester, if the request names no owner."""
    if not request.owner_principal_name:
        return requester
    return Principal(request.owner_principal_type or "", request.owner_principal_name)


def create_token(
    view: ControllerView, request: CreateDelegationTokenRequest
) -> ControllerResult[CreateDelegationTokenResponse]:
    """Answer one CreateDelegationToken request."""
    requester, owner = view.principal, owner_of(request, view.principal)
    response = CreateDelegationTokenResponse(principal_type=owner.type, principal_name=owner.name)
    if view.version >= REQUESTER_SINCE:
        response.token_requester_principal_type = requester.type
        response.token_requester_principal_name = requester.name
    tokens = _enabled(view)
    if isinstance(tokens, ErrorCode):
        response.error_code = tokens
        return ControllerResult(response)
    if any(renewer.principal_type != USER for renewer in request.renewers):
        response.error_code = ErrorCode.INVALID_PRINCIPAL_TYPE
        return ControllerResult(response)
    now_ms = view.clock.wall_ms()
    last_ms = _later(now_ms, _shorter(tokens.max_lifetime_ms, request.max_lifetime_ms))
    token_id = uuid_to_str(view.new_uuid())
    token = DelegationToken(
        owner=str(owner),
        requester=str(requester),
        renewers=tuple(f"{USER}:{renewer.principal_name}" for renewer in request.renewers),
        issue_timestamp_ms=now_ms,
        max_timestamp_ms=last_ms,
        expiration_timestamp_ms=min(last_ms, _later(now_ms, tokens.expiry_time_ms)),
    )
    response.issue_timestamp_ms = token.issue_timestamp_ms
    response.expiry_timestamp_ms = token.expiration_timestamp_ms
    response.max_timestamp_ms = token.max_timestamp_ms
    response.token_id = token_id
    response.hmac = tokens.key.hmac(token_id)
    return ControllerResult(response, [token.record(token_id)])


def renew_token(
    view: ControllerView, request: RenewDelegationTokenRequest
) -> ControllerResult[RenewDelegationTokenResponse]:
    """Answer one RenewDelegationToken request."""
    response, found = RenewDelegationTokenResponse(), _found(view, request.hmac)
    if isinstance(found, ErrorCode):
        return _failed(response, found)
    token_id, token, tokens = found
    now_ms = view.clock.wall_ms()
    if token.is_expired(now_ms):
        return _failed(response, ErrorCode.DELEGATION_TOKEN_EXPIRED)
    if not token.may_be_renewed_by(str(view.principal)):
        return _failed(response, ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH)
    return _moved(response, token_id, token, _later(now_ms, _shorter(tokens.expiry_time_ms, request.renew_period_ms)))


def expire_token(
    view: ControllerView, request: ExpireDelegationTokenRequest
) -> ControllerResult[ExpireDelegationTokenResponse]:
    """Answer one ExpireDelegationToken request."""
    response, found = ExpireDelegationTokenResponse(), _found(view, request.hmac)
    if isinstance(found, ErrorCode):
        return _failed(response, found)
    token_id, token, _ = found
    now_ms = view.clock.wall_ms()
    if not token.may_be_renewed_by(str(view.principal)):
        return _failed(response, ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH)
    if request.expiry_time_period_ms < 0:
        response.expiry_timestamp_ms = now_ms
        return ControllerResult(response, [RemoveDelegationTokenRecord(token_id=token_id)])
    if token.is_expired(now_ms):
        return _failed(response, ErrorCode.DELEGATION_TOKEN_EXPIRED)
    return _moved(response, token_id, token, _later(now_ms, request.expiry_time_period_ms))


def _enabled(view: ControllerView) -> TokenSettings | ErrorCode:
    """Return the settings of delegation tokens, or why there are none."""
    if view.settings.tokens is None:
        return ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED
    if (view.image.features.metadata_version or 0) < DELEGATION_TOKENS_SINCE:
        return ErrorCode.UNSUPPORTED_VERSION
    return view.settings.tokens


def _found(view: ControllerView, given: bytes) -> tuple[str, DelegationToken, TokenSettings] | ErrorCode:
    """Return the token of an HMAC and its id, with the settings of all tokens; or why there is no answer."""
    tokens = _enabled(view)
    if isinstance(tokens, ErrorCode):
        return tokens
    hmac = bytes(given)
    for token_id, token in view.image.delegation_tokens.tokens.items():
        if tokens.key.is_of(token_id, hmac):
            return token_id, token, tokens
    return ErrorCode.DELEGATION_TOKEN_NOT_FOUND


def _moved(response: Q, token_id: str, token: DelegationToken, expiration_ms: int) -> ControllerResult[Q]:
    """Let a token expire at another time, at most at the end of its life."""
    moved = token._replace(expiration_timestamp_ms=min(token.max_timestamp_ms, expiration_ms))
    response.expiry_timestamp_ms = moved.expiration_timestamp_ms
    return ControllerResult(response, [moved.record(token_id)])


def _failed(response: Q, code: ErrorCode) -> ControllerResult[Q]:
    response.error_code = code
    return ControllerResult(response)


def _shorter(setting_ms: int, wanted_ms: int) -> int:
    return min(setting_ms, wanted_ms) if wanted_ms > 0 else setting_ms


def _later(now_ms: int, duration_ms: int) -> int:
    return min(now_ms + duration_ms, _LAST)
