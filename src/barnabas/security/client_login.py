"""How a client logs in: the machine of a mechanism, from Java's settings.

    sasl.jaas.config        login module, user and password (`security/jaas`)
    sasl.oauthbearer.*      where tokens come from (`security/token_source`)

Kafka's classes are accepted under their own names, and under the prefix that some distributions put before them. As in Java, the module of
PLAIN also serves SCRAM and the other way round: the mechanism decides.

Sources: Kafka's `SaslClientAuthenticator`, `PlainLoginModule`, `ScramLoginModule`.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping

from barnabas.security.jaas import SASL_JAAS_CONFIG, JaasEntry, parse_jaas
from barnabas.security.sasl.mechanism import ClientMechanism
from barnabas.security.sasl.oauth_client import OAuthBearerClient
from barnabas.security.sasl.oauth_messages import OAUTHBEARER, is_extension
from barnabas.security.sasl.plain import PLAIN, PlainClient
from barnabas.security.sasl.scram_client import ScramClient, ScramPassword
from barnabas.security.sasl.scram_keys import ScramMechanism
from barnabas.security.setting_error import SecuritySettingError
from barnabas.security.token_source import TokenRequest, token_source

__all__ = ["MECHANISMS", "SASL_MECHANISM", "client_mechanism"]

SASL_MECHANISM = "sasl.mechanism"
MECHANISMS = (PLAIN, *(one.label for one in ScramMechanism), OAUTHBEARER)

_MODULES = (
    "org.apache.kafka.common.security.plain.PlainLoginModule",
    "org.apache.kafka.common.security.scram.ScramLoginModule",
)
_BEARER_MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"


def client_mechanism(
    settings: Mapping[str, str],
    mechanism: str,
    *,
    fetch: Callable[[TokenRequest], bytes] | None = None,
    now_ms: Callable[[], int] | None = None,
) -> Callable[[str], ClientMechanism]:
    """Return what makes the client's side of a login: from the name of a host to a new machine.

    Args:
        settings: Java's names; those that this module does not list are ignored.
        mechanism: the value of `sasl.mechanism`.
        fetch: asks a token server for OAUTHBEARER, see `token_source`.
        now_ms: returns the time in epoch milliseconds, for the life of tokens; None: the computer's clock.

    Raises:
        SecuritySettingError: the mechanism is not supported, or a setting of it cannot be used. The text has no secret.
    """
    if mechanism == PLAIN:
        user, password, _ = _user(settings)
        return lambda host: PlainClient(user, password)
    scram = ScramMechanism.of(mechanism)
    if scram is not None:
        user, password, options = _user(settings)
        by_token = options.get("tokenauth", "").lower() == "true"
        known = ScramPassword(scram, user, password, by_token=by_token)
        return lambda host: ScramClient(known, os.urandom)
    if mechanism == OAUTHBEARER:
        return _bearer(settings, now_ms or (lambda: time.time_ns() // 1_000_000), fetch)
    if mechanism == "GSSAPI":
        why = f"GSSAPI (Kerberos), which is also the default, is not supported; choose one of {', '.join(MECHANISMS)}"
        raise SecuritySettingError(SASL_MECHANISM, why)
    raise SecuritySettingError(SASL_MECHANISM, f"expected one of {', '.join(MECHANISMS)}")


def jaas_entry(settings: Mapping[str, str]) -> JaasEntry:
    """Return the login module of the settings.

    Raises:
        SecuritySettingError: there is none, or it cannot be read.
    """
    text = settings.get(SASL_JAAS_CONFIG)
    if text is None:
        why = 'is missing, e.g. org.apache.kafka.common.security.plain.PlainLoginModule required username="…" password="…";'
        raise SecuritySettingError(SASL_JAAS_CONFIG, why)
    return parse_jaas(text)


def _bearer(
    settings: Mapping[str, str], now_ms: Callable[[], int], fetch: Callable[[TokenRequest], bytes] | None
) -> Callable[[str], ClientMechanism]:
    entry = jaas_entry(settings)
    if not entry.is_of(_BEARER_MODULE):
        raise SecuritySettingError(SASL_JAAS_CONFIG, f"names another login module than {_BEARER_MODULE}")
    token = token_source(settings, entry, now_ms, fetch)
    prefixes = ("extension_", "unsecuredLoginExtension_")
    extensions = {
        option.removeprefix(prefix): value
        for option, value in entry.options.items()
        for prefix in prefixes
        if option.startswith(prefix)
    }
    for name, value in extensions.items():
        if not is_extension(name, value):
            why = f"the extension {name!r} must have a name of letters, not auth, and a value of printable characters"
            raise SecuritySettingError(SASL_JAAS_CONFIG, why)
    return lambda host: OAuthBearerClient(token, extensions)


def _user(settings: Mapping[str, str]) -> tuple[str, str, Mapping[str, str]]:
    entry = jaas_entry(settings)
    if not any(entry.is_of(module) for module in _MODULES):
        classes = " or ".join(_MODULES)
        raise SecuritySettingError(SASL_JAAS_CONFIG, f"names a login module without user and password; use {classes}")
    user, password = entry.options.get("username"), entry.options.get("password")
    for option, value in (("username", user), ("password", password)):
        if not value:
            raise SecuritySettingError(SASL_JAAS_CONFIG, f'has no {option}; add {option}="…" before the semicolon')
    assert user is not None
    assert password is not None
    return user, password, entry.options
