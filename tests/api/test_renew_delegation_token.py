"""RenewDelegationToken: who may ask; `tests/metadata/test_delegation_token_control` has the rules."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import RenewDelegationTokenRequest
from barnabas.security.principal import Principal
from tests.api.token_node import ALICE, BOB, CAROL, SECRET, STRANGERS, TokenNode


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TokenNode]:
    made = TokenNode(tmp_path_factory.mktemp("tokens"), **SECRET)
    yield made
    made.close()


@pytest.mark.parametrize("version", [1, 2])
def test_a_renewer_renews(node: TokenNode, version: int) -> None:
    node.log_in(ALICE)
    made = node.create(BOB)
    node.log_in(BOB)
    answer = node.ask(RenewDelegationTokenRequest(hmac=made.hmac, renew_period_ms=5_000), version)
    assert (answer.error_code, answer.expiry_timestamp_ms) == (0, node.now_ms + 5_000)
    node.log_in(CAROL)
    answer = node.ask(RenewDelegationTokenRequest(hmac=made.hmac), version)
    assert (answer.error_code, answer.expiry_timestamp_ms) == (ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH, 0)


@pytest.mark.parametrize(("protocol", "principal"), STRANGERS)
def test_who_may_not_ask(node: TokenNode, protocol: str, principal: Principal) -> None:
    node.log_in(principal, protocol)
    answer = node.ask(RenewDelegationTokenRequest(hmac=b"x"))
    assert (answer.error_code, answer.expiry_timestamp_ms) == (ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, -1)


def test_the_search_among_many_tokens_leaves_the_loop(node: TokenNode, monkeypatch: pytest.MonkeyPatch) -> None:
    node.log_in(ALICE)
    made = node.create()
    monkeypatch.setattr("barnabas.api.serving.token_requests.has_many_tokens", lambda image: True)
    computed: list[object] = []
    run_in_executor = node.loop.run_in_executor

    def noted(executor: None, function: object, *args: object) -> object:
        computed.append(function)
        return run_in_executor(executor, function, *args)  # type: ignore[arg-type]

    monkeypatch.setattr(node.loop, "run_in_executor", noted)
    assert node.ask(RenewDelegationTokenRequest(hmac=made.hmac)).error_code == 0
    assert "renew_token" in [getattr(each, "__name__", "") for each in computed]
