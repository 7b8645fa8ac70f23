r"""The messages of OAUTHBEARER.

    client    n,[a=authorization id],\x01auth=Bearer TOKEN\x01[name=value\x01]*\x01
    server    nothing, or {"status":"invalid_token"}        and then the client sends \x01, and the server closes

Sources: RFC 7628; KIP-255, KIP-342; Kafka's `OAuthBearerClientInitialResponse`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from barnabas.security.sasl.mechanism import LoginFailed

__all__ = ["KEPT_SHORT", "OAUTHBEARER", "BearerLogin", "bearer_login", "is_extension"]

OAUTHBEARER = "OAUTHBEARER"

KEPT_SHORT = b"\x01"
"""The answer of a client to an error: it has nothing to add."""

_NAME = r"(?:[\x01-\x2b\x2d-\x3c\x3e-\x7f]|=2C|=3D)+"
_PAIRS = r"(?:[A-Za-z]+=[\x21-\x7e \t\r\n]+\x01)*"
_LOGIN = re.compile(rf"n,(?:a=({_NAME}))?,\x01({_PAIRS})\x01")
_AUTH = re.compile(r"(\w+) +([-_~+/.a-zA-Z0-9]+=*)")
_EXTENSION = re.compile(r"([A-Za-z]+)=([\x21-\x7e \t\r\n]+)")


class BearerLogin(NamedTuple):
    """The first message of a client, as a server reads it."""

    token: str
    authorization_id: str

    def __repr__(self) -> str:
        return "<BearerLogin>"

    @classmethod
    def read(cls, data: bytes) -> BearerLogin:
        """Return the token of a message.

        Raises:
            LoginFailed: the message is outside the grammar; the text does not quote it.
        """
        found = _LOGIN.fullmatch(data.decode(errors="replace"))
        if found is None:
            raise LoginFailed("Invalid OAUTHBEARER client first message")
        pairs = dict(pair.split("=", 1) for pair in found[2].split("\x01") if pair)
        if "auth" not in pairs:
            raise LoginFailed("Invalid OAUTHBEARER client first message: 'auth' not specified")
        auth = _AUTH.fullmatch(pairs["auth"])
        if auth is None or auth[1].lower() != "bearer":
            raise LoginFailed("Invalid OAUTHBEARER client first message: invalid 'auth' format")
        return cls(auth[2], found[1] or "")


def bearer_login(token: str, extensions: Mapping[str, str]) -> bytes:
    """Return the first message of a client."""
    pairs = "".join(f"\x01{name}={value}" for name, value in extensions.items())
    return f"n,,\x01auth=Bearer {token}{pairs}\x01\x01".encode()


def is_extension(name: str, value: str) -> bool:
    """Return whether a SASL extension may be sent."""
    return name != "auth" and _EXTENSION.fullmatch(f"{name}={value}") is not None
