"""The bounds that the broker's settings put on a group's settings.

A group setting has a broker setting as its default, and often two more as its bounds: `consumer.session.timeout.ms`
stands between `group.consumer.min.session.timeout.ms` and `group.consumer.max.session.timeout.ms`. The messages are
Kafka's.

Source: Kafka's `GroupConfig.validate`; KIP-848, KIP-932, KIP-1071.
"""

from __future__ import annotations

from collections.abc import Mapping

from barnabas.metadata.config_entries import ConfigResolver
from barnabas.metadata.config_schema import ConfigError, ConfigKey, ConfigResourceType, ConfigValue
from barnabas.metadata.configs_image import ConfigurationsImage

SESSION, HEARTBEAT = "session.timeout.ms", "heartbeat.interval.ms"
ASSIGNOR, ASSIGNORS = "streams.assignor.name", "group.streams.assignors"
FAMILIES = ("consumer", "share", "streams")


def check_group_bounds(resolver: ConfigResolver, configs: ConfigurationsImage, values: Mapping[str, str]) -> None:
    """Raise ConfigError for the first value of a group that the broker does not allow."""
    keys = resolver.schema.of(ConfigResourceType.GROUP)
    parsed: dict[str, ConfigValue] = {name: keys[name].parse(text) for name, text in values.items()}
    for name, value in parsed.items():
        if isinstance(value, int) and not isinstance(value, bool):
            _check_bounds(resolver, configs, keys[name], value)
    _check_assignor(resolver, configs, parsed.get(ASSIGNOR))
    for family in FAMILIES:
        session, heartbeat = f"{family}.{SESSION}", f"{family}.{HEARTBEAT}"
        if session in parsed or heartbeat in parsed:
            first = parsed.get(session, resolver.broker_value(configs, f"group.{session}"))
            second = parsed.get(heartbeat, resolver.broker_value(configs, f"group.{heartbeat}"))
            if isinstance(first, int) and isinstance(second, int) and first <= second:
                raise ConfigError(f"{session} must be greater than {heartbeat}")


def _bound(resolver: ConfigResolver, configs: ConfigurationsImage, key: ConfigKey, kind: str) -> int | None:
    if not key.synonyms:
        return None
    group, family, rest = key.synonyms[0][0].split(".", 2)
    name = f"{group}.{family}.{kind}.{rest.removeprefix('num.')}"
    if resolver.schema.key(ConfigResourceType.BROKER, name) is None:
        return None
    value = resolver.broker_value(configs, name)
    assert isinstance(value, int)
    return value


def _check_bounds(resolver: ConfigResolver, configs: ConfigurationsImage, key: ConfigKey, value: int) -> None:
    low, high = _bound(resolver, configs, key, "min"), _bound(resolver, configs, key, "max")
    if low is not None and high is not None:
        if not low <= value <= high:
            raise ConfigError(f"{key.name} must be in the range {low} to {high} inclusive.")
    elif high is not None and value > high:
        raise ConfigError(f"{key.name} must be less than or equal to {high}")
    elif low is not None and value < low:
        raise ConfigError(f"{key.name} must be greater than or equal to {low}")


def _check_assignor(resolver: ConfigResolver, configs: ConfigurationsImage, name: ConfigValue) -> None:
    known = resolver.broker_value(configs, ASSIGNORS)
    if name is not None and isinstance(known, tuple) and name not in known:
        raise ConfigError(
            f"{ASSIGNOR} '{name}' is not a registered task assignor. Registered assignors are: [{', '.join(known)}]."
        )
