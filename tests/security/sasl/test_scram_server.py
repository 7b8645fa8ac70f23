"""The server's side of SCRAM: the exchange of RFC 7677, strangers, delegation tokens, and what does not fit the grammar."""

from __future__ import annotations

import base64
import os
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.security.principal import Principal
from barnabas.security.sasl.mechanism import LoginFailed
from barnabas.security.sasl.scram_client import ScramClient, ScramPassword
from barnabas.security.sasl.scram_keys import ScramMechanism, credential_of_password
from barnabas.security.sasl.scram_server import ScramServer, ScramUsers, TokenCredential
from tests.security.sasl.test_scram_client import fixed

SHA_256 = ScramMechanism.SCRAM_SHA_256
REFUSED = "Authentication failed during authentication due to invalid credentials with SASL mechanism SCRAM-SHA-256"
ALICE = credential_of_password(SHA_256, "alice-secret", b"salt of alice")
TOKEN = TokenCredential(Principal("User", "owner"), 1_800_000_000_000, credential_of_password(SHA_256, "hmac", b"salt"))
USERS = ScramUsers({"alice": ALICE}.get, {"token-id": TOKEN}.get, b"a secret of the cluster")


def server(users: ScramUsers = USERS, mechanism: ScramMechanism = SHA_256) -> ScramServer:
    return ScramServer(mechanism, users, os.urandom)


def login(machine: ScramServer, user: str, password: str, *, by_token: bool = False) -> None:
    mechanism = ScramMechanism.of(machine.name)
    assert mechanism is not None
    client = ScramClient(ScramPassword(mechanism, user, password, by_token=by_token), os.urandom)
    said: bytes | None = client.begin()
    while said is not None:
        said = client.respond(machine.respond(said))


def test_the_exchange_of_rfc_7677() -> None:
    salt = base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
    users = ScramUsers({"user": credential_of_password(SHA_256, "pencil", salt)}.get, {}.get, b"")
    machine = ScramServer(SHA_256, users, lambda size: fixed("%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"))
    first = machine.respond(b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO")
    assert first == b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
    assert not machine.is_finished
    last = machine.respond(
        b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
    )
    assert last == b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="
    assert machine.is_finished
    assert machine.principal == Principal("User", "user")


@pytest.mark.parametrize("mechanism", ScramMechanism)
@settings(max_examples=20)
@given(
    user=st.text(st.characters(min_codepoint=1, max_codepoint=127), min_size=1),
    password=st.text(st.characters(exclude_categories=("Cs",))),
)
def test_whoever_knows_the_password_logs_in(mechanism: ScramMechanism, user: str, password: str) -> None:
    users = ScramUsers({user: credential_of_password(mechanism, password, b"salt")}.get, {}.get, b"")
    machine = server(users, mechanism)
    login(machine, user, password)
    assert machine.principal == Principal("User", user)
    assert machine.lifetime_ms is None
    with pytest.raises(LoginFailed):
        login(server(users, mechanism), user, password + "x")


def test_a_stranger_looks_like_a_user_with_a_wrong_password() -> None:
    seen = []
    for user in ("alice", "mallory"):
        machine = server()
        client = ScramClient(ScramPassword(SHA_256, user, "guess"), os.urandom)
        first = machine.respond(client.begin())
        final = client.respond(first)
        assert final is not None
        with pytest.raises(LoginFailed) as failed:
            machine.respond(final)
        assert not machine.is_finished
        seen.append((re.sub(rb"r=\w+,s=[^,]+", b"r=x", first), failed.value.text))
    assert seen[0] == seen[1]
    assert seen[0][1] == REFUSED


def test_a_stranger_gets_the_same_salt_each_time() -> None:
    salts = {re.sub(rb"r=\w+", b"", server().respond(b"n,,n=mallory,r=x")) for _ in range(5)}
    assert len(salts) == 1


def test_the_operator_reads_why() -> None:
    for user, why in (("alice", "wrong password"), ("mallory", "no such user")):
        with pytest.raises(LoginFailed) as failed:
            login(server(), user, "guess")
        assert failed.value.why == f"{REFUSED}: {why}, user {user}"


def test_a_delegation_token_is_its_owner_until_it_ends() -> None:
    machine = server()
    login(machine, "token-id", "hmac", by_token=True)
    assert machine.principal == Principal("User", "owner")
    assert machine.principal.by_token
    assert machine.lifetime_ms == 1_800_000_000_000


@pytest.mark.parametrize(("user", "by_token"), [("token-id", False), ("alice", True), ("other-id", True)])
def test_tokens_and_users_are_two_lists(user: str, by_token: bool) -> None:
    with pytest.raises(LoginFailed, match=REFUSED):
        login(server(), user, "hmac" if user == "token-id" else "alice-secret", by_token=by_token)


@pytest.mark.parametrize("data", [b"", b"n,,n=,r=x", b"\0alice\0alice-secret", b"\xff" * 100])
def test_a_first_message_outside_the_grammar_gets_the_same_text(data: bytes) -> None:
    with pytest.raises(LoginFailed) as failed:
        server().respond(data)
    assert failed.value.text == REFUSED
    assert "alice-secret" not in failed.value.why


def test_another_authorization_id_is_refused() -> None:
    with pytest.raises(LoginFailed) as failed:
        server().respond(b"n,a=bob,n=alice,r=x")
    assert (
        failed.value.text
        == "Authentication failed: Client requested an authorization id that is different from username"
    )
    server().respond(b"n,a=alice,n=alice,r=x")


@pytest.mark.parametrize(
    "proof", ["", "AAAA", base64.b64encode(bytes(32)).decode(), base64.b64encode(bytes(64)).decode()]
)
def test_a_wrong_proof_is_refused(proof: str) -> None:
    machine = server()
    nonce = machine.respond(b"n,,n=alice,r=x").split(b",")[0].decode()
    with pytest.raises(LoginFailed, match=REFUSED):
        machine.respond(f"c=biws,{nonce},p={proof}".encode())
    assert not machine.is_finished


def test_the_proof_of_another_login_is_refused() -> None:
    client = ScramClient(ScramPassword(SHA_256, "alice", "alice-secret"), os.urandom)
    final = client.respond(server().respond(client.begin()))
    assert final is not None
    replayed = server()
    replayed.respond(client.begin())
    with pytest.raises(LoginFailed) as failed:
        replayed.respond(final)
    assert "nonce" in failed.value.why


def test_too_few_iterations_are_refused() -> None:
    users = ScramUsers({"alice": ALICE._replace(iterations=4095)}.get, {}.get, b"")
    with pytest.raises(LoginFailed, match=REFUSED):
        server(users).respond(b"n,,n=alice,r=x")


def test_the_text_of_a_renewed_login() -> None:
    machine = ScramServer(SHA_256, USERS, os.urandom, "re-authentication")
    with pytest.raises(LoginFailed, match="during re-authentication due to"):
        machine.respond(b"")


def test_reprs_have_no_key() -> None:
    machine = server()
    machine.respond(b"n,,n=alice,r=x")
    assert repr(machine) == "<ScramServer SCRAM-SHA-256 'alice'>"
    assert repr(USERS) == "<ScramUsers>"
