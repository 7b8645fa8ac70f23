"""The security of a node's listeners, and of the connections that it dials, as its settings have it.

    listener.name.NAME.MECHANISM.setting  before  listener.name.NAME.setting  before  setting

- Listener and mechanism are in lower case there. `sasl.jaas.config` of a listener needs both, as in Kafka.
- A setting that asks for protection is honoured, or it stops the start by name: one that barnabas does not know how to honour, one of a
  listener that does not exist, and one of TLS or SASL on a node where no listener has it.
- One of OAUTHBEARER needs a listener with this mechanism.
- GSSAPI, Kafka's default, stops the start: a listener with SASL names its mechanisms.
- SCRAM among voters stops the start: the credentials are in the log, which has no leader before the voters have talked. Brokers may log in
  with it at controllers.

Source: Kafka's `KafkaConfig.validateValues`, `ListenerName`, `ChannelBuilders`, `JaasContext`; KIP-85, KIP-103, KIP-226.
"""

from __future__ import annotations

from collections.abc import Mapping

from barnabas.config.endpoints import PROTOCOL_MAP, security_protocols
from barnabas.config.node_roles import NodeRoles
from barnabas.metadata.config_schema import ConfigError
from barnabas.words.printable import printable

__all__ = [
    "BEARER_HANDLER",
    "CONTROLLER_MECHANISM",
    "HANDLER_CLASS",
    "HONOURED",
    "INTER_BROKER_MECHANISM",
    "MECHANISMS",
    "OF_OAUTHBEARER",
    "check_mechanisms",
    "dialling_settings",
    "enabled_mechanisms",
    "has_login",
    "is_honoured",
    "listener_settings",
    "mechanism_setting",
    "protocols_in_use",
    "why_unused",
]

MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
INTER_BROKER_MECHANISM = "sasl.mechanism.inter.broker.protocol"
CONTROLLER_MECHANISM = "sasl.mechanism.controller.protocol"
ENABLED = "sasl.enabled.mechanisms"

_LISTENER = "listener.name."
_OF_TLS = frozenset(
    {
        "ssl.client.auth",
        "ssl.principal.mapping.rules",
        "ssl.allow.dn.changes",
        "ssl.allow.san.changes",
        "ssl.protocol",
        "ssl.enabled.protocols",
        "ssl.cipher.suites",
        "ssl.endpoint.identification.algorithm",
        "ssl.key.password",
        *(f"ssl.keystore.{each}" for each in ("type", "location", "password", "key", "certificate.chain")),
        *(f"ssl.truststore.{each}" for each in ("type", "location", "password", "certificates")),
    }
)
_OF_SASL = frozenset(
    {
        ENABLED,
        INTER_BROKER_MECHANISM,
        CONTROLLER_MECHANISM,
        "sasl.jaas.config",
        "sasl.server.max.receive.size",
        "connections.max.reauth.ms",
    }
)
OF_OAUTHBEARER = (
    *(
        f"sasl.oauthbearer.jwks.endpoint.{each}"
        for each in ("url", "refresh.ms", "retry.backoff.ms", "retry.backoff.max.ms")
    ),
    *(f"sasl.oauthbearer.expected.{each}" for each in ("audience", "issuer")),
    *(f"sasl.oauthbearer.allow.unverified.{each}" for each in ("audience", "issuer")),
    "sasl.oauthbearer.clock.skew.seconds",
    "sasl.oauthbearer.scope.claim.name",
    "sasl.oauthbearer.sub.claim.name",
)
"""The settings of a listener that checks tokens."""

TOKEN_ENDPOINT_URL = "sasl.oauthbearer.token.endpoint.url"
"""The file with the token by which a node logs in where it dials."""

HANDLER_CLASS = "sasl.server.callback.handler.class"
BEARER_HANDLER = "org.apache.kafka.common.security.oauthbearer.OAuthBearerValidatorCallbackHandler"
"""The class that Kafka's listeners must name to check signed tokens; here it may stay in the file."""

_OF_BOTH = frozenset({"security.inter.broker.protocol", "connection.failed.authentication.delay.ms"})
_OF_NODE = frozenset({"early.start.listeners", "config.providers"})
HONOURED = _OF_TLS | _OF_SASL | _OF_BOTH | _OF_NODE | {*OF_OAUTHBEARER, TOKEN_ENDPOINT_URL}
"""The settings that barnabas knows how to honour, for all listeners or for one."""

_NOT_OF_ONE_LISTENER = _OF_NODE | {INTER_BROKER_MECHANISM, CONTROLLER_MECHANISM, "security.inter.broker.protocol"}


def listener_settings(properties: Mapping[str, str], name: str) -> dict[str, str]:
    """Return the settings of TLS and SASL that hold for one listener, text by Kafka's name without a prefix.

    Args:
        properties: of the node.
        name: the listener's, in capitals or not.
    """
    prefix = f"{_LISTENER}{name.lower()}."
    of_all = {each: text for each, text in properties.items() if each in HONOURED}
    own = {each.removeprefix(prefix): text for each, text in properties.items() if each.startswith(prefix)}
    return {**of_all, **own}


def mechanism_setting(properties: Mapping[str, str], name: str, mechanism: str, setting: str) -> str | None:
    """Return the text of a setting of one mechanism on one listener; None if the node has none."""
    settings = listener_settings(properties, name)
    return settings.get(f"{mechanism.lower()}.{setting}", settings.get(setting))


def has_login(config: NodeRoles, name: str, protocol: str) -> bool:
    """Return whether a listener serves only clients that have proved who they are: by SASL, or by a certificate.

    Args:
        protocol: of the listener.
    """
    settings = listener_settings(config.properties, name)
    return protocol.startswith("SASL") or (protocol == "SSL" and settings.get("ssl.client.auth") == "required")


def enabled_mechanisms(config: NodeRoles, name: str) -> tuple[str, ...]:
    """Return the mechanisms of a listener with SASL.

    Raises:
        ConfigError: the setting names no mechanism, or one that barnabas does not have.
    """
    text = listener_settings(config.properties, name).get(ENABLED, "GSSAPI")
    found = tuple(dict.fromkeys(each.strip() for each in text.split(",") if each.strip()))
    if not found:
        raise ConfigError(f"{ENABLED} is empty, but listener {printable(name)} has SASL: name one of {_list()}")
    for each in found:
        _check_known(each, f"{ENABLED} of listener {printable(name)}")
    return found


def dialling_settings(config: NodeRoles, name: str, mechanism_setting_name: str) -> dict[str, str]:
    """Return a client's settings, in Java's names, by which this node dials a listener of another one.

    Args:
        name: the listener's.
        mechanism_setting_name: the setting that has the mechanism: `INTER_BROKER_MECHANISM` or `CONTROLLER_MECHANISM`.
    """
    protocol = protocols_in_use(config).get(name.upper(), "PLAINTEXT")
    settings = {
        each: text for each, text in listener_settings(config.properties, name).items() if each.startswith("ssl.")
    }
    settings["security.protocol"] = protocol
    if protocol.startswith("SASL"):
        mechanism = config.str_value(mechanism_setting_name)
        settings["sasl.mechanism"] = mechanism
        jaas = mechanism_setting(config.properties, name, mechanism, "sasl.jaas.config")
        if jaas is None:
            raise ConfigError(
                f"{_LISTENER}{name.lower()}.{mechanism.lower()}.sasl.jaas.config is not set: "
                f"this node logs in with it where it dials listener {printable(name)}"
            )
        settings["sasl.jaas.config"] = jaas
        token = mechanism_setting(config.properties, name, mechanism, TOKEN_ENDPOINT_URL)
        if token is not None:
            settings[TOKEN_ENDPOINT_URL] = token
    return settings


def check_mechanisms(config: NodeRoles) -> None:
    """Reject mechanisms that cannot work, among those of listeners and those by which this node logs in."""
    for each in (*config.listeners, *config.controller_listeners):
        if each.security_protocol.startswith("SASL"):
            enabled_mechanisms(config, each.name)
    if config.is_alone:
        return
    used = protocols_in_use(config)
    between = config.inter_broker_listener.name
    if config.is_broker and used.get(between, "").startswith("SASL"):
        mechanism = config.str_value(INTER_BROKER_MECHANISM)
        _check_known(mechanism, INTER_BROKER_MECHANISM)
        if mechanism not in enabled_mechanisms(config, between):
            raise ConfigError(
                f"{INTER_BROKER_MECHANISM} must be included in {ENABLED} when SASL is used for inter-broker communication"
            )
    names = [name.upper() for name in config.list_value("controller.listener.names")]
    if names and used.get(names[0], "").startswith("SASL"):
        mechanism = config.str_value(CONTROLLER_MECHANISM)
        _check_known(mechanism, CONTROLLER_MECHANISM)
        if config.has_other_voters and mechanism.startswith("SCRAM"):
            raise ConfigError(
                f"{CONTROLLER_MECHANISM}={mechanism} cannot work among voters: the credentials are in the log that has no "
                "leader yet; use PLAIN, or certificates (SSL with ssl.client.auth=required)"
            )


def is_honoured(name: str, config: NodeRoles) -> bool:
    """Return whether barnabas knows how to honour a setting with a security meaning, and it is of a listener that this node has."""
    if not name.startswith(_LISTENER):
        # As in Kafka, a listener's logins are its own.
        return name in HONOURED and name != "sasl.jaas.config"
    for listener in protocols_in_use(config):
        prefix = f"{_LISTENER}{listener.lower()}."
        if name.startswith(prefix):
            own = name.removeprefix(prefix)
            if own in HONOURED - _NOT_OF_ONE_LISTENER - {"sasl.jaas.config"}:
                return True
            mechanism, _, setting = own.partition(".")
            known = [each.lower() for each in MECHANISMS]
            if mechanism == "oauthbearer" and setting in (*OF_OAUTHBEARER, TOKEN_ENDPOINT_URL, HANDLER_CLASS):
                return True
            return mechanism in known and setting in ("sasl.jaas.config", "connections.max.reauth.ms")
    return False


def why_unused(name: str, config: NodeRoles) -> str:
    """Return why a setting that could be honoured protects nothing; empty if it does."""
    used = protocols_in_use(config).values()
    own = name.rpartition(".ssl.")[1] or name.startswith("ssl.")
    if own:
        return "" if any(each.endswith("SSL") for each in used) else f"no listener has SSL or SASL_SSL ({PROTOCOL_MAP})"
    if "sasl." in name or name.endswith("connections.max.reauth.ms"):
        if not any(each.startswith("SASL") for each in used):
            return f"no listener has SASL_SSL or SASL_PLAINTEXT ({PROTOCOL_MAP})"
        if "sasl.oauthbearer." in name and not name.endswith(TOKEN_ENDPOINT_URL) and not _has_bearers(config):
            return f"no listener has the mechanism OAUTHBEARER ({ENABLED})"
    return ""


def _has_bearers(config: NodeRoles) -> bool:
    secured = [
        each for each in (*config.listeners, *config.controller_listeners) if each.security_protocol.startswith("SASL")
    ]
    return any("OAUTHBEARER" in enabled_mechanisms(config, each.name) for each in secured)


def protocols_in_use(config: NodeRoles) -> dict[str, str]:
    """Return the protocol of each listener that this node has, or dials: a broker without a controller dials one by its name."""
    used = {each.name: each.security_protocol for each in (*config.listeners, *config.controller_listeners)}
    if not config.is_alone:
        mapped = security_protocols(config.str_value(PROTOCOL_MAP))
        for name in config.list_value("controller.listener.names"):
            used.setdefault(name.upper(), mapped.get(name.upper(), "PLAINTEXT"))
    return used


def _check_known(mechanism: str, where: str) -> None:
    if mechanism == "GSSAPI":
        raise ConfigError(f"{where} is GSSAPI (Kafka's default), which barnabas does not have: name one of {_list()}")
    if mechanism not in MECHANISMS:
        raise ConfigError(f"{where} is {printable(mechanism)}, which is not one of {_list()}")


def _list() -> str:
    return ", ".join(MECHANISMS)
