"""The keys of a token server, and the signatures that they check.

The document (a JWK set, RFC 7517) comes in as a value; fetching it is the caller's work. A document that cannot be read changes nothing, so
the old keys stay while the server is away.

- Signatures are RS, PS and ES of 256, 384 and 512 bits. `none` and HMAC are refused, and so is a token with a `crit` that is not known.
- A token with a key id is checked by keys of this id only. One without is checked by each key of the fitting type.
- Keys for encryption, secret keys, RSA keys under 2048 bits and keys of types that are not known are left out of the set.

Sources: RFC 7515, RFC 7517, RFC 8725; KIP-768; Kafka's `RefreshingHttpsJwksVerificationKeyResolver`, `JwksFileVerificationKeyResolver`.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable
from typing import TYPE_CHECKING

from barnabas.security.sasl.oauth_claims import ClaimRules, checked_claims
from barnabas.security.sasl.oauth_server import BearerToken, InvalidToken
from barnabas.security.setting_error import SecuritySettingError
from barnabas.words.requirements import install_command

if TYPE_CHECKING:
    from joserfc.jwk import ECKey, RSAKey

__all__ = ["JWKS_ENDPOINT_URL", "KeySet", "TokenValidator", "UnknownKey"]

JWKS_ENDPOINT_URL = "sasl.oauthbearer.jwks.endpoint.url"

_KEY_TYPES = {"RS": "RSA", "PS": "RSA", "ES": "EC"}
_ALGORITHMS = [f"{kind}{bits}" for kind in _KEY_TYPES for bits in (256, 384, 512)]
_MOST_KEYS = 100
_RSA_BITS_MIN = 2048


class UnknownKey(InvalidToken):
    """A token names a key that the key set does not have.

    Attributes:
        key_id: as the token spells it.
    """

    def __init__(self, key_id: str) -> None:
        super().__init__("the token is signed by a key that the key set does not have")
        self.key_id = key_id


class KeySet:
    """The public keys of a token server: empty until the first document.

    Raises:
        SecuritySettingError: the extra `barnabas[security]` is not installed.
    """

    def __init__(self) -> None:
        try:
            import joserfc.jwk  # noqa: F401
        except ImportError:
            why = f"OAUTHBEARER with signed tokens needs joserfc: {install_command('security')}"
            raise SecuritySettingError(JWKS_ENDPOINT_URL, why) from None
        self._keys: tuple[tuple[str | None, str, RSAKey | ECKey], ...] = ()

    def __repr__(self) -> str:
        return f"<KeySet of {len(self._keys)} keys>"

    def __len__(self) -> int:
        return len(self._keys)

    def knows(self, key_id: str) -> bool:
        """Return whether there is a key of this id; if not, it may be time to fetch the document again."""
        return any(known == key_id for known, _, _ in self._keys)

    def replace(self, document: bytes) -> None:
        """Take the keys of a JWK set in place of the old ones.

        Raises:
            ValueError: the document is not a JWK set with a key that can be used; the old keys stay. The text is one line.
        """
        from joserfc.errors import JoseError
        from joserfc.jwk import ECKey, RSAKey

        kinds: dict[str, type[RSAKey] | type[ECKey]] = {"RSA": RSAKey, "EC": ECKey}
        try:
            listed = json.loads(document)["keys"]
        except (ValueError, KeyError, TypeError, RecursionError):
            raise ValueError("is not a JSON document with keys (a JWK set)") from None
        found = []
        for key in listed[:_MOST_KEYS] if isinstance(listed, list) else []:
            if not isinstance(key, dict) or key.get("kty") not in ("RSA", "EC") or key.get("use", "sig") != "sig":
                continue
            try:
                usable = kinds[key["kty"]].import_key(key)
                is_weak = key["kty"] == "RSA" and usable.public_key.key_size < _RSA_BITS_MIN
            except (JoseError, ValueError, TypeError, KeyError):
                continue
            if is_weak:
                continue
            key_id = key.get("kid")
            found.append((key_id if isinstance(key_id, str) else None, key["kty"], usable))
        if not found:
            raise ValueError("has no RSA or EC key for signatures")
        self._keys = tuple(found)

    def claims(self, token: str) -> dict[str, object]:
        """Return the claims of a token whose signature one of the keys has made.

        Raises:
            InvalidToken: none of them has, or this is not a signed token. UnknownKey: the set has no key of this id.
        """
        from joserfc import jwt
        from joserfc.errors import JoseError

        header = json_part(token, 0)
        algorithm, key_id = header.get("alg"), header.get("kid")
        if algorithm not in _ALGORITHMS:
            raise InvalidToken(f"the token is not signed by one of {', '.join(_ALGORITHMS)}")
        keys = [
            key
            for known, kind, key in self._keys
            if kind == _KEY_TYPES[str(algorithm)[:2]] and (key_id is None or known == key_id)
        ]
        if not keys and isinstance(key_id, str) and not self.knows(key_id):
            raise UnknownKey(key_id)
        if not keys:
            raise InvalidToken("the token is signed by a key that the key set does not have")
        for key in keys:
            try:
                return dict(jwt.decode(token, key, algorithms=[str(algorithm)]).claims)
            except (JoseError, ValueError, TypeError, RecursionError):
                continue
        raise InvalidToken("the signature of the token does not fit")


class TokenValidator:
    """The check of the tokens of a listener: signature by the key set, then the claims.

    Args:
        now_ms: returns the time in epoch milliseconds.
        ask_for: takes the id of a key that a token names and the set does not have.
    """

    def __init__(
        self,
        keys: KeySet,
        rules: ClaimRules,
        now_ms: Callable[[], int],
        ask_for: Callable[[str], None] | None = None,
    ) -> None:
        self._keys = keys
        self._rules = rules
        self._now_ms = now_ms
        self._ask_for = ask_for

    def __call__(self, token: str) -> BearerToken:
        try:
            claims = self._keys.claims(token)
        except UnknownKey as unknown:
            if self._ask_for is not None:
                self._ask_for(unknown.key_id)
            raise
        return checked_claims(claims, self._rules, self._now_ms())


def json_part(token: str, index: int) -> dict[str, object]:
    """Return the header (0) or the claims (1) of a token, unchecked.

    Raises:
        InvalidToken: the text is not header, claims and signature.
    """
    parts = token.split(".")
    if len(parts) != 3:
        raise InvalidToken("the token does not have three parts (header.claims.signature)")
    try:
        found = json.loads(base64.urlsafe_b64decode(parts[index] + "=" * (-len(parts[index]) % 4)))
    except (ValueError, binascii.Error, RecursionError):
        raise InvalidToken("the token is not JSON in base64") from None
    if not isinstance(found, dict):
        raise InvalidToken("the token is not made of JSON objects")
    return found
