"""Delegation tokens: what is asked, and what is made of the answers."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.client.admin import Admin
from barnabas.client.delegation_tokens import DelegationToken
from barnabas.protocol import messages as m
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.security.principal import Principal
from tests.client.scripted_broker import MemoryCluster
from tests.client.versions import every_version, only

ALICE, BOB, CAROL = (Principal("User", name) for name in ("alice", "bob", "carol"))


def answer(memory: MemoryCluster, kind: Any, response: Any, version: int | None = None) -> list[Any]:
    """Have the brokers answer with a response; return the list of the requests."""
    asked: list[Any] = []
    only(memory, kind, kind.MAX_VERSION if version is None else version)

    def handler(broker_id: int, request: Any, version: int) -> Any:
        asked.append(request)
        return response

    memory.handlers[kind.NAME] = handler
    return asked


@pytest.mark.parametrize("version", every_version(m.CreateDelegationTokenRequest))
def test_a_token_is_created(memory: MemoryCluster, admin: Admin, version: int) -> None:
    response = m.CreateDelegationTokenResponse(
        principal_type="User", principal_name="bob", issue_timestamp_ms=1, expiry_timestamp_ms=2, max_timestamp_ms=3,
        token_id="id", hmac=b"hmac",
    )  # fmt: skip
    if version >= 3:
        response.token_requester_principal_type, response.token_requester_principal_name = "User", "alice"
    asked = answer(memory, m.CreateDelegationTokenRequest, response, version)
    made = admin.create_token(renewers=[CAROL], owner=BOB if version >= 3 else None, max_lifetime_ms=7)
    assert made == DelegationToken("id", b"hmac", BOB, ALICE if version >= 3 else BOB, (CAROL,), 1, 2, 3)
    (request,) = asked
    assert [(each.principal_type, each.principal_name) for each in request.renewers] == [("User", "carol")]
    assert request.max_lifetime_ms == 7
    assert request.owner_principal_name == ("bob" if version >= 3 else "")


def test_an_old_broker_knows_no_owners(memory: MemoryCluster, admin: Admin) -> None:
    asked = answer(memory, m.CreateDelegationTokenRequest, None, 2)
    with pytest.raises(KafkaError) as raised:
        admin.create_token(owner=BOB)
    assert (raised.value.code, asked) == (ErrorCode.UNSUPPORTED_VERSION, [])


def test_a_token_is_renewed_and_expired(memory: MemoryCluster, admin: Admin) -> None:
    renewed = answer(memory, m.RenewDelegationTokenRequest, m.RenewDelegationTokenResponse(expiry_timestamp_ms=5))
    expired = answer(memory, m.ExpireDelegationTokenRequest, m.ExpireDelegationTokenResponse(expiry_timestamp_ms=6))
    assert (admin.renew_token(b"h"), admin.renew_token(b"h", period_ms=9)) == (5, 5)
    assert (admin.expire_token(b"h"), admin.expire_token(b"h", period_ms=9)) == (6, 6)
    assert [(each.hmac, each.renew_period_ms) for each in renewed] == [(b"h", -1), (b"h", 9)]
    assert [(each.hmac, each.expiry_time_period_ms) for each in expired] == [(b"h", -1), (b"h", 9)]


@pytest.mark.parametrize("version", every_version(m.DescribeDelegationTokenRequest))
def test_tokens_are_described_by_age(memory: MemoryCluster, admin: Admin, version: int) -> None:
    kind = m.DescribeDelegationTokenResponse
    requester = {"token_requester_principal_type": "User", "token_requester_principal_name": "alice"}

    def token(token_id: str, issued_ms: int) -> Any:
        renewers = [kind.DescribedDelegationTokenRenewer(principal_type="User", principal_name="carol")]
        return kind.DescribedDelegationToken(
            principal_type="User", principal_name="bob", issue_timestamp=issued_ms, expiry_timestamp=8, max_timestamp=9,
            token_id=token_id, hmac=b"hmac", renewers=renewers, **(requester if version >= 3 else {}),
        )  # fmt: skip

    asked = answer(
        memory, m.DescribeDelegationTokenRequest, kind(tokens=[token("b", 2), token("c", 1), token("a", 2)]), version
    )
    found = admin.describe_tokens()
    assert [each.token_id for each in found] == ["c", "a", "b"]
    assert found[0] == DelegationToken("c", b"hmac", BOB, ALICE if version >= 3 else BOB, (CAROL,), 1, 8, 9)
    admin.describe_tokens([BOB])
    assert asked[0].owners is None
    assert [(each.principal_type, each.principal_name) for each in asked[1].owners] == [("User", "bob")]


@pytest.mark.parametrize(
    ("ask", "response"),
    [
        (lambda admin: admin.create_token(), m.CreateDelegationTokenResponse),
        (lambda admin: admin.renew_token(b""), m.RenewDelegationTokenResponse),
        (lambda admin: admin.expire_token(b""), m.ExpireDelegationTokenResponse),
        (lambda admin: admin.describe_tokens(), m.DescribeDelegationTokenResponse),
    ],
)
def test_an_error_is_raised(memory: MemoryCluster, admin: Admin, ask: Any, response: Any) -> None:
    request = getattr(m, response.NAME.replace("Response", "Request"))
    answer(memory, request, response(error_code=ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED))
    with pytest.raises(KafkaError) as raised:
        ask(admin)
    assert raised.value.code is ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED


def test_no_repr_has_the_hmac() -> None:
    assert "hmac" not in repr(DelegationToken("id", b"hmac", BOB, BOB, (), 1, 2, 3))
