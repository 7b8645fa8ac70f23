"""Principals in the bytes of Apache Kafka 4.4's `DefaultKafkaPrincipalBuilder`."""

from __future__ import annotations

import pytest

from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.principal import read_principal, write_principal
from barnabas.security.principal import ANONYMOUS, Principal

ALICE = Principal("User", "alice")


@pytest.mark.parametrize(
    ("principal", "encoded"),
    [
        # version 0 | "User" | name | not authenticated by a token | no tags
        (ANONYMOUS, "0000 0555736572 0a414e4f4e594d4f5553 00 00"),
        (ALICE, "0000 0555736572 06616c696365 00 00"),
        (Principal("User", "a:b"), "0000 0555736572 04613a62 00 00"),
    ],
)
def test_the_bytes_are_kafkas(principal: Principal, encoded: str) -> None:
    assert write_principal(principal) == bytes.fromhex(encoded)
    assert read_principal(bytes.fromhex(encoded)) == principal


def test_a_principal_that_a_token_authenticated_is_read() -> None:
    principal = read_principal(bytes.fromhex("0000 0555736572 06616c696365 01 00"))
    assert (principal, principal.by_token) == (ALICE, True)
    assert read_principal(write_principal(principal)).by_token
    assert not read_principal(write_principal(ALICE)).by_token


def test_bytes_after_a_principal_are_ignored() -> None:
    assert read_principal(write_principal(ALICE) + b"\x09") == ALICE


@pytest.mark.parametrize(
    "data", [None, b"", b"\0", b"\0\0\5", b"\0\1\1\1\0\0", b"\0\0\5User\6ali"], ids=lambda data: repr(data)
)
def test_other_bytes_are_rejected(data: bytes | None) -> None:
    with pytest.raises(KafkaError) as raised:
        read_principal(data)
    assert raised.value.code == ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE
