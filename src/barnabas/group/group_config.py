"""The group coordinator's settings: those of the broker as values, those of a group by name.

Names are Kafka's with the prefix `group.` or `offsets.` kept where Kafka has it; defaults are Kafka 4.4's. The server parses
configuration files and hands over a frozen picture, `GroupCoordinatorConfig`.

`GroupConfigs` returns the settings that may differ from group to group (`kafka-configs --entity-type groups`): the group's own value,
moved into the broker's present bounds, else the broker's dynamic, static or default value.

Source: Kafka classes `GroupCoordinatorConfig`, `GroupConfigManager`, `GroupConfig.evaluate`; KIP-848, KIP-932, KIP-1071.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from barnabas.metadata.config_entries import ConfigResolver
from barnabas.metadata.config_schema import ConfigKey, ConfigResourceType, ConfigValue
from barnabas.metadata.configs_image import ConfigurationsImage

KNOWN_ASSIGNORS = ("uniform", "range")
KAFKAS_ASSIGNORS = "org.apache.kafka.coordinator.group.assignor."


@dataclass(frozen=True, slots=True)
class GroupCoordinatorConfig:
    """The settings of the group coordinator."""

    offsets_topic_num_partitions: int = 50
    offsets_commit_timeout_ms: int = 5_000
    offsets_retention_ms: int = 10_080 * 60_000
    """From offsets.retention.minutes."""
    offsets_retention_check_interval_ms: int = 600_000
    offsets_topic_compression_codec: int = 0
    offset_metadata_max_bytes: int = 4_096
    group_min_session_timeout_ms: int = 6_000
    group_max_session_timeout_ms: int = 1_800_000
    group_initial_rebalance_delay_ms: int = 3_000
    group_max_size: int = 2_147_483_647
    new_member_join_timeout_ms: int = 300_000
    """How long a member that has not got its first answer is kept (a constant in Kafka)."""
    max_batch_bytes: int = 1_048_588
    """The internal topic's max.message.bytes."""
    group_coordinator_rebalance_protocols: tuple[str, ...] = ("classic", "consumer", "streams")
    group_consumer_max_size: int = 2_147_483_647
    group_consumer_assignors: tuple[str, ...] = ("uniform", "range")
    """By name; the first is the default."""
    group_consumer_migration_policy: str = "bidirectional"
    group_consumer_regex_refresh_interval_ms: int = 600_000
    group_share_max_size: int = 200
    group_share_initialize_retry_interval_ms: int = 30_000
    group_streams_max_size: int = 2_147_483_647
    rebalance_history_size: int = 50
    """How many rebalances of a group are remembered, to be shown to people."""


def assignor_names(given: Iterable[str]) -> tuple[str, ...]:
    """The names of assignors as members give them, from a setting that may name Kafka's classes instead."""
    return tuple(
        name.rpartition(".")[2].removesuffix("Assignor").lower() if name.startswith(KAFKAS_ASSIGNORS) else name
        for name in given
    )


class GroupConfigs:
    """The settings of groups, as they are now.

    Args:
        resolver: of this node; None for a coordinator of classic groups only.
        configs: the dynamic configurations as of now.
    """

    def __init__(
        self, resolver: ConfigResolver | None = None, configs: Callable[[], ConfigurationsImage] = ConfigurationsImage
    ) -> None:
        self._resolver = resolver
        self._configs = configs
        self._known: dict[tuple[str, str], ConfigValue] = {}
        self._known_of: ConfigurationsImage | None = None

    def __repr__(self) -> str:
        return f"<GroupConfigs known={len(self._known)}>"

    def value(self, group_id: str, name: str) -> ConfigValue:
        """A setting in force, typed.

        Args:
            name: the group's setting, such as "consumer.session.timeout.ms".
        """
        configs = self._configs()
        if configs is not self._known_of:
            self._known, self._known_of = {}, configs
        key = (group_id, name)
        if key not in self._known:
            self._known[key] = self._resolve(configs, group_id, name)
        return self._known[key]

    def int_value(self, group_id: str, name: str) -> int:
        """A numeric setting in force; names ending in `.ms` are milliseconds."""
        value = self.value(group_id, name)
        assert isinstance(value, int), f"{name} is {value!r}"
        return value

    def _resolve(self, configs: ConfigurationsImage, group_id: str, name: str) -> ConfigValue:
        assert self._resolver is not None, f"{name} is asked of a coordinator without settings"
        schema_key = self._resolver.schema.of(ConfigResourceType.GROUP)[name]
        own = configs.for_resource(ConfigResourceType.GROUP, group_id).get(name)
        if own is None:
            return self._resolver.topic_default(configs, schema_key)[0]
        return self._within_bounds(configs, schema_key, schema_key.parse(own))

    def _within_bounds(self, configs: ConfigurationsImage, key: ConfigKey, value: ConfigValue) -> ConfigValue:
        """Return the value, moved to the broker's bound if the bound has changed since the value was set."""
        if not isinstance(value, int) or isinstance(value, bool) or not key.synonyms:
            return value
        assert self._resolver is not None
        group, family, rest = key.synonyms[0][0].split(".", 2)
        for kind, pick in (("min", max), ("max", min)):
            bound = f"{group}.{family}.{kind}.{rest.removeprefix('num.')}"
            if self._resolver.schema.key(ConfigResourceType.BROKER, bound) is not None:
                limit = self._resolver.broker_value(configs, bound)
                assert isinstance(limit, int), f"{bound} is {limit!r}"
                value = pick(value, limit)
        return value
