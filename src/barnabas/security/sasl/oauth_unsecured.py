"""Unsecured tokens: claims without a signature, which anybody can make. For tests and development only.

    unsecuredLoginStringClaim_sub="alice"        the options of the login module, as in Kafka
    unsecuredLoginNumberClaim_age="7"
    unsecuredLoginListClaim_scope=",a,b"         the first character divides
    unsecuredLoginLifetimeSeconds="3600"

Sources: RFC 7515 appendix A.5; KIP-255; Kafka's `OAuthBearerUnsecuredLoginCallbackHandler`, `OAuthBearerUnsecuredValidatorCallbackHandler`.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping

from barnabas.security.sasl.oauth_claims import ClaimRules, checked_claims
from barnabas.security.sasl.oauth_keys import json_part
from barnabas.security.sasl.oauth_server import BearerToken, InvalidToken
from barnabas.security.setting_error import SecuritySettingError

__all__ = ["UnsecuredValidator", "unsecured_token"]

_PREFIX = "unsecuredLogin"


def unsecured_token(options: Mapping[str, str], now_ms: int, setting: str) -> str:
    """Return an unsecured token with the claims of a login module's options.

    Raises:
        SecuritySettingError: an option cannot be used, or the claim that is the principal is missing.
    """
    now = now_ms / 1000
    claims: dict[str, object] = {}
    lifetime_s = _number(options.get(f"{_PREFIX}LifetimeSeconds", "3600"), f"{_PREFIX}LifetimeSeconds", setting)
    for option, value in options.items():
        kind, _, claim = option.removeprefix(_PREFIX).partition("Claim_")
        if not option.startswith(_PREFIX) or not claim:
            continue
        if claim in ("iat", "exp"):
            raise SecuritySettingError(setting, f"{option} cannot be set; the token gets it from the clock")
        if kind == "String":
            claims[claim] = value
        elif kind == "Number":
            claims[claim] = _number(value, option, setting)
        elif kind == "List":
            claims[claim] = value[1:].split(value[0]) if len(value) > 1 else []
    principal = options.get(f"{_PREFIX}PrincipalClaimName", "sub")
    if not claims.get(principal):
        why = f'has no {_PREFIX}StringClaim_{principal}="…", and no sasl.oauthbearer.token.endpoint.url is set'
        raise SecuritySettingError(setting, why)
    claims.update(iat=now, exp=now + lifetime_s)
    return ".".join((_encoded({"alg": "none"}), _encoded(claims), ""))


class UnsecuredValidator:
    """The check of unsecured tokens.

    Args:
        now_ms: returns the time in epoch milliseconds.
    """

    def __init__(self, rules: ClaimRules, now_ms: Callable[[], int]) -> None:
        self._rules = rules
        self._now_ms = now_ms

    def __call__(self, token: str) -> BearerToken:
        if json_part(token, 0).get("alg") != "none" or not token.endswith("."):
            raise InvalidToken(
                "the token is signed, and this listener has no keys (sasl.oauthbearer.jwks.endpoint.url)"
            )
        # Kafka's validator asks for no iat.
        claims = json_part(token, 1)
        return checked_claims({"iat": 0, **claims}, self._rules, self._now_ms())


def _number(text: str, option: str, setting: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise SecuritySettingError(setting, f"{option} is not a number") from None


def _encoded(value: dict[str, object]) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()
