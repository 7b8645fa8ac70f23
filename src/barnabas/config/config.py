"""The broker's configuration: properties in, one frozen value out.

`BrokerConfig.from_properties` checks the properties of a server.properties file and of `--set` against the table of settings
(`config_table`). The result has a typed field for each setting that a room reads, and `value(name)` for all others. No other
module parses a property.

- A property that does not parse ends the start with one line that names it (`ConfigError`). So does a property that asks for
  protection, which this node has not, and a role that contradicts the quorum or the listeners (`role_checks`).
- A property may have its value from elsewhere (`config.providers`); no error and no `repr` shows such a value.
- An unknown property is listed in `unknown`, for a warning; Kafka ignores them too.
- `listeners` without a host means every address. `advertised.listeners=auto` (the default) returns to each client the address
  that it dialled.
- `log_config` merges a topic's settings over the broker's dynamic and static ones into the log's `LogConfig`.

Sources: Kafka's `KafkaConfig`, `AbstractKafkaConfig`, `LogConfig`; KIP-226 for the order of sources.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from barnabas.client.config_providers import PROVIDERS, ProviderError, Resolved, resolved
from barnabas.config.config_checks import check_advertised, check_assignors, check_protection, selects_by_rack
from barnabas.config.config_table import EMBEDDED_DEFAULTS, IMPLIED, config_schema
from barnabas.config.endpoints import Listener, endpoints
from barnabas.config.node_roles import NodeRoles
from barnabas.config.quorum_config import is_alone, parse_bootstrap_servers, parse_voters
from barnabas.config.role_checks import check_roles
from barnabas.log.log_config import LogConfig
from barnabas.metadata.config_schema import (
    ConfigError,
    ConfigKey,
    ConfigResourceType,
    ConfigValue,
)
from barnabas.metadata.cordoned_directories import CORDONED, why_not_cordoned
from barnabas.metadata.security_settings import AUTHORIZER_SETTINGS, HIDDEN, is_of_security, is_secret
from barnabas.quota.client_quotas import QuotaWindows
from barnabas.words.hidden_values import hidden_in
from barnabas.words.printable import printable

if TYPE_CHECKING:
    from barnabas.metadata.configs_image import ConfigurationsImage

__all__ = [
    "BrokerConfig",
    "ConfigError",
    "Listener",
    "effective_broker_value",
    "effective_topic_values",
    "log_config",
    "quota_windows",
    "value_in_force",
]


class BrokerConfig(NodeRoles):
    """One node's configuration. A field has its setting's name, with underscores for dots, and is read-only.

    Attributes:
        unknown: the properties that are not settings.
        without_effect: the properties that this broker ignores although they differ from their defaults.
        metadata_dir: the directory of the metadata log: metadata.log.dir, or else the first of `log_dirs`.
        all_dirs: `log_dirs`, and before them `metadata_dir` if they do not name it.
        cluster_id: None unless given; the formatted directory has it.
        provided: the values that came from `config.providers`.
    """

    unknown: tuple[str, ...]
    without_effect: tuple[str, ...]
    log_dirs: tuple[str, ...]
    metadata_dir: str
    all_dirs: tuple[str, ...]
    cluster_id: str | None
    provided: frozenset[str]
    broker_rack: str | None
    auto_create_topics_enable: bool
    delete_topic_enable: bool
    num_partitions: int
    default_replication_factor: int
    min_insync_replicas: int
    message_max_bytes: int
    compression_type: str
    fetch_max_bytes: int
    max_incremental_fetch_session_cache_slots: int
    max_request_partition_size_limit: int
    max_connections: int
    max_connections_per_ip: int
    connections_max_idle_ms: int
    queued_max_requests: int
    queued_max_request_bytes: int
    socket_request_max_bytes: int
    socket_send_buffer_bytes: int
    socket_receive_buffer_bytes: int
    socket_listen_backlog_size: int
    request_timeout_ms: int
    broker_heartbeat_interval_ms: int
    broker_session_timeout_ms: int
    group_coordinator_rebalance_protocols: tuple[str, ...]
    group_min_session_timeout_ms: int
    group_max_session_timeout_ms: int
    group_initial_rebalance_delay_ms: int
    group_max_size: int
    group_coordinator_append_linger_ms: int
    offset_metadata_max_bytes: int
    offsets_retention_minutes: int
    offsets_retention_check_interval_ms: int
    offsets_commit_timeout_ms: int
    offsets_load_buffer_size: int
    offsets_topic_num_partitions: int
    offsets_topic_replication_factor: int
    offsets_topic_segment_bytes: int
    offsets_topic_compression_codec: int
    transaction_state_log_num_partitions: int
    transaction_state_log_replication_factor: int
    transaction_state_log_min_isr: int
    transaction_state_log_segment_bytes: int
    transaction_max_timeout_ms: int
    transactional_id_expiration_ms: int
    share_coordinator_state_topic_num_partitions: int
    share_coordinator_state_topic_replication_factor: int
    share_coordinator_state_topic_min_isr: int
    share_coordinator_state_topic_segment_bytes: int
    producer_id_expiration_ms: int
    producer_id_expiration_check_interval_ms: int
    log_retention_check_interval_ms: int
    log_flush_offset_checkpoint_interval_ms: int
    log_flush_start_offset_checkpoint_interval_ms: int
    log_initial_task_delay_ms: int
    log_cleaner_enable: bool
    replica_high_watermark_checkpoint_interval_ms: int
    replica_lag_time_max_ms: int
    replica_fetch_max_bytes: int
    replica_fetch_wait_max_ms: int
    metadata_log_max_record_bytes_between_snapshots: int
    metadata_log_max_snapshot_interval_ms: int
    metadata_log_segment_bytes: int
    metadata_log_segment_ms: int
    metadata_max_retention_bytes: int
    metadata_max_retention_ms: int
    barnabas_metadata_flush: bool

    def __init__(self, fields: Mapping[str, object]) -> None:
        """Make a configuration from a value for every annotated name; call `from_properties` instead."""
        self.__dict__.update(fields)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a configuration is frozen; {name} cannot be set")

    def __repr__(self) -> str:
        keys = config_schema().of(ConfigResourceType.BROKER)
        hidden = {name: HIDDEN for name in self.properties if name not in keys or is_secret(name, keys)}
        shown = dict(sorted({**self.properties, **hidden}.items()))
        return hidden_in(f"<BrokerConfig {shown}{' embedded' if self.embedded else ''}>", self.provided)

    @classmethod
    def from_properties(
        cls,
        properties: Mapping[str, str],
        *,
        embedded: bool = False,
        served: bool = True,
        environ: Mapping[str, str] | None = None,
    ) -> BrokerConfig:
        """Check and parse properties.

        Args:
            properties: text by name, merged from all sources.
            embedded: use the defaults of an embedded broker.
            served: False if no broker will run with the properties, which may then ask for more than it can do.
            environ: what the provider of environment variables reads; None for this process's.

        Raises:
            ConfigError: a property does not parse, or asks for more than this broker can do; the text is one line that names it.
        """
        try:
            found = resolved(properties, os.environ if environ is None else environ)
        except ProviderError as error:
            raise ConfigError(str(error)) from None
        try:
            return cls._parsed(found, embedded=embedded, served=served)
        except ConfigError as error:
            if not found.values:
                raise
            raise ConfigError(hidden_in(str(error), found.values)) from None

    @classmethod
    def _parsed(cls, found: Resolved, *, embedded: bool, served: bool) -> BrokerConfig:
        properties = found.properties
        keys = config_schema().of(ConfigResourceType.BROKER)
        given = {name: text.strip() for name, text in properties.items()}
        # broker.id is the older name of node.id; either one sets both.
        node_id = given.get("node.id", given.get("broker.id", IMPLIED["node.id"]))
        given = {**IMPLIED, **given, "node.id": node_id, "broker.id": node_id}
        defaults = EMBEDDED_DEFAULTS if embedded else {}
        values: dict[str, ConfigValue] = {}
        for name, text in given.items():
            if name in keys:
                values[name] = keys[name].parse(text)

        def value(name: str) -> ConfigValue:
            if name in values:
                return values[name]
            key = keys[name]
            values[name] = key.parse(defaults[name]) if name in defaults else key.default_value()
            return values[name]

        fields: dict[str, object] = {name: value(dotted) for name, dotted in _field_names()}
        fields.update(endpoints(value))
        check_assignors(value)
        selects_by_rack(value)
        fields["quorum_voters"] = parse_voters(value)
        fields["quorum_bootstrap_servers"] = parse_bootstrap_servers(value)
        fields["properties"] = given
        fields["provided"] = found.values
        fields["unknown"] = tuple(sorted(name for name in given if not is_setting(name)))
        fields["without_effect"] = tuple(
            sorted(n for n in values if n in given and not keys[n].has_effect and values[n] != keys[n].default_value())
        )
        fields["embedded"] = embedded
        fields["log_dirs"] = log_dirs = _log_dirs(value)
        fields["metadata_dir"] = metadata_dir = str(value("metadata.log.dir") or log_dirs[0])
        fields["all_dirs"] = _each_once(metadata_dir, log_dirs)
        if why := why_not_cordoned(value(CORDONED), log_dirs):
            raise ConfigError(why)
        fields["_values"] = values
        made = cls(fields)
        names_others = not _names_no_other_node(made)
        made.__dict__["is_alone"] = made.is_broker and made.is_controller and not names_others
        made.__dict__["has_other_voters"] = made.is_controller and names_others
        check_roles(made, {name: text.strip() for name, text in properties.items()})
        if embedded and not made.is_alone:
            raise ConfigError(
                "an embedded broker is a cluster of its own; remove process.roles and controller.quorum.*"
            )
        if served:
            check_advertised(made)
            check_protection(given, keys, made)
        return made


LISTENER_SETTINGS = (".max.connections", ".max.connection.creation.rate")
"""Settings that one listener may have, after `listener.name.` and its name in lower case."""

_DERIVED = (
    "listeners",
    "controller_listeners",
    "advertised_listeners",
    "advertised_controller_listeners",
    "quorum_voters",
    "quorum_bootstrap_servers",
    "is_alone",
    "has_other_voters",
    "log_dirs",
    "metadata_dir",
    "all_dirs",
    "unknown",
    "without_effect",
    "provided",
)


def is_setting(name: str) -> bool:
    """Return whether a name is a broker setting, or one of a single listener, such as listener.name.internal.max.connections."""
    of_listener = name.startswith("listener.name.") and (name.endswith(LISTENER_SETTINGS) or is_of_security(name))
    if name.startswith(f"{PROVIDERS}."):
        return True
    return of_listener or name in config_schema().of(ConfigResourceType.BROKER) or name in AUTHORIZER_SETTINGS


@cache
def _field_names() -> tuple[tuple[str, str], ...]:
    names = (*NodeRoles.__annotations__, *BrokerConfig.__annotations__)
    return tuple((n, n.replace("_", ".")) for n in names if n not in _DERIVED)


def _names_no_other_node(config: BrokerConfig) -> bool:
    advertised = (*(config.advertised_listeners or ()), *config.advertised_controller_listeners)
    voters, servers = config.quorum_voters, config.quorum_bootstrap_servers
    return is_alone(config.node_id, voters, servers, config.controller_listeners, advertised)


def _log_dirs(value: Callable[[str], ConfigValue]) -> tuple[str, ...]:
    dirs = value("log.dirs") or value("log.dir")
    assert isinstance(dirs, tuple)
    seen: dict[str, None] = {}
    for each in map(os.path.normpath, dirs):
        if each in seen:
            raise ConfigError(f"log.dirs names {printable(each)} twice")
        seen[each] = None
    return dirs


def _each_once(metadata_dir: str, log_dirs: tuple[str, ...]) -> tuple[str, ...]:
    is_apart = os.path.normpath(metadata_dir) not in map(os.path.normpath, log_dirs)
    return (metadata_dir, *log_dirs) if is_apart else log_dirs


def merged_broker_properties(
    config: BrokerConfig, dynamic_default: Mapping[str, str], dynamic_broker: Mapping[str, str]
) -> dict[str, str]:
    """Merge the static, the cluster-wide dynamic and this broker's dynamic settings; later ones win."""
    return {**config.properties, **dynamic_default, **dynamic_broker}


def effective_broker_value(
    config: BrokerConfig, name: str, dynamic_default: Mapping[str, str], dynamic_broker: Mapping[str, str]
) -> ConfigValue:
    """Return the effective value of a broker setting, typed: this broker's dynamic one, else the cluster-wide one, else the static one."""
    for given in (dynamic_broker, dynamic_default, config.properties):
        if name in given:
            return config_schema().of(ConfigResourceType.BROKER)[name].parse(given[name])
    return config.value(name)


def value_in_force(config: BrokerConfig, name: str, configs: ConfigurationsImage) -> ConfigValue:
    """Return the effective value of a setting of this broker, as `effective_broker_value`, from the metadata."""
    of_cluster = configs.for_resource(ConfigResourceType.BROKER, "")
    of_broker = configs.for_resource(ConfigResourceType.BROKER, str(config.node_id))
    return effective_broker_value(config, name, of_cluster, of_broker)


def _topic_default(key: ConfigKey, broker: Mapping[str, str]) -> ConfigValue:
    """Return the value of a setting that a topic does not set: of its first synonym in the broker's settings, or its default."""
    broker_keys = config_schema().of(ConfigResourceType.BROKER)
    for synonym, factor in key.synonyms:
        text = broker.get(synonym)
        if text is None:
            continue
        value = broker_keys[synonym].parse(text)
        if factor != 1 and isinstance(value, int):
            value *= factor
        # Any negative retention means "for ever", written as -1.
        return -1 if key.name == "retention.ms" and isinstance(value, int) and value < 0 else value
    return key.default_value()


def effective_topic_values(
    config: BrokerConfig,
    topic_overrides: Mapping[str, str],
    dynamic_default: Mapping[str, str] | None = None,
    dynamic_broker: Mapping[str, str] | None = None,
) -> dict[str, ConfigValue]:
    """Return the effective value of every topic setting, typed, by Kafka's name."""
    broker = merged_broker_properties(config, dynamic_default or {}, dynamic_broker or {})
    values: dict[str, ConfigValue] = {}
    for name, key in config_schema().of(ConfigResourceType.TOPIC).items():
        text = topic_overrides.get(name)
        values[name] = key.parse(text) if text is not None else _topic_default(key, broker)
    return values


@cache
def _log_config_fields() -> tuple[tuple[str, str], ...]:
    keys = config_schema().of(ConfigResourceType.TOPIC)
    names = (f.name for f in dataclasses.fields(LogConfig))
    return tuple((n, n.replace("_", ".")) for n in names if n.replace("_", ".") in keys)


def _broker_fields(broker: Mapping[str, str]) -> dict[str, ConfigValue]:
    """Return the fields of a log's configuration that only the broker's settings decide."""
    keys = config_schema().of(ConfigResourceType.BROKER)
    fields = {}
    for name in (
        "barnabas.max.decompressed.factor",
        "producer.id.expiration.ms",
        "transaction.partition.verification.enable",
    ):
        text = broker.get(name)
        fields[name.replace(".", "_")] = keys[name].default_value() if text is None else keys[name].parse(text)
    return fields


def quota_windows(config: BrokerConfig) -> QuotaWindows:
    """Return the windows over which a node's quotas measure."""
    return QuotaWindows(
        config.int_value("quota.window.num"),
        config.int_value("quota.window.size.seconds"),
        config.int_value("controller.quota.window.num"),
        config.int_value("controller.quota.window.size.seconds"),
    )


def log_config(
    config: BrokerConfig,
    topic_overrides: Mapping[str, str],
    dynamic_default: Mapping[str, str] | None = None,
    dynamic_broker: Mapping[str, str] | None = None,
) -> LogConfig:
    """Return a topic's log configuration: its overrides over the broker's settings over the defaults."""
    values = effective_topic_values(config, topic_overrides, dynamic_default, dynamic_broker)
    fields: dict[str, Any] = {name: values[dotted] for name, dotted in _log_config_fields()}
    fields |= _broker_fields(merged_broker_properties(config, dynamic_default or {}, dynamic_broker or {}))
    if fields.get("cleanup_policy") is not None:
        fields["cleanup_policy"] = frozenset(fields["cleanup_policy"])
    internal = values["internal.segment.bytes"]
    if isinstance(internal, int):
        fields["segment_bytes"] = internal
    return LogConfig(**fields)
