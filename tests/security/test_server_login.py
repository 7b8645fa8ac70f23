"""A login on one connection: what may come when, what ends it, and what a second login may not change."""

from __future__ import annotations

import pytest

from barnabas.security.principal import Principal
from barnabas.security.sasl.mechanism import LoginFailed
from barnabas.security.server_login import ServerLogin, TokenRejected

HANDSHAKE, VERSIONS, AUTHENTICATE, PRODUCE, METADATA = 17, 18, 36, 0, 3


class Exchange:
    """Accepts the token `user:NAME` after any number of others; `wrong` fails."""

    name = "PLAIN"

    def __init__(self, lifetime_ms: int | None = None) -> None:
        self.is_finished = False
        self.principal = Principal("User", "")
        self.lifetime_ms = lifetime_ms

    def respond(self, data: bytes) -> bytes:
        if data == b"wrong":
            text = "Authentication failed: Invalid username or password"
            raise LoginFailed(text, f"{text}: user carol")
        if data.startswith(b"user:"):
            self.principal = Principal("User", data[5:].decode())
            self.is_finished = True
            return b""
        return b"more"


class Clock:
    ms = 1_000

    def __call__(self) -> int:
        return self.ms


@pytest.fixture
def clock() -> Clock:
    return Clock()


def login(clock: Clock, *, max_reauth_ms: int = 0, lifetime_ms: int | None = None) -> ServerLogin:
    return ServerLogin(
        {"PLAIN": lambda during: Exchange(lifetime_ms), "SCRAM-SHA-256": lambda during: Exchange()},
        now_ms=clock,
        max_reauth_ms={"PLAIN": max_reauth_ms},
    )


def served(made: ServerLogin) -> list[int]:
    return [key for key in (HANDSHAKE, VERSIONS, AUTHENTICATE, PRODUCE, METADATA) if not made.objection(key)]


def logged_in(made: ServerLogin, name: bytes = b"alice") -> ServerLogin:
    assert made.handshake("PLAIN", 1)
    made.respond(b"user:" + name)
    return made


def test_each_state_serves_its_own_requests(clock: Clock) -> None:
    made = login(clock)
    assert served(made) == [HANDSHAKE, VERSIONS]
    assert "API key 0 during SASL handshake" in made.objection(PRODUCE)
    assert made.handshake("PLAIN", 1)
    assert served(made) == [AUTHENTICATE]
    assert made.respond(b"first") == b"more"
    assert served(made) == [AUTHENTICATE]
    assert made.principal is None
    made.respond(b"user:alice")
    assert served(made) == [HANDSHAKE, VERSIONS, AUTHENTICATE, PRODUCE, METADATA]
    assert made.principal == Principal("User", "alice")
    assert made.session_ms() == 0


def test_a_failed_login_serves_nothing(clock: Clock) -> None:
    made = login(clock)
    made.handshake("PLAIN", 1)
    with pytest.raises(TokenRejected, match=r"^Authentication failed: Invalid username or password$"):
        made.respond(b"wrong")
    assert served(made) == []
    assert made.why_failed == (
        "failed authentication by PLAIN: Authentication failed: Invalid username or password: user carol"
    )


def test_a_mechanism_that_is_not_enabled(clock: Clock) -> None:
    made = login(clock)
    assert not made.handshake("GSSAPI", 1)
    assert made.enabled == ["PLAIN", "SCRAM-SHA-256"]
    assert served(made) == []


def test_tokens_come_raw_after_version_0(clock: Clock) -> None:
    made = login(clock)
    made.handshake("PLAIN", 0)
    assert made.expects_raw_token
    made.respond(b"user:alice")
    assert not made.expects_raw_token
    assert made.is_complete


@pytest.mark.parametrize(
    ("max_reauth_ms", "lifetime_ms", "session_ms"),
    [(0, None, 0), (500, None, 500), (0, 1_300, 300), (500, 1_300, 300), (200, 1_300, 200), (0, 900, 0)],
)
def test_a_login_ends_with_the_first_of_both(
    clock: Clock, max_reauth_ms: int, lifetime_ms: int | None, session_ms: int
) -> None:
    made = logged_in(login(clock, max_reauth_ms=max_reauth_ms, lifetime_ms=lifetime_ms))
    assert made.session_ms() == session_ms


def test_after_its_end_only_a_new_handshake_is_served(clock: Clock) -> None:
    made = logged_in(login(clock, max_reauth_ms=500))
    clock.ms += 499
    assert METADATA in served(made)
    clock.ms += 1
    assert served(made) == [HANDSHAKE]
    assert "User:alice has ended" in made.objection(METADATA)
    logged_in(made)
    assert METADATA in served(made)
    assert made.session_ms() == 500


def test_a_second_login_keeps_the_principal(clock: Clock) -> None:
    made = logged_in(login(clock))
    made.handshake("PLAIN", 1)
    with pytest.raises(
        TokenRejected, match="Cannot change principals during re-authentication from User:alice: User:bob"
    ):
        made.respond(b"user:bob")
    assert made.principal == Principal("User", "alice")
    assert served(made) == []


def test_a_second_login_keeps_the_mechanism(clock: Clock) -> None:
    made = logged_in(login(clock))
    assert made.handshake("SCRAM-SHA-256", 1)
    assert served(made) == []


def test_repr(clock: Clock) -> None:
    assert repr(login(clock)) == "<ServerLogin handshake mechanism=None principal=None>"
    assert repr(logged_in(login(clock))) == "<ServerLogin complete mechanism=PLAIN principal=User:alice>"
