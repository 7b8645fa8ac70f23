"""The active controller asks for the owner of a new token; the handlers of a broker ask, too (`tests/api/test_create_delegation_token`)."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from barnabas.api.authorization.tokens import create_delegation_token, may_create_for
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import CreateDelegationTokenRequest, CreateDelegationTokenResponse
from barnabas.security.acls import AclOperation, ResourceType
from barnabas.security.principal import Principal

ALICE = Principal("User", "alice")


class Asking:
    """An asker with an answer to every question, which it notes."""

    def __init__(self, answer: bool) -> None:
        self.principal = ALICE
        self.version = 3
        self.answer = answer
        self.asked: list[tuple[AclOperation, ResourceType, str]] = []

    def may(self, operation: AclOperation, kind: ResourceType, name: str) -> bool:
        self.asked.append((operation, kind, name))
        return self.answer


async def made(request: CreateDelegationTokenRequest) -> CreateDelegationTokenResponse:
    return CreateDelegationTokenResponse(token_id="made")


def answer(asker: Any, **owner: Any) -> CreateDelegationTokenResponse:
    return asyncio.run(create_delegation_token(asker, CreateDelegationTokenRequest(**owner), made))


@pytest.mark.parametrize(
    "owner", [{}, {"owner_principal_name": None}, {"owner_principal_type": "User", "owner_principal_name": "alice"}]
)
def test_oneself_needs_no_right(owner: dict[str, Any]) -> None:
    asker: Any = Asking(answer=False)
    assert answer(asker, **owner).token_id == "made"
    assert asker.asked == []


@pytest.mark.parametrize("allowed", [True, False])
def test_another_owner_needs_one(allowed: bool) -> None:
    asker: Any = Asking(allowed)
    found = answer(asker, owner_principal_type="User", owner_principal_name="bob")
    assert asker.asked == [(AclOperation.CREATE_TOKENS, ResourceType.USER, "User:bob")]
    if allowed:
        assert found.token_id == "made"
    else:
        assert (found.error_code, found.principal_name, found.token_requester_principal_name) == (65, "bob", "alice")
        assert ErrorCode(found.error_code) is ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED


def test_the_type_counts() -> None:
    asker: Any = Asking(answer=False)
    request = CreateDelegationTokenRequest(owner_principal_type="Group", owner_principal_name="alice")
    assert not may_create_for(asker, request)
