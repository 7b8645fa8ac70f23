"""The server's side of OAUTHBEARER: the principal is the subject of a token that a validator accepts.

- The answer to a token that is not valid is `{"status":"invalid_token"}`, and nothing more. The client answers with one byte, and that is
  where the login fails.
- The login ends with the token, so a connection that lives longer must log in again (KIP-368).
- Extensions (KIP-342) are read and have no meaning, as with Kafka's own validator.

Sources: RFC 7628; KIP-255; Kafka's `OAuthBearerSaslServer`, `OAuthBearerValidatorCallbackHandler`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from barnabas.security.principal import USER, Principal
from barnabas.security.sasl.mechanism import LoginFailed, invalid_credentials
from barnabas.security.sasl.oauth_messages import OAUTHBEARER, BearerLogin
from barnabas.words.printable import printable

__all__ = ["BearerToken", "InvalidToken", "OAuthBearerServer"]

_INVALID = '{"status":"invalid_token"}'


class InvalidToken(Exception):
    """A token is not valid; the text says why, for the operator, and does not quote the token."""


class BearerToken(NamedTuple):
    """The claims of a valid token that a server uses.

    Attributes:
        expires_at_ms: its end, in epoch milliseconds.
    """

    subject: str
    expires_at_ms: int
    scope: frozenset[str] = frozenset()


class OAuthBearerServer:
    """The server's side of one login by OAUTHBEARER.

    Args:
        validate: returns the claims of a token; raises InvalidToken.
        during: `authentication` or `re-authentication`, for the text of a failure.
    """

    name = OAUTHBEARER

    def __init__(self, validate: Callable[[str], BearerToken], during: str = "authentication") -> None:
        self._validate = validate
        self._during = during
        self._token: BearerToken | None = None
        self._why: str | None = None

    def __repr__(self) -> str:
        return f"<OAuthBearerServer {self._token.subject!r}>" if self._token else "<OAuthBearerServer>"

    @property
    def is_finished(self) -> bool:
        return self._token is not None

    @property
    def principal(self) -> Principal:
        assert self._token is not None, "the login is not finished"
        return Principal(USER, self._token.subject)

    @property
    def lifetime_ms(self) -> int | None:
        return None if self._token is None else self._token.expires_at_ms

    def respond(self, data: bytes) -> bytes:
        assert self._token is None, "the login is finished"
        if self._why is not None:
            raise LoginFailed(_INVALID, f"{_INVALID}: {self._why}")
        try:
            login = BearerLogin.read(data)
        except LoginFailed as failure:
            text = invalid_credentials(self.name, self._during)
            raise LoginFailed(text, f"{text}: {failure.text}") from None
        try:
            token = self._validate(login.token)
        except InvalidToken as invalid:
            self._why = str(invalid)
            return _INVALID.encode()
        if login.authorization_id not in ("", token.subject):
            asked, own = printable(login.authorization_id), printable(token.subject)
            text = f"Client requested an authorization id ({asked}) that is different from the token's principal name ({own})"
            raise LoginFailed(f"Authentication failed: {text}")
        self._token = token
        return b""
