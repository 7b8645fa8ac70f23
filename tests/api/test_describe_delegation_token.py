"""DescribeDelegationToken: which tokens a client sees."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import DescribeDelegationTokenRequest
from barnabas.security.acls import AclBinding, AclOperation, PatternType, Permission, ResourceType
from barnabas.security.delegation_tokens import TokenKey
from barnabas.security.principal import Principal
from tests.api.controlling import Controlling
from tests.api.token_node import ALICE, AUTHORIZER, BOB, CAROL, SECRET, STRANGERS, TokenNode

ADMIN, DAVE = Principal("User", "admin"), Principal("User", "dave")


class Four(TokenNode):
    """Four tokens: alice's, which bob may renew; bob's; bob's, which the admin requested; carol's."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, **SECRET, **AUTHORIZER)
        self.of_alice = self.create(BOB).token_id
        self.log_in(BOB)
        self.of_bob = self.create().token_id
        self.log_in(ADMIN)
        self.for_bob = self.create(owner=BOB).token_id
        self.log_in(CAROL)
        self.of_carol = self.create().token_id

    def seen(self, by: Principal, *owners: Principal, every: bool = False, version: int = 3) -> set[str]:
        self.log_in(by)
        answer = self.ask(asking(None if every else owners), version)
        assert answer.error_code == 0
        return {token.token_id for token in answer.tokens}

    def allow(self, operation: AclOperation, kind: ResourceType, name: str) -> None:
        rule = AclBinding(kind, name, PatternType.LITERAL, "User:dave", "*", operation, Permission.ALLOW)
        assert self.server.services.authorizer is not None
        self.server.services.authorizer.add(str(rule).encode(), rule)


def asking(owners: Any) -> DescribeDelegationTokenRequest:
    kind = DescribeDelegationTokenRequest
    if owners is None:
        return kind(owners=None)
    return kind(
        owners=[kind.DescribeDelegationTokenOwner(principal_type=o.type, principal_name=o.name) for o in owners]
    )


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Four]:
    made = Four(tmp_path_factory.mktemp("tokens"))
    yield made
    made.close()


def test_a_client_sees_its_own_those_it_may_renew_and_those_it_requested(node: Four) -> None:
    assert node.seen(ALICE, every=True) == {node.of_alice}
    assert node.seen(BOB, every=True) == {node.of_alice, node.of_bob, node.for_bob}
    assert node.seen(CAROL, every=True) == {node.of_carol}
    assert node.seen(DAVE, every=True) == set()
    assert node.seen(ADMIN, every=True) == {node.of_alice, node.of_bob, node.for_bob, node.of_carol}


def test_owners_select(node: Four) -> None:
    assert node.seen(ADMIN) == set(), "an empty list selects nothing"
    assert node.seen(ADMIN, BOB) == {node.of_alice, node.of_bob, node.for_bob}
    assert node.seen(ADMIN, CAROL, ADMIN) == {node.of_carol, node.for_bob}
    assert node.seen(ADMIN, Principal("Group", "bob")) == set()
    assert node.seen(CAROL, BOB) == set(), "and give no right"


def test_rights_to_tokens_of_others(node: Four) -> None:
    node.allow(AclOperation.DESCRIBE, ResourceType.DELEGATION_TOKEN, node.of_carol)
    assert node.seen(DAVE, every=True) == {node.of_carol}
    node.allow(AclOperation.DESCRIBE_TOKENS, ResourceType.USER, "User:bob")
    assert node.seen(DAVE, every=True) == {node.of_carol, node.of_bob, node.for_bob}
    assert node.seen(DAVE, CAROL) == {node.of_carol}


@pytest.mark.parametrize("version", [1, 2, 3])
def test_what_is_told_of_a_token(node: Four, version: int) -> None:
    node.log_in(ALICE)
    (token,) = node.ask(asking([ALICE]), version).tokens
    assert token.hmac == TokenKey("a secret of the cluster").hmac(token.token_id)
    assert (token.principal_type, token.principal_name) == ("User", "alice")
    assert token.token_requester_principal_name == ("alice" if version == 3 else "")
    assert [(each.principal_type, each.principal_name) for each in token.renewers] == [("User", "bob")]
    assert (token.issue_timestamp, token.expiry_timestamp) == (node.now_ms, node.now_ms + 86_400_000)
    assert token.max_timestamp == node.now_ms + 7 * 86_400_000


@pytest.mark.parametrize(("protocol", "principal"), STRANGERS)
def test_who_may_not_ask(node: Four, protocol: str, principal: Principal) -> None:
    node.log_in(principal, protocol)
    answer = node.ask(asking(None))
    assert (answer.error_code, answer.tokens) == (ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, [])


def test_without_the_secret_and_without_an_authorizer(tmp_path: Path) -> None:
    node = TokenNode(tmp_path / "without")
    assert node.ask(asking([])).error_code == ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED
    node.close()
    node = TokenNode(tmp_path / "with", **SECRET)
    made = node.create(owner=Principal("", "nobody"))
    node.log_in(CAROL)
    (token,) = node.ask(asking(None)).tokens
    assert token.token_id == made.token_id, "everything is allowed"
    assert (token.principal_type, token.principal_name) == ("", "nobody")
    node.close()


def test_a_controller_has_no_answer() -> None:
    node = Controlling(**SECRET)
    node.connection.security_protocol, node.connection.principal = "SASL_SSL", ALICE
    assert node.ask(asking(None)).error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    node.close()
