"""The settings that a description shows without `--all`, and where they come from in few words."""

from __future__ import annotations

from collections.abc import Iterable

from barnabas.client.admin import ConfigEntry, ResourceType
from barnabas.client.configs import OWN_SOURCES
from barnabas.settings_table import settings_of

_WITH_SETTINGS_OF_BROKERS = (ResourceType.TOPIC, ResourceType.GROUP)
SHORT_SOURCES = {
    "UNKNOWN": "unknown",
    "DYNAMIC_TOPIC_CONFIG": "topic",
    "DYNAMIC_BROKER_CONFIG": "broker",
    "DYNAMIC_DEFAULT_BROKER_CONFIG": "brokers",
    "STATIC_BROKER_CONFIG": "static",
    "DEFAULT_CONFIG": "default",
    "DYNAMIC_BROKER_LOGGER_CONFIG": "logger",
    "DYNAMIC_CLIENT_METRICS_CONFIG": "metrics",
    "DYNAMIC_GROUP_CONFIG": "group",
}
"""Sources for a narrow terminal, no wider than the TYPE that would otherwise stand there alone."""


def changed(kind: ResourceType, entries: Iterable[ConfigEntry]) -> list[ConfigEntry]:
    """Return the settings that were set.

    A topic and a group also have the brokers' settings, of which this returns those with another value than Kafka's default. A new
    cluster sets `min.insync.replicas` of all brokers to its default, which says nothing of any topic.
    """
    there = [each for each in entries if not each.is_default]
    if kind not in _WITH_SETTINGS_OF_BROKERS:
        return there
    defaults = {each.name: each.default for each in settings_of(kind.name.lower())}
    return [each for each in there if each.source is OWN_SOURCES[kind] or each.value != defaults.get(each.name)]
