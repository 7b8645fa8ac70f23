"""Delegation tokens: the secret that a cluster makes them of, and the login with one.

    HMAC = HMAC-SHA-512(delegation.token.secret.key, token id)        the user's password is its base64

- No record has an HMAC: each node that has the secret computes it from the token's id. A client that knows the secret can log in
  with any token, and a node with another secret knows none.
- The login is SCRAM with `tokenauth=true`: the user's name is the token's id. The salt is derived from the id, so all nodes send the same
  one, and an id that does not exist looks like one that does.

Sources: KIP-48, KIP-373, KIP-900; Kafka's `DelegationTokenManager`, `DelegationTokenControlManager`.
"""

from __future__ import annotations

import base64
import hmac
from typing import NamedTuple

from barnabas.security.sasl.scram_keys import (
    ScramCredential,
    ScramMechanism,
    credential_of_password,
    made_up_credential,
)

__all__ = ["TokenKey", "TokenSettings"]


class TokenKey:
    """The secret of a cluster's delegation tokens (`delegation.token.secret.key`).

    Args:
        text: the setting's value, not empty.
    """

    __slots__ = ("_key",)

    def __init__(self, text: str) -> None:
        assert text, "without a secret there are no delegation tokens"
        self._key = text.encode()

    def __repr__(self) -> str:
        return "<TokenKey>"

    def hmac(self, token_id: str) -> bytes:
        """Return the HMAC of a token: 64 bytes."""
        return hmac.digest(self._key, token_id.encode(), "sha512")

    def is_of(self, token_id: str, given: bytes) -> bool:
        """Return whether an HMAC is that of a token."""
        return hmac.compare_digest(self.hmac(token_id), given)

    def credential(self, mechanism: ScramMechanism, token_id: str, secret: bytes) -> ScramCredential:
        """Return the credential of the login with a token; about 2 ms, whether there is such a token or not.

        Args:
            secret: makes the credentials of users that do not exist; the salt of a token is as theirs.
        """
        salt = made_up_credential(mechanism, token_id, secret).salt
        return credential_of_password(mechanism, base64.b64encode(self.hmac(token_id)).decode(), salt)


class TokenSettings(NamedTuple):
    """The settings of a node with delegation tokens.

    Attributes:
        max_lifetime_ms: how long a token may live, however often it is renewed (`delegation.token.max.lifetime.ms`).
        expiry_time_ms: how long it lives after its creation and after each renewal (`delegation.token.expiry.time.ms`).
        expiry_check_interval_ms: how often the active controller removes the expired ones.
    """

    key: TokenKey
    max_lifetime_ms: int = 604_800_000
    expiry_time_ms: int = 86_400_000
    expiry_check_interval_ms: int = 3_600_000
