"""OAUTHBEARER on a listener, built from its settings: where the keys come from, and which claims a token must have.

Each setting `sasl.oauthbearer.*` may be of the listener, or of the mechanism on it: `listener.name.NAME.oauthbearer.SETTING`.

- Tokens are signed, and the keys are those of `sasl.oauthbearer.jwks.endpoint.url`. For HTTPS the authorities are the system's, or those of
  `ssl.truststore.*` among the options of the login module, as in Kafka.
- Without that setting the start fails, unless `barnabas.insecure` is true. Then tokens are unsecured: anybody can make one.
- Of Kafka's own classes, `sasl.server.callback.handler.class` may name `OAuthBearerValidatorCallbackHandler`. Others cannot be loaded.

Sources: KIP-768; Kafka's `OAuthBearerValidatorCallbackHandler`, `JaasOptionsUtils`.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable, Mapping

from barnabas.config.config import BrokerConfig
from barnabas.config.endpoints import Listener as Endpoint
from barnabas.config.listener_security import BEARER_HANDLER, HANDLER_CLASS, OF_OAUTHBEARER, mechanism_setting
from barnabas.metadata.config_schema import ConfigError
from barnabas.net.jwks_fetch import document_reader, shown_address
from barnabas.net.refreshing_keys import RefreshingKeys, RefreshTimes
from barnabas.security.jaas import SASL_JAAS_CONFIG, parse_jaas
from barnabas.security.sasl.mechanism import ServerMechanism
from barnabas.security.sasl.oauth_claims import ClaimRules
from barnabas.security.sasl.oauth_keys import JWKS_ENDPOINT_URL, KeySet, TokenValidator
from barnabas.security.sasl.oauth_messages import OAUTHBEARER
from barnabas.security.sasl.oauth_server import BearerToken, OAuthBearerServer
from barnabas.security.sasl.oauth_unsecured import UnsecuredValidator
from barnabas.security.setting_error import SecuritySettingError
from barnabas.security.tls_settings import client_context
from barnabas.words.printable import printable

__all__ = ["INSECURE", "bearer_tokens"]

INSECURE = "barnabas.insecure"

_MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
_ANY = {f"sasl.oauthbearer.allow.unverified.{claim}": "true" for claim in ("audience", "issuer")}


def bearer_tokens(
    config: BrokerConfig, endpoint: Endpoint, now_ms: Callable[[], int]
) -> tuple[Callable[[str], ServerMechanism], RefreshingKeys | None]:
    """Return what makes the server's side of a login, and the keys that the listener must begin; None for unsecured tokens.

    Raises:
        SecuritySettingError, ConfigError: a setting cannot be used; the text is one line, without secrets.
    """
    prefix = f"listener.name.{endpoint.name.lower()}.{OAUTHBEARER.lower()}."
    settings = {
        name: text
        for name in (*OF_OAUTHBEARER, HANDLER_CLASS, SASL_JAAS_CONFIG)
        if (text := mechanism_setting(config.properties, endpoint.name, OAUTHBEARER, name)) is not None
    }
    handler = settings.get(HANDLER_CLASS, "").strip()
    if handler not in ("", BEARER_HANDLER):
        raise SecuritySettingError(
            prefix + HANDLER_CLASS, f"a class cannot be loaded; leave it out, or name {BEARER_HANDLER}"
        )
    options = _options(settings, prefix)
    validate: Callable[[str], BearerToken]
    url = settings.get(JWKS_ENDPOINT_URL, "").strip()
    if not url:
        if not config.bool_value(INSECURE):
            raise ConfigError(
                f"{prefix}{JWKS_ENDPOINT_URL} is not set: it has the keys of OAUTHBEARER's tokens (file:, https: or http:). "
                f"Tokens without a signature, which anybody can make, need {INSECURE}=true (--insecure)"
            )
        validate = UnsecuredValidator(ClaimRules.of({**_ANY, **settings}, prefix), now_ms)
        return (lambda during: OAuthBearerServer(validate, during)), None
    keys = _keys(settings, options, url, prefix)
    validate = TokenValidator(keys.keys, ClaimRules.of(settings, prefix), now_ms, keys.ask_for)
    return (lambda during: OAuthBearerServer(validate, during)), keys


def _options(settings: Mapping[str, str], prefix: str) -> Mapping[str, str]:
    jaas = settings.get(SASL_JAAS_CONFIG)
    if jaas is None:
        return {}
    entry = parse_jaas(jaas, prefix + SASL_JAAS_CONFIG)
    if not entry.is_of(_MODULE):
        raise ConfigError(f"{prefix}{SASL_JAAS_CONFIG} names another login module than that of OAUTHBEARER: {_MODULE}")
    return entry.options


def _keys(settings: Mapping[str, str], options: Mapping[str, str], url: str, prefix: str) -> RefreshingKeys:
    def context() -> ssl.SSLContext:
        try:
            return client_context(options)
        except SecuritySettingError as error:
            raise SecuritySettingError(prefix + SASL_JAAS_CONFIG, str(error)) from None

    try:
        read = document_reader(url, context)
    except SecuritySettingError:
        raise
    except ValueError as error:
        raise SecuritySettingError(prefix + JWKS_ENDPOINT_URL, str(error)) from None
    names = [f"sasl.oauthbearer.jwks.endpoint.{each}.ms" for each in ("refresh", "retry.backoff", "retry.backoff.max")]
    defaults = RefreshTimes()
    times = RefreshTimes(*(_milliseconds(settings, *each, prefix) for each in zip(names, defaults, strict=True)))
    return RefreshingKeys(KeySet(), shown_address(url), read, times)


def _milliseconds(settings: Mapping[str, str], name: str, default: int, prefix: str) -> int:
    text = settings.get(name, str(default)).strip()
    if not (text.isascii() and text.isdecimal()) or len(text) > 18 or int(text) < 1:
        raise SecuritySettingError(prefix + name, f"{printable(text)} is not a number of milliseconds from 1")
    return int(text)
