"""Users of SCRAM: what is listed, and what is sent in place of a password."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest

from barnabas.client.admin import Admin
from barnabas.client.scram_users import ScramUser
from barnabas.protocol import messages
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.security.sasl.scram_keys import ScramMechanism
from tests.client.scripted_broker import MemoryCluster
from tests.client.versions import only

LISTED = messages.DescribeUserScramCredentialsResponse
ALTERED = messages.AlterUserScramCredentialsResponse
RESULT = ALTERED.AlterUserScramCredentialsResult


def test_users_are_sorted(memory: MemoryCluster, admin: Admin) -> None:
    only(memory, messages.DescribeUserScramCredentialsRequest, 0)
    info = LISTED.CredentialInfo
    result = LISTED.DescribeUserScramCredentialsResult
    found = [
        result(user="bob", credential_infos=[info(mechanism=2, iterations=8192)]),
        result(user="alice", credential_infos=[info(mechanism=1, iterations=4096), info(mechanism=9, iterations=1)]),
    ]
    memory.handlers["DescribeUserScramCredentialsRequest"] = lambda *_: LISTED(results=found)
    assert admin.list_users() == [
        ScramUser("alice", "SCRAM-SHA-256", 4096),
        ScramUser("alice", "mechanism 9", 1),
        ScramUser("bob", "SCRAM-SHA-512", 8192),
    ]


def test_an_error_of_the_whole_list_is_raised(memory: MemoryCluster, admin: Admin) -> None:
    only(memory, messages.DescribeUserScramCredentialsRequest, 0)
    code = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    memory.handlers["DescribeUserScramCredentialsRequest"] = lambda *_: LISTED(error_code=code, error_message="no")
    with pytest.raises(KafkaError) as raised:
        admin.list_users()
    assert raised.value.code == code


def test_a_broker_gets_the_salted_password(memory: MemoryCluster, admin: Admin) -> None:
    only(memory, messages.AlterUserScramCredentialsRequest, 0)
    asked: list[Any] = []

    def alter(broker_id: int, request: Any, version: int) -> Any:
        asked.append(request)
        return ALTERED(results=[RESULT(user="alice", error_code=0, error_message=None)])

    memory.handlers["AlterUserScramCredentialsRequest"] = alter
    assert admin.set_password("alice", ScramMechanism.SCRAM_SHA_256, "secret", b"salt", 5000) is None
    assert admin.delete_password("alice", ScramMechanism.SCRAM_SHA_512) is None
    (upsertion,), (deletion,) = asked[0].upsertions, asked[1].deletions
    assert (upsertion.name, upsertion.mechanism, upsertion.iterations, upsertion.salt) == ("alice", 1, 5000, b"salt")
    assert upsertion.salted_password == hashlib.pbkdf2_hmac("sha256", b"secret", b"salt", 5000)
    assert (deletion.name, deletion.mechanism) == ("alice", 2)
    assert (asked[0].deletions, asked[1].upsertions) == ([], [])


def test_an_error_of_a_change_is_returned(memory: MemoryCluster, admin: Admin) -> None:
    only(memory, messages.AlterUserScramCredentialsRequest, 0)
    refused = RESULT(user="alice", error_code=ErrorCode.RESOURCE_NOT_FOUND, error_message="absent")
    memory.handlers["AlterUserScramCredentialsRequest"] = lambda *_: ALTERED(results=[refused])
    error = admin.delete_password("alice", ScramMechanism.SCRAM_SHA_256)
    assert error is not None
    assert error.code == ErrorCode.RESOURCE_NOT_FOUND
