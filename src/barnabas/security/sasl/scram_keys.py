"""The keys of SCRAM: what a password becomes, and what a server keeps of it.

    salted password = PBKDF2(password, salt, iterations)
    client key = HMAC(salted password, "Client Key")         stored key = H(client key)
    server key = HMAC(salted password, "Server Key")

A server keeps salt, iterations, stored key and server key. They suffice to check a login and to prove itself, but not to log in.

- Kafka takes the bytes of the password as they are. It does not prepare them by SASLprep, so neither does this.
- Kafka accepts 4096 to 16384 iterations when a credential is made, and a client rejects a server that asks for less.

Sources: RFC 5802 section 3, RFC 7677; Kafka's `ScramFormatter`, `ScramMechanism`.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable
from enum import Enum
from typing import NamedTuple

__all__ = [
    "MAX_ITERATIONS",
    "MIN_ITERATIONS",
    "ScramCredential",
    "ScramMechanism",
    "credential_of_password",
    "credential_of_salted_password",
    "made_up_credential",
    "new_salt",
    "salted_password",
]

MIN_ITERATIONS = 4096
MAX_ITERATIONS = 16384

# Kafka's tools make a salt of 130 random bits, written in base 36: 25 or 26 characters.
_SALT_BITS = 130
_BASE_36 = "0123456789abcdefghijklmnopqrstuvwxyz"


class ScramMechanism(Enum):
    """A mechanism: its number in Kafka's messages and records, and its digest."""

    SCRAM_SHA_256 = (1, "sha256")
    SCRAM_SHA_512 = (2, "sha512")

    def __init__(self, number: int, digest: str) -> None:
        self.number = number
        self.digest = digest

    @property
    def label(self) -> str:
        """The name in SaslHandshake: `SCRAM-SHA-256`."""
        return self.name.replace("_", "-")

    @classmethod
    def of(cls, label: str) -> ScramMechanism | None:
        """Return the mechanism of a name such as `SCRAM-SHA-256`; None if it is not one of SCRAM."""
        return next((one for one in cls if one.label == label), None)

    def hmac(self, key: bytes, message: bytes) -> bytes:
        return hmac.digest(key, message, self.digest)

    def hash(self, data: bytes) -> bytes:
        return hashlib.new(self.digest, data).digest()


class ScramCredential(NamedTuple):
    """The keys that a server keeps for a user's password."""

    salt: bytes
    stored_key: bytes
    server_key: bytes
    iterations: int

    def __repr__(self) -> str:
        return f"<ScramCredential {self.iterations} iterations>"


def salted_password(mechanism: ScramMechanism, password: str, salt: bytes, iterations: int) -> bytes:
    """Return what the iterations make of a password: about 0.5 µs for each of them."""
    return hashlib.pbkdf2_hmac(mechanism.digest, password.encode(), salt, iterations)


def credential_of_salted_password(
    mechanism: ScramMechanism, salted: bytes, salt: bytes, iterations: int
) -> ScramCredential:
    """Return the credential of a salted password, the form in which AlterUserScramCredentials carries it."""
    client_key = mechanism.hmac(salted, b"Client Key")
    return ScramCredential(salt, mechanism.hash(client_key), mechanism.hmac(salted, b"Server Key"), iterations)


def credential_of_password(
    mechanism: ScramMechanism, password: str, salt: bytes, iterations: int = MIN_ITERATIONS
) -> ScramCredential:
    """Return the credential of a password."""
    salted = salted_password(mechanism, password, salt, iterations)
    return credential_of_salted_password(mechanism, salted, salt, iterations)


def made_up_credential(
    mechanism: ScramMechanism, user: str, secret: bytes, iterations: int = MIN_ITERATIONS
) -> ScramCredential:
    """Return a credential for a user that does not exist: the same for each question, and no password fits.

    A server goes on with it, so a stranger sees neither in the salt nor in the time that there is no such user.

    Args:
        secret: the same on all nodes of a cluster and after a restart, and secret.
    """
    seed = mechanism.hmac(secret, user.encode())
    salt = _base_36(int.from_bytes(seed, "big") % (1 << _SALT_BITS))
    return ScramCredential(salt, mechanism.hmac(seed, b"stored"), mechanism.hmac(seed, b"server"), iterations)


def new_salt(random: Callable[[int], bytes]) -> bytes:
    """Return a salt as Kafka's tools make them.

    Args:
        random: returns that many random bytes, `os.urandom`.
    """
    return _base_36(int.from_bytes(random(17), "big") % (1 << _SALT_BITS))


def _base_36(number: int) -> bytes:
    digits = []
    while number:
        number, digit = divmod(number, 36)
        digits.append(_BASE_36[digit])
    return "".join(reversed(digits)).encode() or b"0"
