"""PLAIN: the user's name and password in one token, so only for connections that are encrypted.

    token = [authorization id] NUL user NUL password          UTF-8, each part without NUL

- The user must not ask to act as somebody else: the authorization id is empty or the user's own name.
- A server compares passwords in a time that does not depend on where they differ, and compares for an unknown user too.

Sources: RFC 4616; Kafka's `PlainSaslServer`, `PlainServerCallbackHandler`.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable

from barnabas.security.principal import USER, Principal
from barnabas.security.sasl.mechanism import LoginFailed
from barnabas.words.printable import printable

__all__ = ["PLAIN", "PlainClient", "PlainServer"]

PLAIN = "PLAIN"


class PlainClient:
    """The client's side of PLAIN."""

    name = PLAIN

    def __init__(self, user: str, password: str) -> None:
        self._user = user
        self._password = password

    def __repr__(self) -> str:
        return f"<PlainClient {self._user!r}>"

    def begin(self) -> bytes:
        return f"\0{self._user}\0{self._password}".encode()

    def respond(self, challenge: bytes) -> bytes | None:
        if challenge:
            raise LoginFailed("the server answered PLAIN with a challenge, and PLAIN has none")
        return None


class PlainServer:
    """The server's side of PLAIN.

    Args:
        password: returns the password of a user; None if there is no such user.
    """

    name = PLAIN
    lifetime_ms: int | None = None

    def __init__(self, password: Callable[[str], str | None]) -> None:
        self._password = password
        self._user: str | None = None

    def __repr__(self) -> str:
        return f"<PlainServer {self._user!r}>"

    @property
    def is_finished(self) -> bool:
        return self._user is not None

    @property
    def principal(self) -> Principal:
        assert self._user is not None, "the login is not finished"
        return Principal(USER, self._user)

    def respond(self, data: bytes) -> bytes:
        assert self._user is None, "the login is finished"
        authorization_id, user, password = _parts(data)
        if not user:
            raise LoginFailed("Authentication failed: username not specified")
        if not password:
            raise LoginFailed("Authentication failed: password not specified")
        known = self._password(user)
        # An unknown user costs a comparison too.
        is_right = hmac.compare_digest((known or "").encode(), password.encode())
        if known is None or not is_right:
            text = "Authentication failed: Invalid username or password"
            raise LoginFailed(text, f"{text}: user {printable(user)}")
        if authorization_id not in ("", user):
            text = "Authentication failed: Client requested an authorization id that is different from username"
            raise LoginFailed(text, f"{text}: user {printable(user)}, authorization id {printable(authorization_id)}")
        self._user = user
        return b""


def _parts(data: bytes) -> tuple[str, str, str]:
    # Java replaces what is not UTF-8, and then finds no such user.
    parts = data.decode(errors="replace").split("\0")
    if len(parts) != 3:
        # Kafka stops counting at four.
        raise LoginFailed(f"Invalid SASL/PLAIN response: expected 3 tokens, got {min(len(parts), 4)}")
    return parts[0], parts[1], parts[2]
