"""Delegation tokens in the metadata: what is created, renewed and removed, by whom, and the order of the errors."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.metadata.delegation_token_control import create_token
from barnabas.metadata.security_images import DelegationToken
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import (
    CreateDelegationTokenRequest,
    ExpireDelegationTokenRequest,
    RenewDelegationTokenRequest,
)
from barnabas.security.delegation_tokens import TokenKey, TokenSettings
from barnabas.security.principal import Principal
from tests.metadata.controller_harness import ControllerHarness

ALICE, BOB, CAROL = (Principal("User", name) for name in ("alice", "bob", "carol"))
KEY = TokenKey("a secret of the cluster")
SETTINGS = TokenSettings(KEY, max_lifetime_ms=10_000, expiry_time_ms=1_000)
NOW = 1_000_000
"""The time of the harness."""


class Tokens(ControllerHarness):
    """A controller with tokens; the client is alice unless the test says so."""

    def __init__(self, tokens: TokenSettings | None = SETTINGS) -> None:
        super().__init__(tokens=tokens)

    def create(self, *renewers: Principal, by: Principal = ALICE, version: int = 3, **fields: Any) -> Any:  # type: ignore[override]
        kind = CreateDelegationTokenRequest
        of = [kind.CreatableRenewers(principal_type=each.type, principal_name=each.name) for each in renewers]
        return self.send(ApiKey.CREATE_DELEGATION_TOKEN, kind(renewers=of, **fields), version, principal=by)

    def renew(self, hmac: bytes, period_ms: int = -1, by: Principal = ALICE) -> tuple[ErrorCode, int]:
        request = RenewDelegationTokenRequest(hmac=hmac, renew_period_ms=period_ms)
        answer = self.send(ApiKey.RENEW_DELEGATION_TOKEN, request, principal=by)
        return ErrorCode(answer.error_code), answer.expiry_timestamp_ms

    def expire(self, hmac: bytes, period_ms: int = -1, by: Principal = ALICE) -> tuple[ErrorCode, int]:
        request = ExpireDelegationTokenRequest(hmac=hmac, expiry_time_period_ms=period_ms)
        answer = self.send(ApiKey.EXPIRE_DELEGATION_TOKEN, request, principal=by)
        return ErrorCode(answer.error_code), answer.expiry_timestamp_ms

    @property
    def tokens(self) -> dict[str, DelegationToken]:
        return dict(self.controller.image.delegation_tokens.tokens)


def test_a_token_is_in_the_log_without_its_hmac() -> None:
    node = Tokens()
    made = node.create(BOB, CAROL)
    assert (made.error_code, made.hmac) == (0, KEY.hmac(made.token_id))
    assert (made.principal_type, made.principal_name) == ("User", "alice")
    assert (made.token_requester_principal_type, made.token_requester_principal_name) == ("User", "alice")
    assert (made.issue_timestamp_ms, made.expiry_timestamp_ms, made.max_timestamp_ms) == (
        NOW,
        NOW + 1_000,
        NOW + 10_000,
    )
    kept = DelegationToken("User:alice", "User:alice", ("User:bob", "User:carol"), NOW, NOW + 10_000, NOW + 1_000)
    assert node.tokens == {made.token_id: kept}
    assert not any(made.hmac in batch for batch in node.log.batches)
    node.restart()
    assert node.tokens == {made.token_id: kept}
    assert node.renew(made.hmac) == (ErrorCode.NONE, NOW + 1_000), "the next controller knows it by its HMAC"


def test_a_token_for_another_owner() -> None:
    node = Tokens()
    made = node.create(owner_principal_type="User", owner_principal_name="bob")
    assert (made.principal_name, made.token_requester_principal_name) == ("bob", "alice")
    assert node.tokens[made.token_id][:2] == ("User:bob", "User:alice")
    assert node.renew(made.hmac, by=BOB)[0] is ErrorCode.NONE
    assert node.renew(made.hmac, by=ALICE)[0] is ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH, "as in Kafka"


def test_a_version_without_a_requester() -> None:
    made = Tokens().create(version=2)
    assert made.token_requester_principal_name == ""
    made.encode(2)


@pytest.mark.parametrize(
    ("wanted_ms", "lives_ms"), [(0, 10_000), (-1, 10_000), (5_000, 5_000), (10_001, 10_000), (500, 500)]
)
def test_a_client_may_shorten_a_tokens_life(wanted_ms: int, lives_ms: int) -> None:
    made = Tokens().create(max_lifetime_ms=wanted_ms)
    assert made.max_timestamp_ms == NOW + lives_ms
    assert made.expiry_timestamp_ms == NOW + min(1_000, lives_ms)


def test_times_end_at_the_largest_number() -> None:
    made = Tokens(TokenSettings(KEY, max_lifetime_ms=(1 << 63) - 1, expiry_time_ms=(1 << 63) - 1)).create()
    assert made.max_timestamp_ms == made.expiry_timestamp_ms == (1 << 63) - 1


@pytest.mark.parametrize(("period_ms", "lives_ms"), [(-1, 1_000), (0, 1_000), (300, 300), (2_000, 1_000)])
def test_a_renewal_counts_from_now(period_ms: int, lives_ms: int) -> None:
    node = Tokens()
    made = node.create(BOB)
    node.now_ms += 600
    assert node.renew(made.hmac, period_ms, BOB) == (ErrorCode.NONE, NOW + 600 + lives_ms)
    assert node.tokens[made.token_id].expiration_timestamp_ms == NOW + 600 + lives_ms


def test_no_renewal_goes_past_the_end_of_its_life() -> None:
    node = Tokens()
    made = node.create(max_lifetime_ms=1_200)
    node.now_ms += 700
    assert node.renew(made.hmac) == (ErrorCode.NONE, NOW + 1_200)
    assert node.expire(made.hmac, 5_000) == (ErrorCode.NONE, NOW + 1_200)


def test_a_token_expires_sooner_or_is_removed() -> None:
    node = Tokens()
    made, other = node.create(BOB), node.create()
    assert node.expire(made.hmac, 250, BOB) == (ErrorCode.NONE, NOW + 250)
    assert node.expire(other.hmac, 0) == (ErrorCode.NONE, NOW)
    assert node.expire(other.hmac, -1) == (ErrorCode.NONE, NOW)
    assert list(node.tokens) == [made.token_id]
    assert node.renew(other.hmac) == (ErrorCode.DELEGATION_TOKEN_NOT_FOUND, 0)


def test_an_expired_token_can_only_be_removed() -> None:
    node = Tokens()
    made = node.create()
    node.now_ms += 1_000
    assert node.renew(made.hmac, 1)[0] is ErrorCode.NONE, "it expires after that millisecond"
    node.now_ms += 2
    assert node.renew(made.hmac) == (ErrorCode.DELEGATION_TOKEN_EXPIRED, 0)
    assert node.expire(made.hmac, 5) == (ErrorCode.DELEGATION_TOKEN_EXPIRED, 0)
    assert node.renew(made.hmac, by=CAROL)[0] is ErrorCode.DELEGATION_TOKEN_EXPIRED, "before the owner is looked at"
    assert node.expire(made.hmac, 5, CAROL)[0] is ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH, "and here after it"
    assert node.expire(made.hmac, -1)[0] is ErrorCode.NONE
    assert node.tokens == {}


def test_a_foreign_renewer_changes_nothing() -> None:
    node = Tokens()
    made = node.create(BOB)
    before = node.tokens
    mismatch = (ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH, 0)
    for stranger in (CAROL, Principal("Group", "alice"), Principal("User", "ALICE")):
        assert node.renew(made.hmac, by=stranger) == mismatch
        assert node.expire(made.hmac, -1, stranger) == mismatch
    assert node.tokens == before


@pytest.mark.parametrize("wrong", [b"", b"x" * 64, TokenKey("another").hmac("JEXY6aqzQY-32P5TStzaFg")])
def test_a_wrong_hmac_finds_no_token(wrong: bytes) -> None:
    node = Tokens()
    node.create()
    assert node.renew(wrong) == (ErrorCode.DELEGATION_TOKEN_NOT_FOUND, 0)
    assert node.expire(wrong) == (ErrorCode.DELEGATION_TOKEN_NOT_FOUND, 0)


def test_a_renewer_that_is_not_a_user() -> None:
    node = Tokens()
    made = node.create(BOB, Principal("Group", "staff"))
    assert (made.error_code, made.token_id, made.principal_name) == (ErrorCode.INVALID_PRINCIPAL_TYPE, "", "alice")
    assert node.tokens == {}


def test_without_the_secret_there_are_no_tokens() -> None:
    node = Tokens(None)
    disabled = ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED
    made = node.create(Principal("Group", "staff"))
    assert (made.error_code, made.principal_name) == (disabled, "alice")
    assert (node.renew(b"")[0], node.expire(b"")[0]) == (disabled, disabled)


def test_an_old_metadata_version_has_no_tokens() -> None:
    node = Tokens()
    image = node.controller.image
    old = image._replace(features=image.features._replace(metadata_version=13))
    view = node.view(3)._replace(image=old, principal=ALICE)
    result = create_token(view, CreateDelegationTokenRequest())
    assert (result.response.error_code, result.records) == (ErrorCode.UNSUPPORTED_VERSION, [])
    view = view._replace(image=image._replace(features=image.features._replace(metadata_version=14)))
    assert create_token(view, CreateDelegationTokenRequest()).response.error_code == 0
