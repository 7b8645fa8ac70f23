"""The description of a setting: its type, its bounds, its synonyms, and the messages for bad values.

`ConfigKey` is one row of the table of settings (the server has the rows); `ConfigSchema` is the table by resource type, as the
controller and DescribeConfigs need it.

- A value travels and is stored as text; `ConfigKey.parse` turns it into a bool, int, float, str or tuple of str, and
  `format_value` turns it back into the one canonical text that Kafka prints.
- A value that does not parse, or that is out of bounds, raises `ConfigError` with the message of Kafka's
  `ConfigException`, since tools show it to people and tests compare it.
- A topic setting has the broker settings that give its default as synonyms, in order of precedence, each with a
  multiplier (hours to milliseconds).

Sources: `org.apache.kafka.common.config.ConfigDef` (types, validators, messages), `ServerTopicConfigSynonyms`,
`KafkaConfigSchema`, KIP-226 (dynamic broker configurations), KIP-339 (incremental alter).
"""

from __future__ import annotations

import enum
import math
import re
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import NamedTuple

from barnabas.metadata.hash_order import in_hash_order
from barnabas.protocol import ordered_growth
from barnabas.protocol.partition_for import string_hash

ConfigValue = bool | int | float | str | tuple[str, ...] | None

_BOUNDS = re.compile(r"\[([^,\]]*),\.\.\.(?:,([^\]]*))?\](?: or (-?\d+))?\Z")
_CHOICES = re.compile(r"(\(case insensitive\) )?\[([^\]]*)\]\Z")
_THROTTLED_REPLICAS = re.compile(r"(\d+:\d+)(,\d+:\d+)*\Z")
_BY_DURATION = re.compile(r"by_duration:P(?!$)(\d+D)?(T(?=\d)(\d+H)?(\d+M)?(\d+(\.\d+)?S)?)?\Z")


class ConfigType(enum.IntEnum):
    """The type codes of DescribeConfigs; the names are those of Kafka's ConfigDef."""

    UNKNOWN = 0
    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


class ConfigSource(enum.IntEnum):
    """The source of a value: the source codes of DescribeConfigs."""

    UNKNOWN = 0
    TOPIC_CONFIG = 1
    DYNAMIC_BROKER_CONFIG = 2
    DYNAMIC_DEFAULT_BROKER_CONFIG = 3
    STATIC_BROKER_CONFIG = 4
    DEFAULT_CONFIG = 5
    DYNAMIC_BROKER_LOGGER_CONFIG = 6
    CLIENT_METRICS_CONFIG = 7
    GROUP_CONFIG = 8


class ConfigResourceType(enum.IntEnum):
    """The owner of a configuration: the resource codes of the configuration APIs and of ConfigRecord."""

    UNKNOWN = 0
    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


class ConfigError(ValueError):
    """A value is not valid for its setting; `str()` is Kafka's message. Becomes INVALID_CONFIG."""

    __module__ = "barnabas"  # the name that users know


_WIDTH = {ConfigType.SHORT: 15, ConfigType.INT: 31, ConfigType.LONG: 63}


def format_double(value: float) -> str:
    """Return a double as Java prints it: plain between a thousandth and ten million, else with an E."""
    if value != value or value in (math.inf, -math.inf):
        return {math.inf: "Infinity", -math.inf: "-Infinity"}.get(value, "NaN")
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(value)
    mantissa, _, exponent = f"{value!r}".partition("e")
    if not exponent:
        mantissa, _, exponent = f"{value:.16e}".partition("e")
        mantissa = mantissa.rstrip("0")
    if "." not in mantissa:
        mantissa += ".0"
    if mantissa.endswith("."):
        mantissa += "0"
    return f"{mantissa}E{int(exponent)}"


def format_value(value: ConfigValue) -> str | None:
    """Return the canonical text of a parsed value, as DescribeConfigs shows it."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return format_double(value)
    if isinstance(value, tuple):
        return ",".join(value)
    return str(value)


def _parse_number(name: str, kind: ConfigType, text: str) -> int | float:
    stripped = text.strip()
    try:
        if kind is ConfigType.DOUBLE:
            return float(stripped)
        if not re.fullmatch(r"[+-]?\d+", stripped):
            raise ValueError
        number = int(stripped)
        if not -(1 << _WIDTH[kind]) <= number < 1 << _WIDTH[kind]:
            raise ValueError
        return number
    except ValueError:
        raise ConfigError(f"Invalid value {text} for configuration {name}: Not a number of type {kind.name}") from None


def parse_value(name: str, kind: ConfigType, text: str | None) -> ConfigValue:
    """Return the value of a text by type alone; `ConfigKey.check` checks the bounds."""
    if text is None:
        return None
    match kind:
        case ConfigType.BOOLEAN:
            lowered = text.strip().lower()
            if lowered not in ("true", "false"):
                raise ConfigError(
                    f"Invalid value {text} for configuration {name}: Expected value to be either true or false"
                )
            return lowered == "true"
        case ConfigType.INT | ConfigType.SHORT | ConfigType.LONG | ConfigType.DOUBLE:
            return _parse_number(name, kind, text)
        case ConfigType.LIST:
            # A repeated element counts once, the first time.
            return tuple(dict.fromkeys(part.strip() for part in text.split(","))) if text.strip() else ()
        case ConfigType.PASSWORD:
            return text
        case _:
            return text.strip()


class ConfigKey(NamedTuple):
    """One setting.

    Attributes:
        default: canonical text, or None for "no value"; see `required`.
        required: there is no default, the value must be given.
        dynamic: "" for read-only, else Kafka's update mode: "per-broker" or "cluster-wide".
        synonyms: broker settings that stand in for this one, most specific first, each with its multiplier.
        valid: the bounds in Kafka's notation, e.g. `[0,...]`, `[1,...,9] or -1`, `[compact, delete]`.
        internal: known and settable, but never listed.
    """

    name: str
    kind: ConfigType
    importance: str
    default: str | None
    required: bool
    dynamic: str
    synonyms: tuple[tuple[str, int], ...]
    valid: str
    internal: bool
    documentation: str

    @property
    def sensitive(self) -> bool:
        return self.kind is ConfigType.PASSWORD

    @property
    def has_effect(self) -> bool:
        """Whether this broker reads the setting; others are only validated."""
        return not self.documentation.endswith("has no effect.")

    def parse(self, text: str | None) -> ConfigValue:
        """Text to value, bounds checked.

        Raises:
            ConfigError: with Kafka's sentence.
        """
        value = parse_value(self.name, self.kind, text)
        if self.valid and value is not None:
            self.check(value)
        return value

    def default_value(self) -> ConfigValue:
        return parse_value(self.name, self.kind, self.default)

    def check(self, value: ConfigValue) -> None:
        if (bounds := _BOUNDS.match(self.valid)) is not None:
            self._check_bounds(value, *bounds.groups())
        elif (choices := _CHOICES.match(self.valid)) is not None and self.name != "share.auto.offset.reset":
            self._check_choices(value, choices[2].split(", "), any_case=choices[1] is not None)
        elif self.valid.startswith("[partitionId]"):
            self._check_throttled_replicas(value)
        elif self.valid.startswith("non-empty") and value in ("", ()):
            raise ConfigError(f"Invalid value {value or ''} for configuration {self.name}: String must be non-empty")
        elif self.name == "share.auto.offset.reset":
            self._check_offset_reset(value)
        elif self.name == ordered_growth.SETTING:
            self._check_growth(str(value))

    def _refuse(self, value: ConfigValue, why: str) -> ConfigError:
        return ConfigError(f"Invalid value {format_value(value)} for configuration {self.name}: {why}")

    def _check_bounds(self, value: ConfigValue, low: str, high: str | None, special: str | None) -> None:
        assert isinstance(value, int | float)
        if special is not None:
            if value != int(special) and not int(low) <= value <= int(high or low):
                raise self._refuse(value, f"Value must be between {low} and {high} or equal to {special}")
            return
        if value < float(low):
            raise self._refuse(value, f"Value must be at least {low}")
        if high is not None and value > float(high):
            raise self._refuse(value, f"Value must be no more than {high}")

    def _check_choices(self, value: ConfigValue, choices: list[str], *, any_case: bool) -> None:
        for item in value if isinstance(value, tuple) else (str(value),):
            if item == "" and isinstance(value, tuple):
                raise ConfigError(f"Configuration '{self.name}' values must not be empty.")
            if item not in choices and not (any_case and item.upper() in map(str.upper, choices)):
                insensitive = " (case insensitive)" if any_case else ""
                raise self._refuse(item, f"String must be one of{insensitive}: {', '.join(choices)}")

    def _check_throttled_replicas(self, value: ConfigValue) -> None:
        assert isinstance(value, tuple)
        joined = ",".join(value)
        if joined not in ("", "*") and not _THROTTLED_REPLICAS.match(joined):
            raise ConfigError(
                f"Invalid value [{', '.join(value)}] for configuration {self.name}: {self.name} must be the "
                f"literal '*' or a list of replicas in the following format: {self.valid}"
            )

    def _check_growth(self, text: str) -> None:
        try:
            ordered_growth.read_generations(text)
        except ValueError as error:
            raise self._refuse(text, f"{error}; `barnabas topic grow TOPIC -p N --ordered` writes it") from None

    def _check_offset_reset(self, value: ConfigValue) -> None:
        text = str(value)
        if text.lower() in ("earliest", "latest") or _BY_DURATION.match(text):
            return
        raise self._refuse(
            value,
            f"Invalid value `{text}` for configuration {self.name}. The value must be either 'earliest', 'latest' or of "
            "the format 'by_duration:<PnDTnHnMn.nS>'.",
        )


class ConfigSchema:
    """Every setting there is, by the resource it belongs to.

    Args:
        keys: for each resource type its settings, by name; `listed` has the order for clients.
        broker_synonyms: broker settings that mean one thing in several units, most specific first.
    """

    def __init__(
        self,
        keys: Mapping[ConfigResourceType, Mapping[str, ConfigKey]],
        broker_synonyms: Mapping[str, tuple[str, ...]],
    ) -> None:
        self.keys = keys
        self.broker_synonym_lists = broker_synonyms

    def of(self, resource_type: ConfigResourceType) -> Mapping[str, ConfigKey]:
        return self.keys.get(resource_type, {})

    def listed(self, resource_type: ConfigResourceType) -> tuple[str, ...]:
        """Return the names of all settings that are not internal, in the order of Kafka's DescribeConfigs."""
        return self._listed.get(resource_type, ())

    @cached_property
    def _listed(self) -> dict[ConfigResourceType, tuple[str, ...]]:
        found = {}
        for kind, keys in self.keys.items():
            # Kafka puts its table of parsed values into another one without the internal settings.
            parsed = in_hash_order(keys, string_hash)
            found[kind] = tuple(in_hash_order((name for name in parsed if not keys[name].internal), string_hash))
        return found

    def key(self, resource_type: ConfigResourceType, name: str) -> ConfigKey | None:
        return self.of(resource_type).get(name)

    def broker_synonyms(self, name: str) -> tuple[str, ...]:
        return self.broker_synonym_lists.get(name, (name,))

    @cached_property
    def dynamic_broker_names(self) -> frozenset[str]:
        return frozenset(name for name, key in self.of(ConfigResourceType.BROKER).items() if key.dynamic)

    @cached_property
    def per_broker_names(self) -> frozenset[str]:
        keys = self.of(ConfigResourceType.BROKER)
        return frozenset(name for name, key in keys.items() if key.dynamic == "per-broker")

    def check_topic_configs(self, configs: Mapping[str, str]) -> None:
        """Raise ConfigError for the first unknown name or bad value, or for two values that contradict each other."""
        parsed = self._check_all(ConfigResourceType.TOPIC, configs.items(), "Unknown topic config name: ")
        if parsed.get("remote.storage.enable"):
            raise ConfigError(
                "Tiered Storage functionality is disabled in the broker. "
                "Topic cannot be configured with remote log storage."
            )
        low, high = parsed.get("min.compaction.lag.ms"), parsed.get("max.compaction.lag.ms")
        if isinstance(low, int) and isinstance(high, int) and low > high:
            raise ConfigError(
                f"conflict topic config setting min.compaction.lag.ms ({low}) > max.compaction.lag.ms ({high})"
            )

    def _check_all(
        self, resource_type: ConfigResourceType, items: Iterable[tuple[str, str]], unknown: str
    ) -> dict[str, ConfigValue]:
        parsed: dict[str, ConfigValue] = {}
        keys = self.of(resource_type)
        listed = list(items)
        for name, _ in listed:
            if name not in keys:
                raise ConfigError(unknown + name)
        for name, text in listed:
            parsed[name] = keys[name].parse(text)
        return parsed

    def check_group_configs(self, configs: Mapping[str, str]) -> None:
        self._check_all(ConfigResourceType.GROUP, configs.items(), "Unknown group config name: ")

    def check_client_metrics_configs(self, configs: Mapping[str, str]) -> None:
        self._check_all(ConfigResourceType.CLIENT_METRICS, configs.items(), "Unknown client metrics configuration: ")
