"""CreateDelegationToken: who may ask, for whom, and what the answers of a broker and of a controller say."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.protocol.envelope import unwrapped, wrapped
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import CreateDelegationTokenRequest
from barnabas.security.acls import AclBinding, AclOperation, PatternType, Permission, ResourceType
from barnabas.security.principal import Principal
from tests.api.controlling import Controlling
from tests.api.token_node import ALICE, AUTHORIZER, BOB, SECRET, STRANGERS, TokenNode


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TokenNode]:
    made = TokenNode(tmp_path_factory.mktemp("tokens"), **SECRET, **AUTHORIZER)
    yield made
    made.close()


@pytest.mark.parametrize("version", [1, 2, 3])
def test_a_token_in_every_version(node: TokenNode, version: int) -> None:
    node.log_in(ALICE)
    made = node.create(BOB, version=version, max_lifetime_ms=-1)
    assert (made.error_code, made.principal_name, len(made.hmac)) == (0, "alice", 64)
    assert made.token_requester_principal_name == ("alice" if version == 3 else "")
    assert made.token_id in node.server.image.delegation_tokens.tokens


@pytest.mark.parametrize(("protocol", "principal"), STRANGERS)
def test_who_may_not_ask(node: TokenNode, protocol: str, principal: Principal) -> None:
    node.log_in(principal, protocol)
    before = node.server.image.delegation_tokens
    refused = node.create(owner=BOB)
    assert refused.error_code == ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
    assert (refused.principal_name, refused.token_requester_principal_name) == ("bob", principal.name)
    assert (refused.issue_timestamp_ms, refused.expiry_timestamp_ms, refused.max_timestamp_ms) == (-1, -1, -1)
    assert (refused.token_id, refused.hmac) == ("", b"")
    assert node.server.image.delegation_tokens == before


def test_a_token_for_somebody_else_needs_a_right(node: TokenNode) -> None:
    node.log_in(ALICE)
    refused = node.create(owner=BOB)
    assert refused.error_code == ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED
    assert (refused.principal_name, refused.token_requester_principal_name, refused.max_timestamp_ms) == (
        "bob",
        "alice",
        -1,
    )
    authorizer = node.server.services.authorizer
    assert authorizer is not None
    allow = (PatternType.LITERAL, "User:alice", "*", AclOperation.CREATE_TOKENS, Permission.ALLOW)
    authorizer.add(b"one", AclBinding(ResourceType.USER, "User:bob", *allow))
    made = node.create(owner=BOB)
    assert (made.error_code, made.principal_name, made.token_requester_principal_name) == (0, "bob", "alice")
    assert node.create(owner=ALICE).error_code == 0, "oneself needs no right"
    assert node.create(owner=Principal("Group", "bob")).error_code == ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED
    authorizer.remove(b"one")


def test_the_order_of_the_errors(node: TokenNode) -> None:
    staff = Principal("Group", "staff")
    node.log_in(ALICE)
    assert node.create(staff, owner=BOB).error_code == ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED
    assert node.create(staff).error_code == ErrorCode.INVALID_PRINCIPAL_TYPE
    node.log_in(ALICE, "PLAINTEXT")
    assert node.create(staff, owner=BOB).error_code == ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED


def test_without_the_secret(tmp_path: Path) -> None:
    node = TokenNode(tmp_path)
    answer = node.create(BOB)
    assert (answer.error_code, answer.principal_name) == (ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED, "alice")
    assert node.create(Principal("Group", "staff")).error_code == ErrorCode.INVALID_PRINCIPAL_TYPE, (
        "the broker's own look"
    )
    node.close()


def test_at_a_controller() -> None:
    """It looks at the connection of those who dial it, and at the principal alone in an Envelope."""
    node = Controlling(**SECRET)
    request = CreateDelegationTokenRequest(max_lifetime_ms=-1)
    assert node.ask(request).error_code == ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
    node.connection.security_protocol, node.connection.principal = "SASL_SSL", ALICE
    assert node.ask(request).error_code == 0
    node.connection.security_protocol = "PLAINTEXT"
    found = []
    for principal in (ALICE, Principal("User", "alice", by_token=True)):
        sealed = wrapped(request, 3, correlation_id=7, client_id="app", principal=principal, host="10.1.2.3")
        inner = unwrapped(node.ask(sealed).response_data, request.API_KEY, 3, 7)
        found.append((ErrorCode(inner.error_code), inner.principal_name))
    assert found == [(ErrorCode.NONE, "alice"), (ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, "alice")]
    node.resign()
    node.connection.security_protocol = "SASL_SSL"
    away = node.ask(request)
    assert (away.error_code, away.principal_name, away.max_timestamp_ms) == (ErrorCode.NOT_CONTROLLER, "ANONYMOUS", -1)
    node.close()
