"""Settings that parse, but that this node cannot honour: each check raises `ConfigError`, in one line with a remedy."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from barnabas.config.authorizer_settings import of_authorizer
from barnabas.config.early_start import early_start_listeners
from barnabas.config.listener_security import check_mechanisms, is_honoured, why_unused
from barnabas.config.metrics_settings import check_metrics_settings
from barnabas.config.node_roles import NodeRoles
from barnabas.config.token_settings import TOKEN_SETTINGS
from barnabas.group.group_config import KNOWN_ASSIGNORS, assignor_names
from barnabas.metadata.config_schema import ConfigError, ConfigKey, ConfigValue
from barnabas.metadata.security_settings import shown, unserved
from barnabas.words.printable import printable

__all__ = ["ASSIGNORS", "check_advertised", "check_assignors", "check_protection", "selects_by_rack"]

Value = Callable[[str], ConfigValue]
"""Returns a broker setting's value by Kafka's name."""

ASSIGNORS = "group.consumer.assignors"
SELECTOR = "replica.selector.class"
SELECTORS = "org.apache.kafka.common.replica"


def check_assignors(value: Value) -> None:
    """Reject a list that is empty or names an unknown assignor."""
    given = value(ASSIGNORS)
    assert isinstance(given, tuple), given
    unknown = [name for name in assignor_names(given) if name not in KNOWN_ASSIGNORS]
    if unknown or not given:
        known = ", ".join(KNOWN_ASSIGNORS)
        raise ConfigError(f"Invalid value {','.join(given)} for configuration {ASSIGNORS}: one or more of {known}")


def selects_by_rack(value: Value) -> bool:
    """Return whether leaders send consumers to replicas in their own rack.

    Raises:
        ConfigError: the selector is neither of those that come with Kafka.
    """
    given = value(SELECTOR)
    if given in (None, "", f"{SELECTORS}.LeaderSelector"):
        return False
    if given == f"{SELECTORS}.RackAwareReplicaSelector":
        return True
    raise ConfigError(
        f"Invalid value {printable(str(given))} for configuration {SELECTOR}: a class of yours cannot be loaded; "
        f"use {SELECTORS}.RackAwareReplicaSelector, or leave it out"
    )


def check_advertised(config: NodeRoles) -> None:
    """Reject advertised addresses of listeners that do not exist, as Kafka does: clients would be sent to nobody.

    A node without a role ignores the addresses of that role: one file may serve several nodes.
    """
    names = [listener.name for listener in (*config.listeners, *config.controller_listeners)]
    advertised = (
        *((config.advertised_listeners or ()) if config.is_broker else ()),
        *(config.advertised_controller_listeners if config.is_controller else ()),
    )
    missing = [listener.name for listener in advertised if listener.name not in names]
    if missing:
        raise ConfigError(
            f"advertised.listeners names {printable(missing[0])}, which is not one of the listeners: "
            f"{', '.join(printable(name) for name in sorted(names))}"
        )


def check_protection(given: Mapping[str, str], keys: Mapping[str, ConfigKey], config: NodeRoles) -> None:
    """Reject settings that ask for protection and do not get it, all in one line.

    A setting of listeners is honoured if barnabas knows it and a listener has TLS or SASL; see `listener_security`.
    """
    honoured = of_authorizer(given) | TOKEN_SETTINGS
    asking = [name for name, text in sorted(given.items()) if name not in honoured and unserved(name, text, keys)]
    unknown = [shown(name, given[name], keys) for name in asking if not is_honoured(name, config)]
    if unknown:
        raise ConfigError(
            f"{', '.join(unknown)}: barnabas does not know how to honour {_this(unknown)}. "
            f"Remove {_this(unknown)} to start without the protection"
        )
    for name in asking:
        if why := why_unused(name, config):
            raise ConfigError(
                f"{shown(name, given[name], keys)}: protects nothing, because {why}. Remove it, or change a listener"
            )
    check_mechanisms(config)
    check_metrics_settings(given, keys)
    early_start_listeners(config)


def _this(settings: Sequence[str]) -> str:
    return "this setting" if len(settings) == 1 else "these settings"
