"""Who may read the HTTP port: the host that a request names, and the bearer token that it shows.

**Host.** A page of a browser may send requests to the loopback interface of the machine under the name of its own site, and read the
answers, if that name resolves to 127.0.0.1 (DNS rebinding). So a request that arrives over that interface has to name this machine:
`localhost`, a loopback address, the host that the port listens on, or the machine's own name. A request without a host does not come from
a browser.

**Token.** `Authorization: Bearer TOKEN` (RFC 6750). The file is read at each request that shows a token, so a new token needs no restart.
Tokens are compared in a time that does not depend on where they differ.

Source: RFC 9110 section 7.2, RFC 6750.
"""

from __future__ import annotations

import hmac
import ipaddress
import re
import socket

from barnabas.words.printable import printable

__all__ = ["BadTokenFile", "is_loopback", "is_own_host", "read_token", "shows_token"]

TOKEN_CHARACTERS_MIN = 16
_TOKEN = re.compile(rb"[A-Za-z0-9._~+/-]+=*")
_TOKEN_BYTES_MAX = 4096
_WITH_PORT = re.compile(r"(\[[^\]]*\]|[^:]*)(:\d*)?")


class BadTokenFile(ValueError):
    """The file of the token cannot be used; the text is one line that names it, without what it holds."""


def is_loopback(host: str) -> bool:
    """Return whether only this machine reaches a bound address."""
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
        return (getattr(address, "ipv4_mapped", None) or address).is_loopback
    except ValueError:
        # Not an address of the Internet, so no other machine reaches it.
        return True


def is_own_host(named: str, listens_on: str) -> bool:
    """Return whether a request's `Host` names this machine.

    Args:
        named: the field's value.
        listens_on: the host of the port's own address.
    """
    found = _WITH_PORT.fullmatch(named.strip().lower())
    if found is None:
        return False
    host = found[1].strip("[]").rstrip(".")
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return bool(host) and host in (listens_on.lower(), socket.gethostname().lower())


def read_token(path: str) -> bytes:
    """Return the token in a file, without the white space around it.

    Raises:
        BadTokenFile: the file cannot be read, or does not have one token.
    """
    try:
        with open(path, "rb") as file:
            token = file.read(_TOKEN_BYTES_MAX + 1).strip()
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        raise BadTokenFile(f"{printable(path)}: {why}") from None
    if not _TOKEN.fullmatch(token) or not TOKEN_CHARACTERS_MIN <= len(token) <= _TOKEN_BYTES_MAX:
        raise BadTokenFile(
            f"{printable(path)}: it must hold one token of {TOKEN_CHARACTERS_MIN} characters or more, "
            "as from `openssl rand -hex 32`"
        )
    return token


def shows_token(authorization: str, token: bytes) -> bool:
    """Return whether a request's `Authorization` shows this token."""
    scheme, _, shown = authorization.partition(" ")
    return scheme.lower() == "bearer" and hmac.compare_digest(shown.strip().encode(), token)
