"""The four messages of SCRAM.

    client first    n,[a=authorization id],n=user,r=nonce[,extension]*         the part from n= on is the bare message
    server first    r=nonce of both,s=salt,i=iterations
    client final    c=channel binding,r=nonce of both[,extension]*,p=proof     the part before ,p= is what is signed
    server final    v=signature | e=error

    auth message = client first bare "," server first "," client final without proof

- Channel binding is not offered: the first message begins with `n`.
- A user's name has only ASCII characters, `,` and `=` escaped as `=2C` and `=3D`: so Kafka's servers read it.
- The extension `tokenauth=true` says that the user is the id of a delegation token (KIP-48). Others are ignored.

Source: RFC 5802 section 7; Kafka's `ScramMessages`.
"""

from __future__ import annotations

import base64
import re
from typing import NamedTuple

from barnabas.security.sasl.mechanism import LoginFailed

__all__ = ["ClientFinal", "ClientFirst", "ServerFinal", "ServerFirst", "escaped_name", "sasl_base64"]

TOKEN_AUTHENTICATION = "tokenauth"

_VALUE = r"[\x01-\x2b\x2d-\x7f]+"
_VALUE_SAFE = r"[\x01-\x2b\x2d-\x3c\x3e-\x7f]+"
_NAME = r"(?:[\x01-\x2b\x2d-\x3c\x3e-\x7f]|=2C|=3D)+"
_NONCE = r"[\x21-\x2b\x2d-\x7e]+"
_BASE64 = r"(?:[a-zA-Z0-9/+]{4})*(?:[a-zA-Z0-9/+]{3}=|[a-zA-Z0-9/+]{2}==)?"
_EXTENSIONS = rf"(?:,[A-Za-z]+={_VALUE})*"

_CLIENT_FIRST = re.compile(rf"n,(?:a=({_NAME}))?,(n=({_NAME}),r=({_NONCE})({_EXTENSIONS}))")
_SERVER_FIRST = re.compile(rf"(?:m={_VALUE},)?r=({_NONCE}),s=({_BASE64}),i=([0-9]+){_EXTENSIONS}")
_CLIENT_FINAL = re.compile(rf"(c={_BASE64},r=({_NONCE}){_EXTENSIONS}),p=({_BASE64})")
_SERVER_FINAL = re.compile(rf"e=({_VALUE_SAFE})|v=({_BASE64}){_EXTENSIONS}")


class ClientFirst(NamedTuple):
    """The first message of a client, as a server reads it."""

    bare: str
    user: str
    nonce: str
    authorization_id: str
    extensions: dict[str, str]

    @classmethod
    def read(cls, data: bytes) -> ClientFirst:
        found = _match(_CLIENT_FIRST, data, "client first")
        authorization_id, bare, name, nonce, extensions = found.groups()
        pairs = (pair.partition("=") for pair in extensions.split(",") if pair)
        return cls(bare, _name(name), nonce, authorization_id or "", {key: value for key, _, value in pairs})

    @property
    def is_by_token(self) -> bool:
        return self.extensions.get(TOKEN_AUTHENTICATION, "").lower() == "true"


class ServerFirst(NamedTuple):
    """The first message of a server, as a client reads it."""

    nonce: str
    salt: bytes
    iterations: int

    @classmethod
    def read(cls, data: bytes) -> ServerFirst:
        nonce, salt, iterations = _match(_SERVER_FIRST, data, "server first").groups()
        # More digits than an int32 has are out of range in any case, and int() would take long for very many of them.
        return cls(nonce, base64.b64decode(salt), int(iterations[:11]))


class ClientFinal(NamedTuple):
    """The last message of a client, as a server reads it."""

    without_proof: str
    nonce: str
    proof: bytes

    @classmethod
    def read(cls, data: bytes) -> ClientFinal:
        without_proof, nonce, proof = _match(_CLIENT_FINAL, data, "client final").groups()
        return cls(without_proof, nonce, base64.b64decode(proof))


class ServerFinal(NamedTuple):
    """The last message of a server, as a client reads it: the signature, or an error."""

    signature: bytes
    error: str | None

    @classmethod
    def read(cls, data: bytes) -> ServerFinal:
        error, signature = _match(_SERVER_FINAL, data, "server final").groups()
        return cls(base64.b64decode(signature or ""), error)


def escaped_name(name: str) -> str:
    """Return a user's name as the messages spell it."""
    return name.replace("=", "=3D").replace(",", "=2C")


def sasl_base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _name(escaped: str) -> str:
    # The grammar leaves no other `=` in it.
    return escaped.replace("=2C", ",").replace("=3D", "=")


def _match(pattern: re.Pattern[str], data: bytes, message: str) -> re.Match[str]:
    found = pattern.fullmatch(data.decode(errors="replace"))
    if found is None:
        raise LoginFailed(f"Invalid SCRAM {message} message format")
    return found
