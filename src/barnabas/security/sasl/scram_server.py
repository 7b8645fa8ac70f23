"""The server's side of SCRAM: it checks a client's proof against the kept keys, and proves that it has them.

- A login of an unknown user goes on with a credential that is made up, always the same, and fails where a wrong password does: text,
  number of messages and work are the same. (Apache Kafka answers an unknown user one message earlier.)
- With `tokenauth=true` the user's name is the id of a delegation token. The principal is the owner of the token, and the login ends with
  the token.
- A client's proof is XOR of its key and a signature. The server computes the key back and compares its hash.

Sources: RFC 5802 section 5, RFC 7677; KIP-84, KIP-48; Kafka's `ScramSaslServer`.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable
from typing import NamedTuple, TypeVar

from barnabas.security.principal import USER, Principal
from barnabas.security.sasl.mechanism import LoginFailed, invalid_credentials
from barnabas.security.sasl.scram_keys import (
    MIN_ITERATIONS,
    ScramCredential,
    ScramMechanism,
    made_up_credential,
)
from barnabas.security.sasl.scram_messages import ClientFinal, ClientFirst, sasl_base64
from barnabas.words.printable import printable

__all__ = ["ScramServer", "ScramUsers", "TokenCredential"]

_Message = TypeVar("_Message", ClientFirst, ClientFinal)


class TokenCredential(NamedTuple):
    """A delegation token that somebody may log in with.

    Attributes:
        expires_at_ms: the end of the token, in epoch milliseconds.
    """

    owner: Principal
    expires_at_ms: int
    credential: ScramCredential


class ScramUsers(NamedTuple):
    """Who may log in by one mechanism.

    Attributes:
        credential: returns the credential of a user; None if there is none.
        token: returns the delegation token with an id; None if there is none, or it has ended.
        secret: makes the credentials of users that do not exist. The same on all nodes and after a restart, and secret.
    """

    credential: Callable[[str], ScramCredential | None]
    token: Callable[[str], TokenCredential | None]
    secret: bytes

    def __repr__(self) -> str:
        return "<ScramUsers>"


class ScramServer:
    """The server's side of one login by SCRAM.

    Args:
        random: returns that many random bytes, `os.urandom`.
        during: `authentication` or `re-authentication`, for the text of a failure.
    """

    def __init__(
        self,
        mechanism: ScramMechanism,
        users: ScramUsers,
        random: Callable[[int], bytes],
        during: str = "authentication",
    ) -> None:
        self.name = mechanism.label
        self.lifetime_ms: int | None = None
        self.is_finished = False
        self._mechanism = mechanism
        self._users = users
        self._nonce = random(18).hex()
        self._during = during
        self._principal: Principal | None = None
        self._user = ""
        self._said = ""
        self._credential: ScramCredential | None = None

    def __repr__(self) -> str:
        return f"<ScramServer {self.name} {self._user!r}>"

    @property
    def principal(self) -> Principal:
        assert self.is_finished, "the login is not finished"
        assert self._principal is not None
        return self._principal

    def respond(self, data: bytes) -> bytes:
        assert not self.is_finished, "the login is finished"
        try:
            return self._first(data) if self._credential is None else self._final(data, self._credential)
        except _Refused as refused:
            text = invalid_credentials(self.name, self._during)
            user = f", user {printable(self._user)}" if self._user else ""
            raise LoginFailed(text, f"{text}: {refused}{user}") from None

    def _first(self, data: bytes) -> bytes:
        first = _read(ClientFirst.read, data)
        self._user = first.user
        credential = self._find(first)
        if first.authorization_id not in ("", first.user):
            text = "Authentication failed: Client requested an authorization id that is different from username"
            raise LoginFailed(text, f"{text}: user {printable(first.user)}")
        if credential.iterations < MIN_ITERATIONS:
            raise _Refused(f"{credential.iterations} iterations are fewer than {MIN_ITERATIONS}")
        self._credential = credential
        self._nonce = first.nonce + self._nonce
        answer = f"r={self._nonce},s={sasl_base64(credential.salt)},i={credential.iterations}"
        self._said = f"{first.bare},{answer}"
        return answer.encode()

    def _find(self, first: ClientFirst) -> ScramCredential:
        """Note the principal, and return its credential; without a principal a made-up credential."""
        if first.is_by_token:
            token = self._users.token(first.user)
            if token is not None:
                self._principal = Principal(token.owner.type, token.owner.name, by_token=True)
                self.lifetime_ms = token.expires_at_ms
                return token.credential
        else:
            credential = self._users.credential(first.user)
            if credential is not None:
                self._principal = Principal(USER, first.user)
                return credential
        return made_up_credential(self._mechanism, first.user, self._users.secret)

    def _final(self, data: bytes, credential: ScramCredential) -> bytes:
        final = _read(ClientFinal.read, data)
        if not hmac.compare_digest(final.nonce.encode(), self._nonce.encode()):
            raise _Refused("the nonce of the last message is not the one of this login")
        message = f"{self._said},{final.without_proof}".encode()
        signature = self._mechanism.hmac(credential.stored_key, message)
        if len(final.proof) != len(signature):
            raise _Refused("the proof has another length than the digest")
        client_key = bytes(one ^ other for one, other in zip(signature, final.proof, strict=True))
        is_right = hmac.compare_digest(self._mechanism.hash(client_key), credential.stored_key)
        if self._principal is None:
            raise _Refused("no such user")
        if not is_right:
            raise _Refused("wrong password")
        self.is_finished = True
        return f"v={sasl_base64(self._mechanism.hmac(credential.server_key, message))}".encode()


class _Refused(Exception):
    """Why a login is refused, for the operator and not for the client."""


def _read(read: Callable[[bytes], _Message], data: bytes) -> _Message:
    try:
        return read(data)
    except LoginFailed as failure:
        raise _Refused(failure.text) from None
