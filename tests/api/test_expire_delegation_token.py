"""ExpireDelegationToken: who may ask; `tests/metadata/test_delegation_token_control` has the rules."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import ExpireDelegationTokenRequest
from barnabas.security.principal import Principal
from tests.api.token_node import ALICE, BOB, SECRET, STRANGERS, TokenNode


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TokenNode]:
    made = TokenNode(tmp_path_factory.mktemp("tokens"), **SECRET)
    yield made
    made.close()


@pytest.mark.parametrize("version", [1, 2])
def test_an_owner_removes_a_token(node: TokenNode, version: int) -> None:
    node.log_in(ALICE)
    made = node.create(BOB)
    answer = node.ask(ExpireDelegationTokenRequest(hmac=made.hmac, expiry_time_period_ms=-1), version)
    assert (answer.error_code, answer.expiry_timestamp_ms) == (0, node.now_ms)
    assert made.token_id not in node.server.image.delegation_tokens.tokens
    answer = node.ask(ExpireDelegationTokenRequest(hmac=made.hmac, expiry_time_period_ms=-1), version)
    assert answer.error_code == ErrorCode.DELEGATION_TOKEN_NOT_FOUND


@pytest.mark.parametrize(("protocol", "principal"), STRANGERS)
def test_who_may_not_ask(node: TokenNode, protocol: str, principal: Principal) -> None:
    node.log_in(principal, protocol)
    answer = node.ask(ExpireDelegationTokenRequest(hmac=b"x"))
    assert (answer.error_code, answer.expiry_timestamp_ms) == (ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, -1)
