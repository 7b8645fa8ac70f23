"""The security of one listener, built from its settings: key stores are read, mechanisms chosen, users looked up.

It has two sides: of the connections that the listener accepts, and of those that this node dials to the same listener of others.

Users of PLAIN are the options `user_NAME` of the listener's `sasl.jaas.config`, users of SCRAM the credentials in the metadata, as they are
at each login. So are delegation tokens, which log in by SCRAM if the node has their secret.
Users of OAUTHBEARER are the subjects of tokens (`bearer_tokens`).

Source: Kafka's `SaslChannelBuilder`, `PlainServerCallbackHandler`, `ScramServerCallbackHandler`.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from barnabas.config.config import BrokerConfig
from barnabas.config.endpoints import Listener as Endpoint
from barnabas.config.listener_security import enabled_mechanisms, listener_settings, mechanism_setting
from barnabas.config.token_settings import token_settings
from barnabas.metadata.config_schema import ConfigError
from barnabas.net.bearer_tokens import bearer_tokens
from barnabas.net.listener_security import MAX_RECEIVE_BYTES, ListenerSecurity
from barnabas.net.refreshing_keys import RefreshingKeys
from barnabas.net.renewed_store import RenewedStore
from barnabas.security.certificate_names import PrincipalMapper, certificate_name
from barnabas.security.client_security import ClientSecurity, client_security
from barnabas.security.jaas import parse_jaas
from barnabas.security.principal import USER, Principal, principal_of_record
from barnabas.security.sasl.mechanism import ServerMechanism
from barnabas.security.sasl.oauth_messages import OAUTHBEARER
from barnabas.security.sasl.plain import PlainServer
from barnabas.security.sasl.scram_keys import ScramCredential, ScramMechanism
from barnabas.security.sasl.scram_server import ScramServer, ScramUsers, TokenCredential
from barnabas.security.server_login import ServerLogin
from barnabas.security.setting_error import SecuritySettingError
from barnabas.security.tls_layer import TlsLayer

if TYPE_CHECKING:
    from barnabas.metadata.image import MetadataImage
    from barnabas.net.renewed_stores import RenewedStores

__all__ = ["dialled_security", "security_of"]

_PLAIN_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
_USER = "user_"

Make = Callable[[str], ServerMechanism]
"""Makes the server's side of one login; its argument is `authentication` or `re-authentication`."""


def security_of(
    config: BrokerConfig,
    endpoint: Endpoint,
    image: Callable[[], MetadataImage],
    now_ms: Callable[[], int],
    stores: RenewedStores,
) -> ListenerSecurity:
    """Return the security of a listener that is not PLAINTEXT.

    Args:
        image: returns the metadata as of now; SCRAM asks it at each login.
        stores: get those of this listener, which are renewed from then on.

    Raises:
        SecuritySettingError, ConfigError: a setting cannot be used; the text is one line, without secrets.
    """
    settings, protocol = listener_settings(config.properties, endpoint.name), endpoint.security_protocol
    delay_ms = config.int_value("connection.failed.authentication.delay.ms")
    layer, name_of = _tls(config, settings, endpoint, stores) if protocol.endswith("SSL") else (None, None)
    login, keys = _login(config, endpoint, image, now_ms, delay_ms) if protocol.startswith("SASL") else (None, None)
    return ListenerSecurity(
        protocol=protocol,
        layer=layer,
        name_of=name_of,
        login=login,
        max_receive_bytes=_number(settings, endpoint, "sasl.server.max.receive.size", MAX_RECEIVE_BYTES, 1),
        failure_delay_ms=delay_ms,
        keys=keys,
    )


def dialled_security(settings: Mapping[str, str], name: str, stores: RenewedStores) -> ClientSecurity | None:
    """Return how this node dials a listener of another node.

    Args:
        settings: of a client, in Java's names.
        stores: have those of this listener, or get them; they are renewed from then on.

    Raises:
        SecuritySettingError: a setting cannot be used.
    """
    if not settings["security.protocol"].endswith("SSL"):
        return client_security(settings)
    store = stores.get(name, is_server=False)
    if store is None:
        store = RenewedStore(name, settings, is_server=False)
        stores.add(store)
    return client_security(settings, contexts=store.context)


def _tls(
    config: BrokerConfig, settings: Mapping[str, str], endpoint: Endpoint, stores: RenewedStores
) -> tuple[Callable[[], TlsLayer], Callable[[bytes], str] | None]:
    try:
        if endpoint.security_protocol == "SASL_SSL":
            # As in Kafka: the login says who the client is, so this listener asks for no certificate unless its own setting does.
            settings = {"ssl.client.auth": "none", **settings}
        is_between = endpoint in config.listeners and endpoint.name == config.inter_broker_listener.name
        store = RenewedStore(endpoint.name, settings, is_server=True, is_between=is_between)
        stores.add(store)
        names = None
        if settings.get("ssl.client.auth", "none") != "none" and endpoint.security_protocol == "SSL":
            mapper = PrincipalMapper(settings.get("ssl.principal.mapping.rules", "DEFAULT"))

            def name_of(certificate: bytes) -> str:
                return mapper(certificate_name(certificate))

            names = name_of
    except SecuritySettingError as error:
        raise ConfigError(f"listener {endpoint.name}: {error}") from None
    return (lambda: TlsLayer(store.context(), is_server=True)), names


def _login(
    config: BrokerConfig,
    endpoint: Endpoint,
    image: Callable[[], MetadataImage],
    now_ms: Callable[[], int],
    delay_ms: int,
) -> tuple[Callable[[], ServerLogin], RefreshingKeys | None]:
    makes: dict[str, Make] = {}
    keys = None
    for name in enabled_mechanisms(config, endpoint.name):
        if name == OAUTHBEARER:
            makes[name], keys = bearer_tokens(config, endpoint, now_ms)
        else:
            makes[name] = _mechanism(config, endpoint, name, image, now_ms)
    longest = {name: _max_reauth_ms(config, endpoint, name) for name in makes}
    return (lambda: ServerLogin(makes, now_ms=now_ms, max_reauth_ms=longest, delay_ms=delay_ms)), keys


def _mechanism(
    config: BrokerConfig, endpoint: Endpoint, name: str, image: Callable[[], MetadataImage], now_ms: Callable[[], int]
) -> Make:
    if name != "PLAIN":
        return _scram(config, name, image, now_ms)
    jaas = mechanism_setting(config.properties, endpoint.name, name, "sasl.jaas.config")
    return _plain(jaas, f"listener.name.{endpoint.name.lower()}.{name.lower()}.sasl.jaas.config")


def _plain(jaas: str | None, setting: str) -> Make:
    example = f'{_PLAIN_MODULE} required user_alice="…";'
    if jaas is None:
        raise ConfigError(f"{setting} is not set: it has the users of PLAIN, as in {example}")
    entry = parse_jaas(jaas, setting)
    if not entry.is_of(_PLAIN_MODULE):
        raise ConfigError(f"{setting} names another login module than that of PLAIN: {_PLAIN_MODULE}")
    users = {
        option.removeprefix(_USER): password for option, password in entry.options.items() if option.startswith(_USER)
    }
    return lambda during: PlainServer(users.get)


def _scram(config: BrokerConfig, name: str, image: Callable[[], MetadataImage], now_ms: Callable[[], int]) -> Make:
    mechanism = ScramMechanism.of(name)
    assert mechanism is not None, name

    def credential(user: str) -> ScramCredential | None:
        return image().scram.credentials.get((user, mechanism.number))

    secret, tokens = _secret(config), token_settings(config)

    def token(token_id: str) -> TokenCredential | None:
        if tokens is None:
            return None
        # Computed for an id that does not exist, too: the time tells a stranger nothing.
        made = tokens.key.credential(mechanism, token_id, secret)
        found = image().delegation_tokens.tokens.get(token_id)
        if found is None or found.is_expired(now_ms()):
            return None
        owner = Principal(USER, principal_of_record(found.owner).name)
        return TokenCredential(owner, found.expiration_timestamp_ms, made)

    users = ScramUsers(credential, token, secret)
    return lambda during: ScramServer(mechanism, users, os.urandom, during)


def _secret(config: BrokerConfig) -> bytes:
    """Return what the made-up salts of unknown users are derived from.

    A cluster's nodes share the password by which they log in, and so the salts; a node without one has other salts after each start.
    """
    shared = [
        text
        for name, text in sorted(config.properties.items())
        if name.endswith("sasl.jaas.config") and "password" in text
    ]
    return hashlib.sha256("\n".join(shared).encode()).digest() if shared else os.urandom(32)


def _max_reauth_ms(config: BrokerConfig, endpoint: Endpoint, mechanism: str) -> int:
    text = mechanism_setting(config.properties, endpoint.name, mechanism, "connections.max.reauth.ms")
    return _number(
        {} if text is None else {"connections.max.reauth.ms": text}, endpoint, "connections.max.reauth.ms", 0, 0
    )


def _number(settings: Mapping[str, str], endpoint: Endpoint, setting: str, default: int, least: int) -> int:
    text = settings.get(setting)
    if text is None:
        return default
    if not text.strip().isdecimal() or len(text) > 18 or int(text) < least:
        raise ConfigError(
            f"Invalid value {text} for configuration {setting} of listener {endpoint.name}: a number from {least}"
        )
    return int(text)
