"""Settings of TLS and SASL for librdkafka, from those of Kafka's Java client: one file serves both kinds of client.

    Java                                                librdkafka
    ssl.keystore.*, ssl.key.password                    ssl.key.pem, ssl.key.password, ssl.certificate.pem
    ssl.truststore.*                                    ssl.ca.pem; without a trust store ssl.ca.location=probe
    ssl.endpoint.identification.algorithm, empty        none
    sasl.mechanism                                      sasl.mechanism
    sasl.jaas.config of PLAIN and SCRAM                 sasl.username, sasl.password
    OAUTHBEARER                                         oauth_cb, which asks our own machine for its token

Stores are read here (`security/key_stores`) and given as text, because librdkafka reads no trust store of Java's. The result has
secrets: it goes into a client and nowhere else.

Limits: librdkafka sends no extensions of a delegation token, so `tokenauth` is an error; `ssl.enabled.protocols` and Java's names of suites
have no counterpart and are left to OpenSSL.
Source: CONFIGURATION.md of librdkafka.
"""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from barnabas.security.client_login import jaas_entry
from barnabas.security.client_security import MECHANISM, PROTOCOL, ClientSecurity
from barnabas.security.key_stores import key_store, trusted_certificates
from barnabas.security.setting_error import SecuritySettingError

if TYPE_CHECKING:
    from barnabas.security.sasl.mechanism import ClientMechanism

__all__ = ["librdkafka_security"]

_NAME_CHECK = "ssl.endpoint.identification.algorithm"
_JAAS = "sasl.jaas.config"
_BEARER = "auth=Bearer "
_UNKNOWN_LIFETIME_S = 300
"""librdkafka asks for the next token at 80 % of a token's lifetime; one that does not say it is asked for again soon."""

Token = tuple[str, float, str, dict[str, str]]
"""A token as librdkafka takes it: the token, its end in epoch seconds, the principal's name (broker and token know it), extensions."""


def librdkafka_security(security: ClientSecurity | None) -> dict[str, Any]:
    """Return librdkafka's settings for a client with this security; none for PLAINTEXT.

    Raises:
        SecuritySettingError: librdkafka cannot do what a setting says.
    """
    if security is None:
        return {}
    settings = dict(security.settings)
    found: dict[str, Any] = {PROTOCOL: security.protocol}
    if security.context is not None:
        found |= _tls(settings)
    if security.mechanism is not None:
        found |= _login(settings, security)
    return found


def _tls(settings: Mapping[str, str]) -> dict[str, Any]:
    trusted, own = trusted_certificates(settings), key_store(settings)
    found: dict[str, Any] = {_NAME_CHECK: settings.get(_NAME_CHECK, "https") or "none"}
    if trusted is None:
        found["ssl.ca.location"] = "probe"
    else:
        found["ssl.ca.pem"] = trusted
    if own is not None:
        found |= {"ssl.key.pem": own.key, "ssl.certificate.pem": own.chain}
        if own.key_password is not None:
            found["ssl.key.password"] = own.key_password
    return found


def _login(settings: Mapping[str, str], security: ClientSecurity) -> dict[str, Any]:
    assert security.mechanism is not None
    name = security.mechanism_name
    if name == "OAUTHBEARER":
        return {MECHANISM: name, "oauth_cb": _token_of(security.mechanism)}
    options = jaas_entry(settings).options
    if options.get("tokenauth", "").lower() == "true":
        raise SecuritySettingError(
            _JAAS, "librdkafka, which this command uses, does not log in by delegation token (tokenauth)"
        )
    return {MECHANISM: name, "sasl.username": options["username"], "sasl.password": options["password"]}


def _token_of(
    machine_for: Callable[[str], ClientMechanism], now_s: Callable[[], float] = time.time
) -> Callable[[str], Token]:
    """Return librdkafka's callback: it gets the token from the first message of our own machine, which knows where tokens come from."""

    def token(config: str) -> Token:
        first = machine_for("").begin().decode()
        pairs = [each for each in first.split("\x01")[1:] if each]
        found = next(each for each in pairs if each.startswith(_BEARER)).removeprefix(_BEARER)
        extensions = dict(each.split("=", 1) for each in pairs if not each.startswith("auth="))
        return found, _end_s(found) or now_s() + _UNKNOWN_LIFETIME_S, "", extensions

    return token


def _end_s(token: str) -> float | None:
    """Return the claim `exp` of a token that is a JWT; None for any other one."""
    try:
        claims = token.split(".")[1]
        return float(json.loads(base64.urlsafe_b64decode(claims + "=" * (-len(claims) % 4)))["exp"])
    except (IndexError, KeyError, TypeError, ValueError):
        return None
