"""Principals."""

from __future__ import annotations

import pytest

from barnabas.security.principal import Principal, parse_principal


@pytest.mark.parametrize(
    ("text", "principal"),
    [
        ("User:alice", Principal("User", "alice")),
        (" User:a:b ", Principal("User", "a:b")),
        ("Group:CN=x,O=y", Principal("Group", "CN=x,O=y")),
    ],
)
def test_a_principal_has_a_type_and_a_name(text: str, principal: Principal) -> None:
    assert parse_principal(text) == principal
    assert str(principal) == text.strip()


@pytest.mark.parametrize("text", ["", "alice", "User:", ":alice", "User"])
def test_a_text_without_both_is_none(text: str) -> None:
    with pytest.raises(ValueError, match="principalType:principalName"):
        parse_principal(text)


def test_how_it_logged_in_does_not_count() -> None:
    assert Principal("User", "alice", by_token=True) == Principal("User", "alice")
    assert Principal("User", "alice") != Principal("Group", "alice")
