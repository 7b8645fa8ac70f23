"""A failed login has a text for the client and one for the operator."""

from __future__ import annotations

from barnabas.security.sasl.mechanism import LoginFailed, invalid_credentials


def test_a_failure_says_the_same_to_both_unless_there_is_more_to_say() -> None:
    assert LoginFailed("no").why == "no"
    assert (LoginFailed("no", "no: alice").text, LoginFailed("no", "no: alice").why) == ("no", "no: alice")


def test_the_one_text_is_kafkas() -> None:
    assert invalid_credentials("SCRAM-SHA-256") == (
        "Authentication failed during authentication due to invalid credentials with SASL mechanism SCRAM-SHA-256"
    )
    assert "during re-authentication due" in invalid_credentials("PLAIN", "re-authentication")
