"""The claims of a token: which a server requires, and what it takes from them.

- `exp` and `iat` are required; `exp` and `nbf` are compared with the clock, with an allowed skew.
- Audience and issuer are checked. A listener that accepts tokens for any audience or of any issuer must say so, as since Kafka 4.4.
- The subject and each scope are texts that are not blank; spaces around them do not count. No scope appears twice.

Sources: RFC 7519; KIP-768; Kafka's `BrokerJwtValidator`, `ClaimValidationUtils`, and `JwtConsumer` of jose4j, which it uses.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from barnabas.security.sasl.oauth_server import BearerToken, InvalidToken
from barnabas.security.setting_error import SecuritySettingError

__all__ = ["ClaimRules", "checked_claims"]

_EXPECTED = "sasl.oauthbearer.expected.{}"
_UNVERIFIED = "sasl.oauthbearer.allow.unverified.{}"
_SKEW = "sasl.oauthbearer.clock.skew.seconds"


@dataclass(frozen=True, slots=True)
class ClaimRules:
    """The settings `sasl.oauthbearer.*` of a listener that concern claims.

    Attributes:
        audiences: one of them must be in `aud`; empty: any, or none.
        issuer: the required `iss`; None: any, or none.
        skew_s: how far the clocks may differ, in seconds.
    """

    audiences: frozenset[str] = frozenset()
    issuer: str | None = None
    skew_s: int = 30
    scope_claim: str = "scope"
    subject_claim: str = "sub"

    @classmethod
    def of(cls, settings: Mapping[str, str], prefix: str = "") -> ClaimRules:
        """Return the rules of a listener that has a key set.

        Args:
            prefix: what to put before the names in an error, such as `listener.name.x.oauthbearer.`.

        Raises:
            SecuritySettingError: audience or issuer is not set, and it is not said that any will do; or a value cannot be used.
        """
        audiences = frozenset(part.strip() for part in settings.get(_EXPECTED.format("audience"), "").split(",")) - {""}
        issuer = settings.get(_EXPECTED.format("issuer"), "").strip()
        for name, value in (("audience", audiences), ("issuer", issuer)):
            unverified = _UNVERIFIED.format(name)
            if not value and settings.get(unverified, "false").strip().lower() != "true":
                why = f"must be set, so that tokens for others are refused; or set {prefix}{unverified}=true"
                raise SecuritySettingError(prefix + _EXPECTED.format(name), why)
        skew = settings.get(_SKEW, "30").strip()
        if not skew.isascii() or not skew.isdecimal():
            raise SecuritySettingError(prefix + _SKEW, "is not a number of seconds")
        claims = []
        for name, usual in (("scope", "scope"), ("sub", "sub")):
            claim = settings.get(f"sasl.oauthbearer.{name}.claim.name", usual).strip()
            if not claim:
                raise SecuritySettingError(f"{prefix}sasl.oauthbearer.{name}.claim.name", "is empty")
            claims.append(claim)
        return cls(audiences, issuer or None, int(skew), *claims)


def checked_claims(claims: Mapping[str, object], rules: ClaimRules, now_ms: int) -> BearerToken:
    """Return what a server needs of a token's claims.

    Raises:
        InvalidToken: a claim is missing or has another value than the rules ask for.
    """
    expires = _seconds(claims, "exp")
    if expires is None or _seconds(claims, "iat") is None:
        raise InvalidToken("the token has no claim exp or no claim iat")
    now = now_ms / 1000
    if now - rules.skew_s >= expires:
        raise InvalidToken("the token has expired")
    begins = _seconds(claims, "nbf")
    if begins is not None and now + rules.skew_s < begins:
        raise InvalidToken("the token is not valid yet (nbf)")
    _check_audience(claims.get("aud"), rules.audiences)
    if rules.issuer is not None and claims.get("iss") != rules.issuer:
        raise InvalidToken("the token has another issuer (iss)")
    subject = _text(claims.get(rules.subject_claim), rules.subject_claim)
    return BearerToken(subject, int(expires * 1000), _scope(claims.get(rules.scope_claim), rules.scope_claim))


def _seconds(claims: Mapping[str, object], name: str) -> float | None:
    value = claims.get(name)
    if value is None:
        return None
    # 10 ** 11 seconds are the year 5138; NaN and infinity compare false.
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 10**11:
        raise InvalidToken(f"claim {name} is not a time")
    return value


def _check_audience(value: object, expected: frozenset[str]) -> None:
    audiences = value if isinstance(value, list) else [] if value is None else [value]
    if not all(isinstance(one, str) for one in audiences):
        raise InvalidToken("claim aud is not a text or a list of texts")
    if expected and expected.isdisjoint(audiences):
        raise InvalidToken("the token is for another audience (aud)")


def _text(value: object, name: str) -> str:
    if not isinstance(value, str) or not value.strip():
        raise InvalidToken(f"claim {name} is missing, empty or not a text")
    return value.strip()


def _scope(value: object, name: str) -> frozenset[str]:
    if isinstance(value, str):
        return frozenset({_text(value, name)})
    if not isinstance(value, list):
        return frozenset()
    scopes = [_text(one, name) for one in value]
    if len(set(scopes)) < len(scopes):
        raise InvalidToken(f"claim {name} has a value twice")
    return frozenset(scopes)
