"""Which settings a description shows without `--all`."""

from __future__ import annotations

from barnabas.cli.changed_settings import SHORT_SOURCES, changed
from barnabas.client.admin import ConfigEntry, ConfigSource, ResourceType


def entry(name: str, value: str, source: ConfigSource) -> ConfigEntry:
    return ConfigEntry(name, value, source, False, False, "int", [], None)


OWN = entry("max.message.bytes", "1048588", ConfigSource.DYNAMIC_TOPIC_CONFIG)
LIKE_KAFKA = entry("min.insync.replicas", "1", ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG)
OF_THE_BROKERS = entry("retention.ms", "3600000", ConfigSource.STATIC_BROKER_CONFIG)
DEFAULT = entry("segment.ms", "604800000", ConfigSource.DEFAULT_CONFIG)
ALL = [OWN, LIKE_KAFKA, OF_THE_BROKERS, DEFAULT]


def test_a_topic_has_its_own_settings_and_what_differs_from_kafkas_default() -> None:
    assert changed(ResourceType.TOPIC, ALL) == [OWN, OF_THE_BROKERS]


def test_a_broker_has_whatever_was_set() -> None:
    assert changed(ResourceType.BROKER, ALL) == [OWN, LIKE_KAFKA, OF_THE_BROKERS]


def test_a_group_has_its_own() -> None:
    own = entry("consumer.session.timeout.ms", "45000", ConfigSource.DYNAMIC_GROUP_CONFIG)
    inherited = own._replace(source=ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG)
    assert changed(ResourceType.GROUP, [own, inherited, DEFAULT]) == [own]


def test_every_source_has_a_short_word() -> None:
    assert list(SHORT_SOURCES) == [each.name for each in ConfigSource]
    assert len(set(SHORT_SOURCES.values())) == len(ConfigSource)
    assert max(map(len, SHORT_SOURCES.values())) <= len("boolean")
