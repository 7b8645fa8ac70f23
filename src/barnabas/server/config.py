"""The broker's configuration: properties in, one frozen value out. Shell.

`BrokerConfig.from_properties` takes what a server.properties file and `--set` say, checks each property against the
table of settings (`config_table`), and yields a frozen value: a typed field for each setting that some room reads, and
`value(name)` for all others. Rooms receive numbers and texts from here; none of them parses a property.

- A property that does not parse ends the start with one line that names it (`ConfigError`).
- An unknown property is kept and listed in `unknown`, for a warning: Kafka ignores them too.
- `listeners` without a host means every address; `advertised.listeners=auto` (the default) means "answer with the
  address the client dialled".
- `log_config` lays a topic's own settings over the broker's (dynamic ones first) and yields the log's `LogConfig`.

Sources: Kafka's `KafkaConfig`, `AbstractKafkaConfig`, `LogConfig`; KIP-226 for the order of sources.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, NamedTuple

from barnabas.group.group_config import KNOWN_ASSIGNORS, assignor_names
from barnabas.log.log_config import LogConfig
from barnabas.metadata.config_schema import (
    ConfigError,
    ConfigKey,
    ConfigResourceType,
    ConfigValue,
)
from barnabas.server.config_table import EMBEDDED_DEFAULTS, IMPLIED, config_schema

__all__ = ["BrokerConfig", "ConfigError", "Listener", "effective_topic_values", "log_config", "read_properties"]


class Listener(NamedTuple):
    """One entry of `listeners` or `advertised.listeners`; an empty host means every address."""

    name: str
    host: str
    port: int
    security_protocol: str = "PLAINTEXT"


def read_properties(text: str) -> dict[str, str]:
    """A Java properties file: `key=value`, `key: value` or `key value`, `#` and `!` comments, continued lines."""
    properties: dict[str, str] = {}
    pending = ""
    for raw in text.splitlines():
        line = pending + raw.lstrip()
        if not pending and (not line or line[0] in "#!"):
            continue
        if (len(line) - len(line.rstrip("\\"))) % 2:
            pending = line[:-1]
            continue
        pending = ""
        end = next((i for i, c in enumerate(line) if c in "=: \t" and (i == 0 or line[i - 1] != "\\")), len(line))
        value = line[end:].lstrip()
        if value[:1] in ("=", ":"):
            value = value[1:].lstrip()
        properties[_unescape(line[:end])] = _unescape(value)
    return properties


def _unescape(text: str) -> str:
    if "\\" not in text:
        return text
    out, position = [], 0
    while position < len(text):
        char = text[position]
        if char == "\\" and position + 1 < len(text):
            position += 1
            char = {"t": "\t", "n": "\n", "r": "\r"}.get(text[position], text[position])
        out.append(char)
        position += 1
    return "".join(out)


def _parse_listeners(name: str, entries: tuple[str, ...], protocols: Mapping[str, str]) -> tuple[Listener, ...]:
    found: list[Listener] = []
    for entry in entries:
        listener, separator, address = entry.partition("://")
        host, colon, port = address.rpartition(":")
        if not separator or not colon or not port.lstrip("-").isdigit() or not -1 <= int(port) <= 65535:
            raise ConfigError(
                f"Invalid value {entry} for configuration {name}: use NAME://host:port, as in PLAINTEXT://localhost:9092"
            )
        listener = listener.upper()
        if listener not in protocols:
            raise ConfigError(
                f"Invalid value {entry} for configuration {name}: listener {listener} has no security protocol"
            )
        if any(other.name == listener for other in found):
            raise ConfigError(f"Each listener must have a different name; {name} names {listener} twice")
        found.append(Listener(listener, host.strip("[]"), int(port), protocols[listener]))
    return tuple(found)


class BrokerConfig:
    """One node's configuration. A field is named after its setting, with underscores for dots; none can be set again.

    Attributes:
        properties: what was given, and what one node implies (`IMPLIED`), text by name.
        unknown: the names among them that no setting has.
        listeners: client listeners only; `controller_listeners` are the others.
        advertised_listeners: None for `auto`: answer each client with the address it dialled.
        cluster_id: None unless given; the formatted directory knows it.
    """

    properties: Mapping[str, str]
    unknown: tuple[str, ...]
    embedded: bool
    listeners: tuple[Listener, ...]
    controller_listeners: tuple[Listener, ...]
    advertised_listeners: tuple[Listener, ...] | None
    log_dirs: tuple[str, ...]
    node_id: int
    cluster_id: str | None
    process_roles: tuple[str, ...]
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
    _values: dict[str, ConfigValue]

    def __init__(self, fields: Mapping[str, Any]) -> None:
        """Takes a value for every annotated name; `from_properties` is the way to make one."""
        self.__dict__.update(fields)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a configuration is frozen; {name} cannot be set")

    def __repr__(self) -> str:
        return f"BrokerConfig({dict(sorted(self.properties.items()))}{', embedded' if self.embedded else ''})"

    @classmethod
    def from_properties(cls, properties: Mapping[str, str], *, embedded: bool = False) -> BrokerConfig:
        """Check and parse properties.

        Args:
            properties: text by name; later sources already laid over earlier ones.
            embedded: take the defaults of a broker inside a test.

        Raises:
            ConfigError: one sentence naming the property.
        """
        keys = config_schema().of(ConfigResourceType.BROKER)
        given = {name: text.strip() for name, text in properties.items()}
        # broker.id is the older name of node.id; either gives both.
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

        fields: dict[str, Any] = {name: value(dotted) for name, dotted in _field_names()}
        fields.update(_endpoints(value))
        _check_assignors(value(ASSIGNORS))
        fields["properties"] = given
        fields["unknown"] = tuple(sorted(name for name in given if name not in keys and not _is_of_listener(name)))
        fields["embedded"] = embedded
        fields["log_dirs"] = _log_dirs(value)
        fields["_values"] = values
        return cls(fields)

    def value(self, name: str) -> ConfigValue:
        """Any broker setting by Kafka's name: given, or default."""
        if name not in self._values:
            key = config_schema().of(ConfigResourceType.BROKER)[name]
            text = EMBEDDED_DEFAULTS.get(name, key.default) if self.embedded else key.default
            self._values[name] = key.parse(text)
        return self._values[name]

    def int_value(self, name: str) -> int:
        value = self.value(name)
        assert isinstance(value, int), f"{name} is not a whole number"
        return value

    def str_value(self, name: str) -> str:
        value = self.value(name)
        assert isinstance(value, str), f"{name} is not a text"
        return value

    def bool_value(self, name: str) -> bool:
        value = self.value(name)
        assert isinstance(value, bool), f"{name} is not a truth value"
        return value

    def list_value(self, name: str) -> tuple[str, ...]:
        value = self.value(name)
        assert isinstance(value, tuple), f"{name} is not a list"
        return value


ASSIGNORS = "group.consumer.assignors"


def _check_assignors(given: ConfigValue) -> None:
    """Refuse a start with assignors that no member could be given."""
    assert isinstance(given, tuple), given
    unknown = [name for name in assignor_names(given) if name not in KNOWN_ASSIGNORS]
    if unknown or not given:
        known = ", ".join(KNOWN_ASSIGNORS)
        raise ConfigError(f"Invalid value {','.join(given)} for configuration {ASSIGNORS}: one or more of {known}")


LISTENER_SETTINGS = (".max.connections", ".max.connection.creation.rate")
"""What may be set for one listener, behind `listener.name.` and its name in lower case."""

_DERIVED = (
    "listeners",
    "controller_listeners",
    "advertised_listeners",
    "log_dirs",
    "properties",
    "unknown",
    "embedded",
)


def _is_of_listener(name: str) -> bool:
    """Whether it is a setting of one listener, such as listener.name.internal.max.connections."""
    return name.startswith("listener.name.") and name.endswith(LISTENER_SETTINGS)


@cache
def _field_names() -> tuple[tuple[str, str], ...]:
    names = BrokerConfig.__annotations__
    return tuple((n, n.replace("_", ".")) for n in names if n not in _DERIVED and n != "_values")


def _log_dirs(value: Callable[[str], ConfigValue]) -> tuple[str, ...]:
    dirs = value("log.dirs") or value("log.dir")
    assert isinstance(dirs, tuple)
    return dirs


def _endpoints(value: Callable[[str], ConfigValue]) -> dict[str, tuple[Listener, ...] | None]:
    protocols: dict[str, str] = {}
    for pair in str(value("listener.security.protocol.map")).split(","):
        name, _, protocol = pair.strip().partition(":")
        protocols[name.upper()] = protocol
    controller_names = value("controller.listener.names")
    assert isinstance(controller_names, tuple)
    for name in controller_names:
        protocols.setdefault(name.upper(), "PLAINTEXT")
    listed = value("listeners")
    assert isinstance(listed, tuple)
    every = _parse_listeners("listeners", listed, protocols)
    advertised = value("advertised.listeners")
    is_auto = advertised in (None, (), ("auto",))
    return {
        "listeners": tuple(x for x in every if x.name not in controller_names),
        "controller_listeners": tuple(x for x in every if x.name in controller_names),
        "advertised_listeners": None
        if is_auto or not isinstance(advertised, tuple)
        else _parse_listeners("advertised.listeners", advertised, protocols),
    }


def merged_broker_properties(
    config: BrokerConfig, dynamic_default: Mapping[str, str], dynamic_broker: Mapping[str, str]
) -> dict[str, str]:
    """Static, then cluster-wide dynamic, then this broker's dynamic settings; later ones win."""
    return {**config.properties, **dynamic_default, **dynamic_broker}


def _topic_default(key: ConfigKey, broker: Mapping[str, str]) -> ConfigValue:
    """A topic setting's value when the topic does not say: the first synonym that the broker's settings name."""
    broker_keys = config_schema().of(ConfigResourceType.BROKER)
    for synonym, factor in key.synonyms:
        text = broker.get(synonym)
        if text is None:
            continue
        value = broker_keys[synonym].parse(text)
        if factor != 1 and isinstance(value, int):
            value *= factor
        # Every negative retention means "for ever", which is written -1.
        return -1 if key.name == "retention.ms" and isinstance(value, int) and value < 0 else value
    return key.default_value()


def effective_topic_values(
    config: BrokerConfig,
    topic_overrides: Mapping[str, str],
    dynamic_default: Mapping[str, str] | None = None,
    dynamic_broker: Mapping[str, str] | None = None,
) -> dict[str, ConfigValue]:
    """Every topic setting with the value in force, typed, by Kafka's name."""
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
    """What a log takes from the broker's settings alone, since no topic can change it."""
    keys = config_schema().of(ConfigResourceType.BROKER)
    fields = {}
    for name in ("producer.id.expiration.ms", "transaction.partition.verification.enable"):
        text = broker.get(name)
        fields[name.replace(".", "_")] = keys[name].default_value() if text is None else keys[name].parse(text)
    return fields


def log_config(
    config: BrokerConfig,
    topic_overrides: Mapping[str, str],
    dynamic_default: Mapping[str, str] | None = None,
    dynamic_broker: Mapping[str, str] | None = None,
) -> LogConfig:
    """The log's view of a topic: its overrides over the broker's settings over the defaults."""
    values = effective_topic_values(config, topic_overrides, dynamic_default, dynamic_broker)
    fields: dict[str, Any] = {name: values[dotted] for name, dotted in _log_config_fields()}
    fields |= _broker_fields(merged_broker_properties(config, dynamic_default or {}, dynamic_broker or {}))
    if fields.get("cleanup_policy") is not None:
        fields["cleanup_policy"] = frozenset(fields["cleanup_policy"])
    internal = values["internal.segment.bytes"]
    if isinstance(internal, int):
        fields["segment_bytes"] = internal
    return LogConfig(**fields)
