"""Which claims a server accepts."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.security.sasl.oauth_claims import ClaimRules, checked_claims
from barnabas.security.sasl.oauth_server import BearerToken, InvalidToken
from barnabas.security.setting_error import SecuritySettingError

NOW_S = 1_700_000_000
RULES = ClaimRules(frozenset({"kafka", "events"}), "https://issuer")
CLAIMS: dict[str, object] = {
    "sub": " alice ", "iss": "https://issuer", "aud": "kafka", "iat": NOW_S, "exp": NOW_S + 60, "scope": ["a", "b"]
}  # fmt: skip


def check(rules: ClaimRules = RULES, **changes: object) -> BearerToken:
    claims = {name: value for name, value in {**CLAIMS, **changes}.items() if value != "absent"}
    return checked_claims(claims, rules, NOW_S * 1000)


def test_valid_claims() -> None:
    assert check() == BearerToken("alice", (NOW_S + 60) * 1000, frozenset({"a", "b"}))
    assert check(scope="absent").scope == frozenset()
    assert check(scope="one").scope == {"one"}
    assert check(aud=["others", "events"]).subject == "alice"
    assert check(exp=NOW_S - 29.5).subject == "alice"
    assert check(nbf=NOW_S + 30).subject == "alice"


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"exp": "absent"}, "no claim exp"),
        ({"iat": "absent"}, "no claim exp or no claim iat"),
        ({"exp": NOW_S - 30}, "has expired"),
        ({"nbf": NOW_S + 31}, "not valid yet"),
        ({"exp": "tomorrow"}, "exp is not a time"),
        ({"exp": True}, "exp is not a time"),
        ({"exp": float("inf")}, "exp is not a time"),
        ({"exp": float("nan")}, "exp is not a time"),
        ({"iat": -1}, "iat is not a time"),
        ({"aud": "absent"}, "another audience"),
        ({"aud": "others"}, "another audience"),
        ({"aud": []}, "another audience"),
        ({"aud": [["kafka"]]}, "not a text or a list"),
        ({"iss": "https://issuer/"}, "another issuer"),
        ({"iss": "absent"}, "another issuer"),
        ({"sub": "absent"}, "claim sub is missing"),
        ({"sub": "  "}, "claim sub is missing"),
        ({"sub": 7}, "claim sub is missing"),
        ({"scope": ["a", " a"]}, "value twice"),
        ({"scope": ["a", 1]}, "claim scope is missing"),
        ({"scope": ""}, "claim scope is missing"),
    ],
)
def test_claims_that_are_refused(changes: dict[str, object], why: str) -> None:
    with pytest.raises(InvalidToken, match=why):
        check(**changes)


def test_other_claims_may_name_subject_and_scope() -> None:
    rules = ClaimRules(RULES.audiences, RULES.issuer, subject_claim="client_id", scope_claim="scp")
    assert check(rules, client_id="service-7", scp=["x"]) == BearerToken(
        "service-7", (NOW_S + 60) * 1000, frozenset("x")
    )


@settings(max_examples=50)
@given(
    st.dictionaries(
        st.sampled_from(["sub", "iss", "aud", "iat", "exp", "nbf", "scope"]),
        st.sampled_from(
            [None, True, 0, -1, 1e300, float("nan"), "", "kafka", [], [1], ["kafka", None], {"a": 1}, NOW_S + 5]
        ),
    )
)
def test_any_claims_are_accepted_or_refused(changes: dict[str, object]) -> None:
    try:
        token = check(**json.loads(json.dumps(changes)))
    except InvalidToken:
        return
    assert token.subject.strip()
    assert token.expires_at_ms > (NOW_S - 30) * 1000


def test_rules_of_settings() -> None:
    written = {
        "sasl.oauthbearer.expected.audience": "kafka, events", "sasl.oauthbearer.expected.issuer": "https://issuer",
        "sasl.oauthbearer.clock.skew.seconds": "5", "sasl.oauthbearer.sub.claim.name": "client_id",
        "sasl.oauthbearer.scope.claim.name": "scp",
    }  # fmt: skip
    assert ClaimRules.of(written) == ClaimRules(frozenset({"kafka", "events"}), "https://issuer", 5, "scp", "client_id")


@pytest.mark.parametrize(
    ("change", "line"),
    [
        ({"sasl.oauthbearer.expected.audience": ""}, "x.sasl.oauthbearer.expected.audience: must be set"),
        ({"sasl.oauthbearer.expected.issuer": " "}, "x.sasl.oauthbearer.expected.issuer: must be set"),
        ({"sasl.oauthbearer.clock.skew.seconds": "-1"}, "x.sasl.oauthbearer.clock.skew.seconds: is not"),
        ({"sasl.oauthbearer.sub.claim.name": ""}, "x.sasl.oauthbearer.sub.claim.name: is empty"),
    ],
)
def test_settings_that_stop_the_start(change: dict[str, str], line: str) -> None:
    enough = {"sasl.oauthbearer.expected.audience": "kafka", "sasl.oauthbearer.expected.issuer": "https://issuer"}
    with pytest.raises(SecuritySettingError) as refused:
        ClaimRules.of({**enough, **change}, "x.")
    assert str(refused.value).startswith(line)


def test_a_listener_may_say_that_any_audience_and_issuer_will_do() -> None:
    rules = ClaimRules.of(
        {"sasl.oauthbearer.allow.unverified.audience": "true", "sasl.oauthbearer.allow.unverified.issuer": "true"}
    )
    assert check(rules, aud="whatever", iss="absent").subject == "alice"
