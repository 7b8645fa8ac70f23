"""Which connections may ask for tokens."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from barnabas.api.serving.context import ConnectionInfo
from barnabas.api.serving.token_requests import has_many_tokens, may_ask_for_tokens, no_token
from barnabas.protocol.errors import ErrorCode
from barnabas.security.principal import ANONYMOUS, Principal

ALICE, BY_TOKEN = Principal("User", "alice"), Principal("User", "alice", by_token=True)


@pytest.mark.parametrize(
    ("protocol", "principal", "may"),
    [
        ("PLAINTEXT", ANONYMOUS, False),
        ("PLAINTEXT", ALICE, False),
        ("SSL", ANONYMOUS, False),
        ("SSL", ALICE, True),
        ("SASL_PLAINTEXT", ALICE, True),
        ("SASL_SSL", ALICE, True),
        ("SASL_SSL", BY_TOKEN, False),
        ("SSL", BY_TOKEN, False),
        (None, BY_TOKEN, False),
        (None, ALICE, True),
        (None, ANONYMOUS, True),
    ],
)
def test_the_connection_decides(protocol: str | None, principal: Principal, may: bool) -> None:
    """None stands for a request that a broker forwarded."""
    assert may_ask_for_tokens(ConnectionInfo("c", principal=principal, security_protocol=protocol)) is may


def test_a_connection_is_of_a_plain_listener_unless_it_says_otherwise() -> None:
    assert not may_ask_for_tokens(ConnectionInfo("c", principal=ALICE))


@pytest.mark.parametrize("version", [1, 2, 3])
def test_a_refusal_fits_every_version(version: int) -> None:
    refusal = no_token(version, ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED, ALICE, ANONYMOUS)
    read, _ = type(refusal).read(refusal.encode(version), 0, version)
    assert (read.error_code, read.principal_name, read.max_timestamp_ms) == (65, "alice", -1)
    assert read.token_requester_principal_name == ("ANONYMOUS" if version == 3 else "")


@pytest.mark.parametrize(("count", "many"), [(100, False), (100_000, True)])
def test_a_search_among_many_tokens_is_long(count: int, many: bool) -> None:
    image: Any = SimpleNamespace(delegation_tokens=SimpleNamespace(tokens=range(count)))
    assert has_many_tokens(image) is many
