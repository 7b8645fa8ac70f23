"""Logins to Apache Kafka with our machines, and the same wrong tokens to Apache Kafka and to our server's side: the texts are the same."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

import pytest
from apache_kafka import ApacheKafka, free_port

from barnabas.client.wire import BlockingConnection
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import SaslAuthenticateRequest, SaslHandshakeRequest
from barnabas.security.client_login import client_mechanism
from barnabas.security.sasl.mechanism import ClientMechanism, LoginFailed, ServerMechanism
from barnabas.security.sasl.oauth_claims import ClaimRules
from barnabas.security.sasl.oauth_server import OAuthBearerServer
from barnabas.security.sasl.oauth_unsecured import UnsecuredValidator
from barnabas.security.sasl.plain import PlainServer
from barnabas.security.sasl.scram_keys import ScramMechanism, credential_of_password, new_salt
from barnabas.security.sasl.scram_server import ScramServer, ScramUsers

pytestmark = [pytest.mark.conform, pytest.mark.slow]

MODULES = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "OAUTHBEARER": "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule",
}
PASSWORD = "p w=;'1"
QUOTED = PASSWORD.replace("\\", "\\\\").replace('"', '\\"')


class Secured(ApacheKafka):
    """A node with one more listener, on which clients log in."""

    format_options = (
        "--add-scram", f'SCRAM-SHA-256=[name="alice",iterations=5000,password="{PASSWORD}"]',
        "--add-scram", f'SCRAM-SHA-512=[name="alice",password="{PASSWORD}"]',
    )  # fmt: skip


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    port = free_port()
    kafka = Secured(tmp_path_factory.mktemp("kafka"))
    users = f'user_alice="{QUOTED}"'.replace("\\", "\\\\")
    kafka.settings = {
        "listeners": f"{kafka.properties()['listeners']},SASL_PLAINTEXT://127.0.0.1:{port}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT",
        "sasl.enabled.mechanisms": ",".join(MODULES),
        "connection.failed.authentication.delay.ms": "0",
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": f"{MODULES['PLAIN']} required {users};",
        "listener.name.sasl_plaintext.scram-sha-256.sasl.jaas.config": f"{MODULES['SCRAM-SHA-256']} required;",
        "listener.name.sasl_plaintext.scram-sha-512.sasl.jaas.config": f"{MODULES['SCRAM-SHA-512']} required;",
        "listener.name.sasl_plaintext.oauthbearer.sasl.jaas.config": f"{MODULES['OAUTHBEARER']} required;",
    }
    with kafka:
        yield port


def handshaken(port: int, mechanism: str) -> BlockingConnection:
    connection = BlockingConnection("127.0.0.1", port)
    answer = connection.request(SaslHandshakeRequest(mechanism=mechanism), version=1)
    assert answer.error_code == ErrorCode.NONE
    return connection


def their_answer(connection: BlockingConnection, token: bytes) -> bytes:
    answer = connection.request(SaslAuthenticateRequest(auth_bytes=token))
    if answer.error_code:
        assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
        raise LoginFailed(answer.error_message)
    return bytes(answer.auth_bytes)


def log_in(port: int, client: ClientMechanism) -> None:
    with handshaken(port, client.name) as connection:
        token: bytes | None = client.begin()
        while token is not None:
            token = client.respond(their_answer(connection, token))


def client(mechanism: str, options: str) -> ClientMechanism:
    return client_mechanism({"sasl.jaas.config": f"{MODULES[mechanism]} required {options};"}, mechanism)("127.0.0.1")


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_apache_kafka_takes_our_logins(port: int, mechanism: str) -> None:
    log_in(port, client(mechanism, f'username="alice" password="{QUOTED}"'))
    for user in ("alice", "mallory"):
        with pytest.raises(LoginFailed, match=r"^Authentication failed"):
            log_in(port, client(mechanism, f'username="{user}" password="guess"'))


def test_apache_kafka_takes_our_unsecured_tokens(port: int) -> None:
    log_in(port, client("OAUTHBEARER", 'unsecuredLoginStringClaim_sub="alice" unsecuredLoginExtension_traceId="7"'))


def our_side(mechanism: str) -> ServerMechanism:
    if mechanism == "PLAIN":
        return PlainServer({"alice": PASSWORD}.get)
    if mechanism == "OAUTHBEARER":
        return OAuthBearerServer(UnsecuredValidator(ClaimRules(), lambda: 1_700_000_000_000))
    scram = ScramMechanism.of(mechanism)
    assert scram is not None
    alice = credential_of_password(scram, PASSWORD, new_salt(os.urandom))
    return ScramServer(scram, ScramUsers({"alice": alice}.get, lambda token: None, b"secret"), os.urandom)


@pytest.mark.parametrize(
    ("mechanism", "tokens"),
    [
        ("PLAIN", [b""]),
        ("PLAIN", [b"\0alice"]),
        ("PLAIN", [b"\0" * 7]),
        ("PLAIN", [b"\0\0x"]),
        ("PLAIN", [b"\0alice\0"]),
        ("PLAIN", [b"\0alice\0wrong"]),
        ("PLAIN", [b"\0mallory\0wrong"]),
        ("PLAIN", [b"\xff\0alice\0wrong"]),
        ("PLAIN", [f"bob\0alice\0{PASSWORD}".encode()]),
        ("SCRAM-SHA-256", [b""]),
        ("SCRAM-SHA-256", [b"n,,n=alice"]),
        ("SCRAM-SHA-256", [b"y,,n=alice,r=x"]),
        ("SCRAM-SHA-256", ["n,,n=ülice,r=x".encode()]),
        ("SCRAM-SHA-256", [b"n,a=bob,n=alice,r=x"]),
        ("SCRAM-SHA-256", [b"n,,n=alice,r=x", b""]),
        ("SCRAM-SHA-256", [b"n,,n=alice,r=x", b"c=biws,r=x,p=AAAA"]),
        ("SCRAM-SHA-512", [b"n,,n=token,r=x,tokenauth=true", b"c=biws,r=x,p=AAAA"]),
        ("SCRAM-SHA-512", [b"n,,n=mallory,r=x", b"c=biws,r=x,p=AAAA"]),
        ("OAUTHBEARER", [b""]),
        ("OAUTHBEARER", [b"n,,\x01x=y\x01\x01"]),
        ("OAUTHBEARER", [b"n,,\x01auth=Bearer a.b.c\x01\x01", b"\x01"]),
    ],
)
def test_wrong_tokens_get_the_same_text(port: int, mechanism: str, tokens: list[bytes]) -> None:
    """Of two tokens Apache Kafka may refuse the first one already, where there is no such user."""
    texts = []
    ours = our_side(mechanism)
    with handshaken(port, mechanism) as connection:
        for answer in (ours.respond, lambda token: their_answer(connection, token)):
            texts.append(refusal(answer, tokens))
    assert texts[0] == texts[1]


def refusal(answer: Callable[[bytes], bytes], tokens: list[bytes]) -> str:
    try:
        for token in tokens:
            answer(token)
    except LoginFailed as failure:
        return failure.text
    pytest.fail("the login was not refused")
