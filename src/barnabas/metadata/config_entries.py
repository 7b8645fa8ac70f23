"""The value of a setting that is in force, and its source.

For DescribeConfigs and for the answer to CreateTopics. The order of sources, strongest first, is Kafka's:

    the topic's own (group's own, …)  >  this broker's dynamic  >  cluster-wide dynamic  >  static  >  default

and within one source the synonyms of a setting count in the order of the table (milliseconds before minutes before hours).

Sources: KIP-226; Kafka's `ConfigHelper`, `KafkaConfigSchema`, `DynamicBrokerConfig`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

from barnabas.metadata.config_schema import (
    ConfigKey,
    ConfigResourceType,
    ConfigSchema,
    ConfigSource,
    ConfigType,
    ConfigValue,
    format_value,
    parse_value,
)
from barnabas.metadata.configs_image import ConfigurationsImage

DYNAMIC_ONLY = frozenset(
    {
        "leader.replication.throttled.rate",
        "follower.replication.throttled.rate",
        "replica.alter.log.dirs.io.max.bytes.per.second",
    }
)
"""Settings that no file can set in Kafka: DescribeConfigs does not list their default as a synonym."""


class ConfigSynonym(NamedTuple):
    name: str
    value: str | None
    source: ConfigSource


class ConfigEntry(NamedTuple):
    """One row of DescribeConfigs; `value` is None when it is secret or unset."""

    name: str
    value: str | None
    source: ConfigSource
    kind: ConfigType
    read_only: bool
    sensitive: bool
    synonyms: tuple[ConfigSynonym, ...]
    documentation: str | None


class ConfigResolver(NamedTuple):
    """Looks settings up for one node.

    Attributes:
        static: the node's properties as given.
        defaults: where this node's defaults differ from the schema's (an embedded broker's do).
    """

    schema: ConfigSchema
    node_id: int
    static: Mapping[str, str]
    defaults: Mapping[str, str]

    def __repr__(self) -> str:
        # Not the values: one may be a password.
        return f"<ConfigResolver node={self.node_id} static={len(self.static)}>"

    def _default_text(self, name: str) -> str | None:
        if name in self.defaults:
            return self.defaults[name]
        key = self.schema.key(ConfigResourceType.BROKER, name)
        return None if key is None else key.default

    def _broker_sources(self, configs: ConfigurationsImage) -> tuple[tuple[Mapping[str, str], ConfigSource], ...]:
        of_broker = configs.for_resource(ConfigResourceType.BROKER, str(self.node_id))
        of_cluster = configs.for_resource(ConfigResourceType.BROKER, "")
        return (
            (of_broker, ConfigSource.DYNAMIC_BROKER_CONFIG),
            (of_cluster, ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG),
            (self.static, ConfigSource.STATIC_BROKER_CONFIG),
        )

    def broker_synonyms(self, configs: ConfigurationsImage, name: str, *, secret: bool) -> tuple[ConfigSynonym, ...]:
        """Return each value of a broker setting with its source, strongest first, from its own name's first mention on."""
        names = self.schema.broker_synonyms(name)
        if (of_every := _of_every_listener(name)) != name:
            names += self.schema.broker_synonyms(of_every)
        found = [
            ConfigSynonym(synonym, None if secret else values[synonym], source)
            for values, source in self._broker_sources(configs)
            for synonym in names
            if synonym in values
        ]
        for synonym in names:
            default = None if synonym in DYNAMIC_ONLY else self._default_text(synonym)
            if default is not None:
                found.append(ConfigSynonym(synonym, None if secret else default, ConfigSource.DEFAULT_CONFIG))
        # As in Kafka: values before the first mention of the setting's own name do not count as synonyms.
        start = next((i for i, synonym in enumerate(found) if synonym.name == name), len(found))
        return tuple(found[start:])

    def topic_default(self, configs: ConfigurationsImage, key: ConfigKey) -> tuple[ConfigValue, ConfigSource]:
        """Return the value of a topic or group setting that its resource does not set, and the source of the value."""
        for values, source in self._broker_sources(configs):
            for synonym, factor in key.synonyms:
                text = values.get(synonym)
                broker_key = self.schema.key(ConfigResourceType.BROKER, synonym)
                if text is None or broker_key is None:
                    continue
                value = broker_key.parse(text)
                if factor != 1 and isinstance(value, int):
                    value *= factor
                # Every negative retention is unlimited, which is written -1.
                if key.name == "retention.ms" and isinstance(value, int) and value < 0:
                    value = -1
                return value, source
        for synonym, factor in key.synonyms:
            if synonym in self.defaults:
                value = key.parse(self.defaults[synonym])
                return (value * factor if isinstance(value, int) else value), ConfigSource.DEFAULT_CONFIG
        return key.default_value(), ConfigSource.DEFAULT_CONFIG

    def effective_topic_entries(self, configs: ConfigurationsImage, topic: Mapping[str, str]) -> list[ConfigEntry]:
        """Return a topic's settings as CreateTopics answers them: value and source, in name order, no synonyms."""
        entries = []
        for name, key in sorted(self.schema.of(ConfigResourceType.TOPIC).items()):
            if key.internal and name not in topic:
                continue
            if name in topic:
                value, source = key.parse(topic[name]), ConfigSource.TOPIC_CONFIG
            else:
                value, source = self.topic_default(configs, key)
            shown = None if key.sensitive else format_value(value)
            entries.append(ConfigEntry(name, shown, source, key.kind, False, key.sensitive, (), None))
        return entries

    def describe_topic(
        self, configs: ConfigurationsImage, topic: str, wanted: Collection[str] | None = None
    ) -> list[ConfigEntry]:
        """Return every topic setting as DescribeConfigs shows it; `wanted` None or empty means all."""
        own = configs.for_resource(ConfigResourceType.TOPIC, topic)
        return self._describe_resource(configs, ConfigResourceType.TOPIC, own, ConfigSource.TOPIC_CONFIG, wanted)

    def describe_group(
        self, configs: ConfigurationsImage, group: str, wanted: Collection[str] | None = None
    ) -> list[ConfigEntry]:
        own = configs.for_resource(ConfigResourceType.GROUP, group)
        return self._describe_resource(configs, ConfigResourceType.GROUP, own, ConfigSource.GROUP_CONFIG, wanted)

    def describe_client_metrics(
        self, configs: ConfigurationsImage, subscription: str, wanted: Collection[str] | None = None
    ) -> list[ConfigEntry]:
        own = configs.for_resource(ConfigResourceType.CLIENT_METRICS, subscription)
        kind, source = ConfigResourceType.CLIENT_METRICS, ConfigSource.CLIENT_METRICS_CONFIG
        return self._describe_resource(configs, kind, own, source, wanted)

    def _describe_resource(
        self,
        configs: ConfigurationsImage,
        kind: ConfigResourceType,
        own: Mapping[str, str],
        own_source: ConfigSource,
        wanted: Collection[str] | None,
    ) -> list[ConfigEntry]:
        entries = []
        keys = self.schema.of(kind)
        # As in Kafka: internal settings that have a value come first.
        internal = [name for name in own if name in keys and keys[name].internal]
        for name in (*internal, *self.schema.listed(kind)):
            if wanted and name not in wanted:
                continue
            key = keys[name]
            synonyms: tuple[ConfigSynonym, ...] = ()
            if key.synonyms:
                synonyms = self.broker_synonyms(configs, key.synonyms[0][0], secret=key.sensitive)
            elif kind is ConfigResourceType.GROUP:
                synonyms = (ConfigSynonym(name, format_value(key.default_value()), ConfigSource.DEFAULT_CONFIG),)
            if name in own:
                value = key.parse(own[name])
                shown = None if key.sensitive else format_value(value)
                synonyms = (ConfigSynonym(name, shown, own_source), *synonyms)
            else:
                value = self.topic_default(configs, key)[0]
                shown = None if key.sensitive else format_value(value)
            source = synonyms[0].source if synonyms else ConfigSource.DEFAULT_CONFIG
            entries.append(
                ConfigEntry(name, shown, source, key.kind, False, key.sensitive, synonyms, key.documentation)
            )
        return entries

    def describe_broker(self, configs: ConfigurationsImage, wanted: Collection[str] | None = None) -> list[ConfigEntry]:
        """Return this node's settings: those that are given and the table does not have, dynamic ones too, and the table's listed ones."""
        keys = self.schema.of(ConfigResourceType.BROKER)
        given = dict.fromkeys(name for values, _ in reversed(self._broker_sources(configs)) for name in values)
        names = [name for name in given if name not in keys]
        names += [name for name, key in keys.items() if key.internal and name in given]
        names += self.schema.listed(ConfigResourceType.BROKER)
        return [self._broker_entry(configs, name) for name in names if not wanted or name in wanted]

    def describe_cluster_defaults(
        self, configs: ConfigurationsImage, wanted: Collection[str] | None = None
    ) -> list[ConfigEntry]:
        """Return the cluster-wide dynamic settings: the broker resource with an empty name."""
        own = configs.for_resource(ConfigResourceType.BROKER, "")
        found = [self._broker_entry(configs, name) for name in sorted(own) if not wanted or name in wanted]
        kept = []
        for entry in found:
            synonyms = tuple(s for s in entry.synonyms if s.source is ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG)
            value = None if entry.sensitive else own[entry.name]
            kept.append(
                entry._replace(synonyms=synonyms, value=value, source=ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG)
            )
        return kept

    def _broker_entry(self, configs: ConfigurationsImage, name: str) -> ConfigEntry:
        key = self.schema.key(ConfigResourceType.BROKER, _of_every_listener(name))
        # An unknown setting may be a password.
        secret = key is None or key.sensitive
        synonyms = self.broker_synonyms(configs, name, secret=secret)
        source = synonyms[0].source if synonyms else ConfigSource.DEFAULT_CONFIG
        value = None if secret else format_value(self.broker_value(configs, name))
        return ConfigEntry(
            name,
            value,
            source,
            ConfigType.UNKNOWN if key is None else key.kind,
            # Kafka says so of a listener's own settings too, although some are dynamic.
            name not in self.schema.dynamic_broker_names,
            secret,
            synonyms,
            None if key is None or key.name != name else key.documentation,
        )

    def broker_value(self, configs: ConfigurationsImage, name: str) -> ConfigValue:
        """Return a broker setting's value in force, typed."""
        key = self.schema.of(ConfigResourceType.BROKER)[_of_every_listener(name)]
        for values, _ in self._broker_sources(configs):
            if name in values:
                return key.parse(values[name])
        return parse_value(name, key.kind, self._default_text(name))


def _of_every_listener(name: str) -> str:
    """Return the name without the prefix of one listener: `max.connections` for `listener.name.internal.max.connections`."""
    of_listener = name.removeprefix("listener.name.")
    return name if of_listener == name else of_listener.partition(".")[2]
