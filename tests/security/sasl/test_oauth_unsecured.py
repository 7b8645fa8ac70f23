"""Unsecured tokens, as the options of Kafka's login module make them."""

from __future__ import annotations

import pytest

from barnabas.security.sasl.oauth_claims import ClaimRules
from barnabas.security.sasl.oauth_keys import json_part
from barnabas.security.sasl.oauth_server import InvalidToken
from barnabas.security.sasl.oauth_unsecured import UnsecuredValidator, unsecured_token
from barnabas.security.setting_error import SecuritySettingError

NOW_MS = 1_700_000_000_000
OPTIONS = {
    "unsecuredLoginStringClaim_sub": "alice", "unsecuredLoginNumberClaim_age": "7", "unsecuredLoginListClaim_scope": "|a|b",
    "unsecuredLoginLifetimeSeconds": "60", "unsecuredLoginExtension_traceId": "1", "other": "x",
}  # fmt: skip


def test_the_claims_of_the_options() -> None:
    token = unsecured_token(OPTIONS, NOW_MS, "sasl.jaas.config")
    assert json_part(token, 0) == {"alg": "none"}
    assert json_part(token, 1) == {
        "sub": "alice",
        "age": 7.0,
        "scope": ["a", "b"],
        "iat": NOW_MS / 1000,
        "exp": NOW_MS / 1000 + 60,
    }
    validate = UnsecuredValidator(ClaimRules(), lambda: NOW_MS)
    assert validate(token) == ("alice", NOW_MS + 60_000, frozenset({"a", "b"}))


def test_a_signed_token_is_not_taken_for_an_unsecured_one() -> None:
    header, claims, _ = unsecured_token(OPTIONS, NOW_MS, "sasl.jaas.config").split(".")
    for token in (f"{header}.{claims}.c2ln", f"eyJhbGciOiJSUzI1NiJ9.{claims}."):
        with pytest.raises(InvalidToken, match="is signed"):
            UnsecuredValidator(ClaimRules(), lambda: NOW_MS)(token)


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({}, 'has no unsecuredLoginStringClaim_sub="…"'),
        ({"unsecuredLoginStringClaim_exp": "1"}, "cannot be set"),
        ({**OPTIONS, "unsecuredLoginNumberClaim_age": "old"}, "is not a number"),
        ({**OPTIONS, "unsecuredLoginLifetimeSeconds": ""}, "is not a number"),
        ({**OPTIONS, "unsecuredLoginPrincipalClaimName": "client"}, "has no unsecuredLoginStringClaim_client"),
    ],
)
def test_options_that_cannot_be_used(options: dict[str, str], why: str) -> None:
    with pytest.raises(SecuritySettingError, match=why):
        unsecured_token(options, NOW_MS, "sasl.jaas.config")
