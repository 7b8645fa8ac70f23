"""The settings that the cluster itself has: of topics, groups and metrics subscriptions, and of brokers, static and dynamic.

The static settings of a broker whose file is given are left to the file, which has lines.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from barnabas.adopt.cluster_state import ClusterState, Settings
from barnabas.adopt.finding import Finding, blocks, differs
from barnabas.client.admin import ConfigEntry, ConfigSource
from barnabas.config.authorizer_settings import STANDARD_AUTHORIZER
from barnabas.config.config import is_setting
from barnabas.config.config_table import config_schema
from barnabas.config.listener_security import HONOURED, MECHANISMS
from barnabas.config.token_settings import TOKEN_SETTINGS
from barnabas.metadata.config_schema import ConfigError, ConfigKey, ConfigResourceType
from barnabas.metadata.security_settings import of_listener, unserved
from barnabas.words.printable import printable

__all__ = ["findings_of_settings"]

_TIERED = "remote.storage.enable"
_AUTHORIZER = "authorizer.class.name"
_ENABLED = "sasl.enabled.mechanisms"
_OF_ALL = (ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG,)
_DYNAMIC = (ConfigSource.DYNAMIC_BROKER_CONFIG, *_OF_ALL)
_LEAVE = "leave it for the way back"


def findings_of_settings(state: ClusterState, with_file: Collection[int]) -> Iterator[Finding]:
    """Yield settings that barnabas would reject, ignore, or does not know.

    Args:
        with_file: the nodes whose file is given.
    """
    for kind, noun, settings in (
        (ConfigResourceType.TOPIC, "topic", state.topic_settings),
        (ConfigResourceType.GROUP, "group", state.group_settings),
        (ConfigResourceType.CLIENT_METRICS, "metrics subscription", state.client_metrics),
    ):
        yield from _of_resources(kind, noun, settings)
    for broker, entries in state.broker_settings.items():
        if broker not in state.barnabas:
            yield from _of_broker(broker, entries, is_with_file=broker in with_file)


def _of_resources(kind: ConfigResourceType, noun: str, settings: Settings) -> Iterator[Finding]:
    keys = config_schema().of(kind)
    for name, entries in settings.items():
        where = f"{noun} {printable(name)}"
        for entry in entries:
            if entry.name == _TIERED and entry.value == "true":
                what = "it is tiered: records are in remote storage, which barnabas does not read"
                yield blocks(where, what, f"copy it to a topic without {_TIERED}, or let it expire")
            elif not entry.is_default:
                yield from _of_entry(where, entry, keys)


def _of_broker(broker: int, entries: Sequence[ConfigEntry], *, is_with_file: bool) -> Iterator[Finding]:
    keys = config_schema().of(ConfigResourceType.BROKER)
    for entry in entries:
        is_static = entry.source == ConfigSource.STATIC_BROKER_CONFIG
        where = "all brokers" if entry.source in _OF_ALL else f"broker {broker}"
        if entry.source in _DYNAMIC or (is_static and not is_with_file):
            yield from _of_protection(where, entry, keys)
            yield from _of_entry(where, entry, keys)


def _of_entry(where: str, entry: ConfigEntry, keys: Mapping[str, ConfigKey]) -> Iterator[Finding]:
    """Yield a setting that barnabas does not know, ignores or rejects; its value is never shown, for it may be a secret."""
    name = printable(entry.name)
    key = keys.get(entry.name)
    if key is None:
        if not is_setting(entry.name):
            yield differs(where, f"barnabas does not know the setting {name}", "nothing, if you can do without it")
        return
    if entry.value is None:
        return
    try:
        value = key.parse(entry.value)
    except ConfigError:
        yield blocks(where, f"barnabas does not take the value of {name}", "alter it to a value within its bounds")
        return
    if not key.has_effect and value != key.default_value():
        yield differs(where, f"{name} has no effect", _LEAVE)


def _of_protection(where: str, entry: ConfigEntry, keys: Mapping[str, ConfigKey]) -> Iterator[Finding]:
    own = (of_listener(entry.name) or ("", entry.name))[1]
    text = entry.value or ""
    if own == _AUTHORIZER:
        if text and text != STANDARD_AUTHORIZER:
            what = f"the authorizer is {printable(text)}: barnabas has only StandardAuthorizer"
            yield blocks(where, what, "move its rules to StandardAuthorizer's access control lists first")
    elif own == _ENABLED:
        unknown = [each.strip() for each in text.split(",") if each.strip() not in MECHANISMS]
        if unknown and any(unknown) and not entry.is_default:
            what = f"{_ENABLED} has {printable(', '.join(unknown))}, which barnabas does not have"
            yield blocks(where, what, f"move clients to one of {', '.join(MECHANISMS)} first")
    elif own not in HONOURED | TOKEN_SETTINGS and own in keys and unserved(own, text, keys):
        what = f"{printable(entry.name)} asks for protection that barnabas does not have"
        yield blocks(where, what, "a node does not start with it: remove it, if the cluster may do without")
