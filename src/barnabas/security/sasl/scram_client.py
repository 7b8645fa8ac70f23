"""The client's side of SCRAM: it proves that it knows the password, and has the server prove that it knows the keys.

    client first ->   <- server first (salt, iterations)   client final (proof) ->   <- server final (signature)

- The server chooses the iterations. Less than 4096 are rejected, because a listener on the wire could guess the password cheaply. More than
  a million are rejected, because they would keep the client busy for a server that it does not know yet.
- What the iterations made of the password is kept and used for the next login with the same salt. RFC 5802 section 5.1 allows it.

Sources: RFC 5802 section 5, RFC 7677; KIP-84, KIP-48 (`tokenauth`); Kafka's `ScramSaslClient`.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable

from barnabas.security.sasl.mechanism import LoginFailed
from barnabas.security.sasl.scram_keys import MIN_ITERATIONS, ScramMechanism, salted_password
from barnabas.security.sasl.scram_messages import (
    TOKEN_AUTHENTICATION,
    ServerFinal,
    ServerFirst,
    escaped_name,
    sasl_base64,
)

__all__ = ["MOST_ITERATIONS", "ScramClient", "ScramPassword"]

MOST_ITERATIONS = 1_000_000

# The gs2 header `n,,`: no channel binding, no authorization id.
_NO_BINDING = sasl_base64(b"n,,")


class ScramPassword:
    """A user with a password, for many logins: the salted password of the last salt is kept.

    Args:
        by_token: the user is the id of a delegation token and the password its HMAC in base64 (KIP-48).
    """

    def __init__(self, mechanism: ScramMechanism, user: str, password: str, *, by_token: bool = False) -> None:
        self.mechanism = mechanism
        self.user = user
        self.by_token = by_token
        self._password = password
        self._last: tuple[bytes, int, bytes] | None = None

    def __repr__(self) -> str:
        return f"<ScramPassword {self.mechanism.label} {self.user!r}>"

    def salted(self, salt: bytes, iterations: int) -> bytes:
        last = self._last
        if last is None or last[:2] != (salt, iterations):
            last = self._last = (
                salt,
                iterations,
                salted_password(self.mechanism, self._password, salt, iterations),
            )
        return last[2]


class ScramClient:
    """The client's side of one login by SCRAM.

    Args:
        random: returns that many random bytes, `os.urandom`.
    """

    def __init__(self, password: ScramPassword, random: Callable[[int], bytes]) -> None:
        self.name = password.mechanism.label
        self._password = password
        self._mechanism = password.mechanism
        self._nonce = random(18).hex()
        extension = f",{TOKEN_AUTHENTICATION}=true" if password.by_token else ""
        self._first_bare = f"n={escaped_name(password.user)},r={self._nonce}{extension}"
        self._signature: bytes | None = None

    def __repr__(self) -> str:
        return f"<ScramClient {self.name} {self._password.user!r}>"

    def begin(self) -> bytes:
        return f"n,,{self._first_bare}".encode()

    def respond(self, challenge: bytes) -> bytes | None:
        if self._signature is None:
            return self._final(challenge)
        final = ServerFinal.read(challenge)
        if final.error is not None:
            raise LoginFailed(f"Sasl authentication using {self.name} failed with error: {final.error}")
        if not hmac.compare_digest(final.signature, self._signature):
            raise LoginFailed(
                "Invalid server signature in server final message: the server does not know this user's keys"
            )
        return None

    def _final(self, challenge: bytes) -> bytes:
        first = ServerFirst.read(challenge)
        if not first.nonce.startswith(self._nonce):
            raise LoginFailed("Invalid server nonce: does not start with client nonce")
        if first.iterations < MIN_ITERATIONS:
            least = f"is less than the minimum {MIN_ITERATIONS} for {self.name}"
            raise LoginFailed(f"Requested iterations {first.iterations} {least}")
        if first.iterations > MOST_ITERATIONS:
            raise LoginFailed(f"Requested iterations {first.iterations} is more than {MOST_ITERATIONS}")
        salted = self._password.salted(first.salt, first.iterations)
        without_proof = f"c={_NO_BINDING},r={first.nonce}"
        message = b",".join((self._first_bare.encode(), challenge, without_proof.encode()))
        client_key = self._mechanism.hmac(salted, b"Client Key")
        signature = self._mechanism.hmac(self._mechanism.hash(client_key), message)
        proof = bytes(one ^ other for one, other in zip(client_key, signature, strict=True))
        self._signature = self._mechanism.hmac(self._mechanism.hmac(salted, b"Server Key"), message)
        return f"{without_proof},p={sasl_base64(proof)}".encode()
