"""The client's side of SCRAM: the exchange of RFC 7677, and servers that it does not trust."""

from __future__ import annotations

import os

import pytest

from barnabas.security.sasl.mechanism import LoginFailed
from barnabas.security.sasl.scram_client import ScramClient, ScramPassword
from barnabas.security.sasl.scram_keys import ScramMechanism

SHA_256 = ScramMechanism.SCRAM_SHA_256


class Nonce(bytes):
    """Random bytes whose hexadecimal form is a given text."""

    text: str

    def hex(self, *_: object) -> str:  # type: ignore[override]
        return self.text


def fixed(text: str) -> Nonce:
    nonce = Nonce()
    nonce.text = text
    return nonce


def client(nonce: str = "rOprNGfwEbeRWgbNEkqO", **options: bool) -> ScramClient:
    return ScramClient(ScramPassword(SHA_256, "user", "pencil", **options), lambda size: fixed(nonce))


def test_the_exchange_of_rfc_7677() -> None:
    machine = client()
    assert machine.begin() == b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
    final = machine.respond(b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096")
    assert final == (
        b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
    )
    assert machine.respond(b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=") is None


@pytest.mark.parametrize(
    ("first", "text"),
    [
        (b"r=another,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096", "does not start with client nonce"),
        (b"r=rOprNGfwEbeRWgbNEkqO1,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4095", "4095 is less than the minimum 4096"),
        (b"r=rOprNGfwEbeRWgbNEkqO1,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=2147483647", "is more than 1000000"),
        (b"", "Invalid SCRAM server first message format"),
    ],
)
def test_a_first_message_that_is_not_answered(first: bytes, text: str) -> None:
    machine = client()
    machine.begin()
    with pytest.raises(LoginFailed, match=text):
        machine.respond(first)


@pytest.mark.parametrize(
    ("last", "text"),
    [
        (b"v=7rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=", "Invalid server signature"),
        (b"v=", "Invalid server signature"),
        (b"e=invalid-proof", "failed with error: invalid-proof"),
        (b"", "Invalid SCRAM server final message format"),
    ],
)
def test_a_server_that_does_not_prove_itself(last: bytes, text: str) -> None:
    machine = client()
    machine.begin()
    machine.respond(b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096")
    with pytest.raises(LoginFailed, match=text):
        machine.respond(last)


def test_a_delegation_token_is_announced() -> None:
    assert client("x", by_token=True).begin() == b"n,,n=user,r=x,tokenauth=true"


def test_the_salted_password_is_kept_for_the_next_login(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def counted(*arguments: object) -> bytes:
        asked.append(arguments[2])
        return b"salted"

    monkeypatch.setattr("barnabas.security.sasl.scram_client.salted_password", counted)
    password = ScramPassword(SHA_256, "user", "pencil")
    assert [password.salted(salt, 4096) for salt in (b"a", b"a", b"b")] == [b"salted"] * 3
    assert asked == [b"a", b"b"]


def test_nonces_differ_and_reprs_have_no_password() -> None:
    password = ScramPassword(SHA_256, "user", "pencil")
    assert ScramClient(password, os.urandom).begin() != ScramClient(password, os.urandom).begin()
    assert repr(password) == "<ScramPassword SCRAM-SHA-256 'user'>"
    assert repr(client()) == "<ScramClient SCRAM-SHA-256 'user'>"
