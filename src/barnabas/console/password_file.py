"""Users of the console and their passwords, as a file keeps them: a line each, with scrypt.

    alice:scrypt:16384:8:1:SALT:HASH        salt and hash in base64

A line that begins with `#` is a comment. The file is read at each login, so that a new user needs no restart.
Source: RFC 7914 (scrypt), with the parameters that OWASP recommends for logins.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from collections.abc import Mapping
from typing import NamedTuple

from barnabas.words.printable import printable

_N, _R, _P = 16_384, 8, 1
_HASH_BYTES = 32
SALT_BYTES = 16
_MEMORY_BYTES_MAX = 256 * 1024 * 1024
_COST_MAX = 1_048_576


class BadPasswordFile(ValueError):
    """The file cannot be used; the text is one line that names it and the line, without what the line holds."""


class _Hash(NamedTuple):
    n: int
    r: int
    p: int
    salt: bytes
    hash: bytes

    def of(self, password: str) -> bytes:
        return hashlib.scrypt(
            password.encode(),
            salt=self.salt,
            n=self.n,
            r=self.r,
            p=self.p,
            maxmem=_MEMORY_BYTES_MAX,
            dklen=len(self.hash),
        )


_OF_NOBODY = _Hash(_N, _R, _P, bytes(SALT_BYTES), bytes(_HASH_BYTES))


def line_of(name: str, password: str, salt: bytes) -> str:
    """Return the line of a user.

    Args:
        salt: `SALT_BYTES` random bytes.

    Raises:
        ValueError: the name is empty, or has a colon or a line break.
    """
    if not name or ":" in name or not name.isprintable() or name.startswith("#"):
        raise ValueError("a user's name has letters, and no colon")
    empty = _Hash(_N, _R, _P, salt, bytes(_HASH_BYTES))
    encoded = (base64.b64encode(each).decode() for each in (salt, empty.of(password)))
    return ":".join((name, "scrypt", str(_N), str(_R), str(_P), *encoded))


def read_password_file(path: str) -> Mapping[str, object]:
    """Return what `accepts` compares with, by user.

    Raises:
        BadPasswordFile: the file cannot be read, has no user, or a line is not one.
    """
    try:
        with open(path, encoding="utf-8") as file:
            lines = file.read().splitlines()
    except OSError as error:
        raise BadPasswordFile(f"{printable(path)}: {(error.strerror or str(error)).lower()}") from None
    except UnicodeDecodeError:
        raise BadPasswordFile(f"{printable(path)}: it is not text") from None
    users = {}
    for number, line in enumerate(lines, 1):
        if line.strip() and not line.startswith("#"):
            try:
                name, found = _parsed(line.strip())
            except ValueError:
                form = "NAME:scrypt:N:R:P:SALT:HASH, as `barnabas console --add-user NAME` writes it"
                raise BadPasswordFile(f"{printable(path)}: line {number} is not {form}") from None
            users[name] = found
    if not users:
        raise BadPasswordFile(f"{printable(path)}: it has no user; `barnabas console --add-user NAME` adds one")
    return users


def _parsed(line: str) -> tuple[str, _Hash]:
    name, kind, n, r, p, salt, hashed = line.split(":")
    found = _Hash(int(n), int(r), int(p), _bytes(salt), _bytes(hashed))
    is_power = found.n > 1 and found.n & (found.n - 1) == 0
    if not name or kind != "scrypt" or not is_power or found.n * found.r * found.p > _COST_MAX or len(found.hash) < 16:
        raise ValueError
    if min(found.r, found.p) < 1 or not found.salt:
        raise ValueError
    return name, found


def _bytes(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error:
        raise ValueError from None


def accepts(users: Mapping[str, object], name: str, password: str) -> bool:
    """Return whether this is the user's password; an unknown user takes as long as a known one. It takes 50 ms of a processor."""
    found = users.get(name, _OF_NOBODY)
    assert isinstance(found, _Hash)
    is_equal = hmac.compare_digest(found.of(password), found.hash)
    return is_equal and name in users
