"""SCRAM credentials: the stored keys follow RFC 5802, and no response has a key."""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import AlterUserScramCredentialsRequest, DescribeUserScramCredentialsRequest
from tests.api.served_node import Serving

SHA_256, SHA_512 = 1, 2
_Deletion = AlterUserScramCredentialsRequest.ScramCredentialDeletion
_Upsertion = AlterUserScramCredentialsRequest.ScramCredentialUpsertion


@pytest.fixture
def serving(tmp_path: Path) -> Iterator[Serving]:
    node = Serving(tmp_path)
    yield node
    node.close()


def upsertion(name: str, mechanism: int = SHA_256, iterations: int = 4096) -> Any:
    salted = hashlib.pbkdf2_hmac({SHA_512: "sha512"}.get(mechanism, "sha256"), b"pencil", b"salt", iterations)
    return _Upsertion(name=name, mechanism=mechanism, iterations=iterations, salt=b"salt", salted_password=salted)


def alter(serving: Serving, deletions: list[Any] = [], upsertions: list[Any] = []) -> dict[str, int]:  # noqa: B006
    answer = serving.ask(AlterUserScramCredentialsRequest(deletions=deletions, upsertions=upsertions))
    return {result.user: result.error_code for result in answer.results}


def describe(serving: Serving, *names: str) -> dict[str, Any]:
    users = [DescribeUserScramCredentialsRequest.UserName(name=name) for name in names]
    answer = serving.ask(DescribeUserScramCredentialsRequest(users=users or None))
    return {
        result.user: result.error_code or [(info.mechanism, info.iterations) for info in result.credential_infos]
        for result in answer.results
    }


def test_the_keys_check_the_exchange_of_rfc_7677(serving: Serving) -> None:
    nonce = "rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
    salt = base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
    client_proof = base64.b64decode("dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=")
    server_signature = base64.b64decode("6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=")
    exchange = f"n=user,r=rOprNGfwEbeRWgbNEkqO,r={nonce},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096,c=biws,r={nonce}".encode()
    salted = hashlib.pbkdf2_hmac("sha256", b"pencil", salt, 4096)
    request = _Upsertion(name="user", mechanism=SHA_256, iterations=4096, salt=salt, salted_password=salted)
    assert alter(serving, upsertions=[request]) == {"user": 0}
    kept = serving.server.services.image().scram.credentials["user", SHA_256]
    signature = hmac.digest(kept.stored_key, exchange, "sha256")
    client_key = bytes(a ^ b for a, b in zip(client_proof, signature, strict=True))
    assert hashlib.sha256(client_key).digest() == kept.stored_key
    assert hmac.digest(kept.server_key, exchange, "sha256") == server_signature
    assert (kept.salt, kept.iterations) == (salt, 4096)


def test_altering_and_describing(serving: Serving) -> None:
    assert alter(serving, upsertions=[upsertion("a"), upsertion("b", SHA_512, 8192)]) == {"a": 0, "b": 0}
    assert alter(serving, upsertions=[upsertion("a", SHA_512, 16384)]) == {"a": 0}
    assert describe(serving) == {"a": [(SHA_256, 4096), (SHA_512, 16384)], "b": [(SHA_512, 8192)]}
    assert describe(serving, "b", "z") == {"b": [(SHA_512, 8192)], "z": ErrorCode.RESOURCE_NOT_FOUND}
    assert describe(serving, "b", "b") == {"b": ErrorCode.DUPLICATE_RESOURCE}
    assert alter(serving, deletions=[_Deletion(name="a", mechanism=SHA_256)]) == {"a": 0}
    assert describe(serving, "a") == {"a": [(SHA_512, 16384)]}


def test_invalid_changes_are_rejected(serving: Serving) -> None:
    assert alter(serving, deletions=[_Deletion(name="a", mechanism=SHA_256)]) == {"a": ErrorCode.RESOURCE_NOT_FOUND}
    refused = alter(
        serving,
        upsertions=[upsertion("few", iterations=4095), upsertion("many", iterations=16385), upsertion("x", 9)],
    )
    assert refused == {
        "few": ErrorCode.UNACCEPTABLE_CREDENTIAL,
        "many": ErrorCode.UNACCEPTABLE_CREDENTIAL,
        "x": ErrorCode.UNSUPPORTED_SASL_MECHANISM,
    }
    assert alter(serving, upsertions=[upsertion("")]) == {"": ErrorCode.UNACCEPTABLE_CREDENTIAL}
    assert describe(serving) == {}


def test_a_user_twice_in_a_request_is_not_altered_at_all(serving: Serving) -> None:
    alter(serving, upsertions=[upsertion("a")])
    twice = alter(serving, [_Deletion(name="a", mechanism=SHA_256)], [upsertion("a", SHA_512), upsertion("b")])
    assert twice == {"a": ErrorCode.DUPLICATE_RESOURCE, "b": 0}
    assert describe(serving) == {"a": [(SHA_256, 4096)], "b": [(SHA_256, 4096)]}


def test_credentials_survive_a_restart_and_reset_removes_them(tmp_path: Path) -> None:
    node = Serving(tmp_path)
    alter(node, upsertions=[upsertion("a"), upsertion("b")])
    alter(node, upsertions=[upsertion("a", SHA_512)])
    node.close()
    node = Serving(tmp_path)
    assert sorted(describe(node)) == ["a", "b"]
    node.loop.run_until_complete(node.server.reset())
    assert describe(node) == {}
    node.close()
