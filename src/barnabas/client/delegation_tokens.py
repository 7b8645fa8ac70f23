"""Delegation tokens of a cluster, Apache Kafka or barnabas.

Sources: CreateDelegationToken (38), RenewDelegationToken (39), ExpireDelegationToken (40), DescribeDelegationToken (41); KIP-48, KIP-373.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from barnabas.client.cluster import Cluster
from barnabas.protocol import messages
from barnabas.protocol.errors import ErrorCode, KafkaError, error_for
from barnabas.security.principal import Principal

__all__ = ["CLUSTERS_OWN", "DelegationToken", "create_token", "describe_tokens", "expire_token", "renew_token"]

CLUSTERS_OWN = -1
"""The period that the brokers' settings have."""
_OWNER_SINCE = 3


class DelegationToken(NamedTuple):
    """A delegation token; times are epoch milliseconds.

    Attributes:
        hmac: the secret: who has it logs in as the owner.
        requester: who has created it; the owner if the broker is older than Kafka 3.3.
        expires_ms: when it expires unless it is renewed, at the latest at `max_ms`.
    """

    token_id: str
    hmac: bytes
    owner: Principal
    requester: Principal
    renewers: tuple[Principal, ...]
    issued_ms: int
    expires_ms: int
    max_ms: int

    def __repr__(self) -> str:
        return f"<DelegationToken {self.token_id} owner={self.owner}>"


def create_token(
    cluster: Cluster,
    *,
    renewers: Sequence[Principal] = (),
    owner: Principal | None = None,
    max_lifetime_ms: int = CLUSTERS_OWN,
) -> DelegationToken:
    """Create a token.

    Args:
        renewers: who may renew and expire it, as its owner may.
        owner: None for the client's own principal.
        max_lifetime_ms: the brokers have a limit of their own.

    Raises:
        KafkaError: DELEGATION_TOKEN_AUTH_DISABLED, DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, DELEGATION_TOKEN_AUTHORIZATION_FAILED,
            INVALID_PRINCIPAL_TYPE, UNSUPPORTED_VERSION: the broker knows no owners.
    """
    kind = messages.CreateDelegationTokenRequest
    request = kind(
        renewers=[kind.CreatableRenewers(principal_type=each.type, principal_name=each.name) for each in renewers],
        max_lifetime_ms=max_lifetime_ms,
    )
    if owner is not None:
        request.owner_principal_type, request.owner_principal_name = owner.type, owner.name

    def ask() -> DelegationToken:
        connection = cluster.any_connection()
        if owner is not None and connection.version_for(request) < _OWNER_SINCE:
            raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, "the broker creates no tokens for others")
        response = connection.request(request)
        if response.error_code:
            raise error_for(response.error_code, None)
        of = Principal(response.principal_type, response.principal_name)
        return DelegationToken(
            response.token_id,
            bytes(response.hmac),
            of,
            _requester(response.token_requester_principal_type, response.token_requester_principal_name, of),
            tuple(renewers),
            response.issue_timestamp_ms,
            response.expiry_timestamp_ms,
            response.max_timestamp_ms,
        )

    return cluster.retry(ask)


def renew_token(cluster: Cluster, hmac: bytes, *, period_ms: int = CLUSTERS_OWN) -> int:
    """Let a token expire later; return when, in epoch milliseconds.

    Args:
        period_ms: from now on.

    Raises:
        KafkaError: DELEGATION_TOKEN_NOT_FOUND, DELEGATION_TOKEN_EXPIRED, DELEGATION_TOKEN_OWNER_MISMATCH; those of a connection as in
            `create_token`.
    """
    return _moved(cluster, messages.RenewDelegationTokenRequest(hmac=hmac, renew_period_ms=period_ms))


def expire_token(cluster: Cluster, hmac: bytes, *, period_ms: int = -1) -> int:
    """Let a token expire at another time; return when, in epoch milliseconds. Raises as `renew_token`.

    Args:
        period_ms: from now on; a negative one removes the token immediately.
    """
    return _moved(cluster, messages.ExpireDelegationTokenRequest(hmac=hmac, expiry_time_period_ms=period_ms))


def _moved(
    cluster: Cluster, request: messages.RenewDelegationTokenRequest | messages.ExpireDelegationTokenRequest
) -> int:
    def ask() -> int:
        response = cluster.any_connection().request(request)
        if response.error_code:
            raise error_for(response.error_code, None)
        expires_ms: int = response.expiry_timestamp_ms
        return expires_ms

    return cluster.retry(ask)


def describe_tokens(cluster: Cluster, owners: Sequence[Principal] | None = None) -> list[DelegationToken]:
    """Return the tokens that the client may see, by the time of their creation.

    Args:
        owners: only those that one of them owns, has requested or may renew; None for all.

    Raises:
        KafkaError: DELEGATION_TOKEN_AUTH_DISABLED, DELEGATION_TOKEN_REQUEST_NOT_ALLOWED.
    """
    kind = messages.DescribeDelegationTokenRequest
    named = None
    if owners is not None:
        named = [
            kind.DescribeDelegationTokenOwner(principal_type=each.type, principal_name=each.name) for each in owners
        ]

    def ask() -> list[DelegationToken]:
        response = cluster.any_connection().request(kind(owners=named))
        if response.error_code:
            raise error_for(response.error_code, None)
        return [_described(each) for each in response.tokens]

    return sorted(cluster.retry(ask), key=lambda token: (token.issued_ms, token.token_id))


def _described(token: messages.DescribeDelegationTokenResponse.DescribedDelegationToken) -> DelegationToken:
    owner = Principal(token.principal_type, token.principal_name)
    return DelegationToken(
        token.token_id,
        bytes(token.hmac),
        owner,
        _requester(token.token_requester_principal_type, token.token_requester_principal_name, owner),
        tuple(Principal(each.principal_type, each.principal_name) for each in token.renewers),
        token.issue_timestamp,
        token.expiry_timestamp,
        token.max_timestamp,
    )


def _requester(kind: str, name: str, owner: Principal) -> Principal:
    return Principal(kind, name) if kind or name else owner
