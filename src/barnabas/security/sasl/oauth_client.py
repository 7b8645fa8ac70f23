"""The client's side of OAUTHBEARER: a token, and extensions that brokers may read.

Sources: RFC 7628; KIP-255, KIP-342; Kafka's `OAuthBearerSaslClient`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from barnabas.security.sasl.mechanism import LoginFailed
from barnabas.security.sasl.oauth_messages import KEPT_SHORT, OAUTHBEARER, bearer_login
from barnabas.words.printable import printable

__all__ = ["OAuthBearerClient"]

# A server's error is a small JSON object.
_MOST_CHARACTERS = 300


class OAuthBearerClient:
    """The client's side of one login by OAUTHBEARER.

    Args:
        token: returns the token. It may read a file or ask a server, and raises LoginFailed if it gets none.
    """

    name = OAUTHBEARER

    def __init__(self, token: Callable[[], str], extensions: Mapping[str, str]) -> None:
        self._token = token
        self._extensions = extensions
        self._error: str | None = None

    def __repr__(self) -> str:
        return "<OAuthBearerClient>"

    def begin(self) -> bytes:
        return bearer_login(self._token(), self._extensions)

    def respond(self, challenge: bytes) -> bytes | None:
        if self._error is not None:
            raise LoginFailed(f"the server rejects the token: {self._error}")
        if not challenge:
            return None
        self._error = printable(challenge.decode(errors="replace")[:_MOST_CHARACTERS])
        return KEPT_SHORT
