"""Settings that ask for protection: TLS, logins, ACLs, policies, delegation tokens.

A broker must not serve everybody while its owner believes that it does not. So a node honours such a setting or does not start, and
rejects it by name when it is altered while the node runs. `unserved` tells them from settings that ask for nothing: a setting asks for
protection unless its value

- is empty,
- is Kafka's default (a list in any order), or
- means "no protection", as `allow.everyone.if.no.acl.found=true` does.

A setting of one listener (`listener.name.external.ssl.client.auth`) counts like the setting without the prefix. The text of a password
never leaves this module.

Of one listener of one node, the key store and the trust store (`RELOADABLE`) may be altered while the node runs.
"""

from __future__ import annotations

from collections.abc import Mapping

from barnabas.metadata.config_schema import ConfigKey
from barnabas.words.printable import printable

__all__ = [
    "AUTHORIZER_SETTINGS",
    "HIDDEN",
    "REASON",
    "RELOADABLE",
    "is_of_security",
    "is_secret",
    "of_listener",
    "reloadable_of_listener",
    "shown",
    "unserved",
]

HIDDEN = "[hidden]"
"""Printed in place of a password, as by Kafka."""
REASON = "a node reads such a setting at its start alone: write it into the properties file and start the node again"
AUTHORIZER_SETTINGS = frozenset({"super.users", "allow.everyone.if.no.acl.found"})
"""Settings that only an authorizer reads, so that Kafka does not list them."""

RELOADABLE = frozenset(
    {
        "ssl.key.password",
        *(f"ssl.keystore.{each}" for each in ("type", "location", "password", "key", "certificate.chain")),
        *(f"ssl.truststore.{each}" for each in ("type", "location", "password", "certificates")),
    }
)
"""The settings of a listener's stores, which a node reads again when they are altered."""

_PREFIXES = ("ssl.", "sasl.", "delegation.token.", "password.encoder.")
_NAMES = frozenset(
    {
        "authorizer.class.name",
        "security.protocol",
        "security.inter.broker.protocol",
        "security.providers",
        "principal.builder.class",
        "connections.max.reauth.ms",
        "connection.failed.authentication.delay.ms",
        "early.start.listeners",
        "config.providers",
        "create.topic.policy.class.name",
        "alter.config.policy.class.name",
        *AUTHORIZER_SETTINGS,
    }
)
_LISTENER = "listener.name."
# For names that the table of settings does not have.
_NO_PROTECTION = {"allow.everyone.if.no.acl.found": "true", "security.protocol": "PLAINTEXT"}
_SECRET = ("password", "passphrase", "secret", "jaas", "credential", "token")


def unserved(name: str, text: str, keys: Mapping[str, ConfigKey]) -> bool:
    """Return whether a setting asks for protection.

    Args:
        keys: the broker's settings.

    Raises:
        ConfigError: the text is not a value of the setting.
    """
    own = _own_name(name)
    if own is None or not text.strip():
        return False
    if own not in keys:
        return text.strip().lower() != _NO_PROTECTION.get(own, "").lower()
    value, default = keys[own].parse(text), keys[own].default_value()
    if isinstance(value, tuple) and isinstance(default, tuple):
        return set(value) != set(default)
    return value != default


def _own_name(name: str) -> str | None:
    """Return the name without a listener's prefix; None for a setting that has nothing to do with protection."""
    if not name.startswith(_LISTENER):
        return name if name.startswith(_PREFIXES) or name in _NAMES else None
    # The listener's own name may have dots, and a mechanism may follow it.
    dot = name.find(".", len(_LISTENER))
    while dot >= 0:
        if name.startswith(_PREFIXES, dot + 1):
            return name[dot + 1 :]
        dot = name.find(".", dot + 1)
    return next((own for own in _NAMES if name.endswith(f".{own}")), None)


def of_listener(name: str) -> tuple[str, str] | None:
    """Return the listener and the setting's own name for `listener.name.LISTENER.setting`; None for other names."""
    if not name.startswith(_LISTENER):
        return None
    listener, dot, own = name.removeprefix(_LISTENER).partition(".")
    return (listener, own) if dot else None


def reloadable_of_listener(name: str) -> bool:
    """Return whether a setting is of the stores of one listener."""
    found = of_listener(name)
    return found is not None and found[1] in RELOADABLE


def is_of_security(name: str) -> bool:
    """Return whether a setting has to do with protection, of all listeners or of one."""
    return _own_name(name) is not None


def is_secret(name: str, keys: Mapping[str, ConfigKey]) -> bool:
    """Return whether a setting's value must not be shown: it is a password, or an unknown name that may be one's."""
    key = keys.get(name) or keys.get(_own_name(name) or name)
    if key is not None:
        return key.sensitive
    return name.endswith(".key") or any(word in name.lower() for word in _SECRET)


def shown(name: str, text: str, keys: Mapping[str, ConfigKey]) -> str:
    """Return `name=value` for an error, the name alone if the value must not be shown."""
    return printable(name if is_secret(name, keys) else f"{name}={text}")
