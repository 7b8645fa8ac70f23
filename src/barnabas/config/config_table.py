"""The broker's schema, from the table of settings (`settings_table`).

`DEFAULTS` lists the defaults that differ from Kafka's, `EMBEDDED_DEFAULTS` those of an embedded broker.

- A setting without a sentence is validated but has no effect.
- Each start reads the whole table, in about a millisecond.
"""

from __future__ import annotations

from functools import cache

from barnabas.metadata.config_schema import ConfigKey, ConfigResourceType, ConfigSchema, ConfigType
from barnabas.settings_table import Row, rows

_WITHOUT_EFFECT = "Accepted for compatibility; has no effect."

# Defaults that differ from Kafka's, because Kafka's do not suit one node or a new user.
DEFAULTS = {
    "advertised.listeners": "auto",
    "queued.max.request.bytes": "268435456",
}
# Properties that Kafka requires and one node implies.
IMPLIED = {
    "node.id": "1",
    "process.roles": "broker,controller",
    "controller.listener.names": "CONTROLLER",
}
# An embedded broker lives for one test, whose data need not survive a power cut.
EMBEDDED_DEFAULTS = {
    "barnabas.metadata.flush": "false",
    "group.initial.rebalance.delay.ms": "0",
    "group.streams.initial.rebalance.delay.ms": "0",
}

_SCOPES = {
    "topic": ConfigResourceType.TOPIC,
    "broker": ConfigResourceType.BROKER,
    "group": ConfigResourceType.GROUP,
    "client-metrics": ConfigResourceType.CLIENT_METRICS,
}


def _synonym(text: str) -> tuple[str, int]:
    name, _, factor = text.partition("*")
    return name, int(factor or 1)


def _key(row: Row) -> ConfigKey:
    default = f"={DEFAULTS[row.name]}" if row.scope == "broker" and row.name in DEFAULTS else row.default
    return ConfigKey(
        name=row.name,
        kind=ConfigType[row.kind],
        importance=row.importance,
        default=default[1:] if default[0] == "=" else None,
        required=default == "-",
        dynamic="" if row.dynamic == "-" else row.dynamic,
        synonyms=() if row.synonyms == "-" else tuple(_synonym(text) for text in row.synonyms.split(",")),
        valid=row.valid,
        internal=row.internal != "-",
        documentation=row.meaning or _WITHOUT_EFFECT,
    )


@cache
def config_schema() -> ConfigSchema:
    """Return the schema; the table is read once."""
    keys: dict[ConfigResourceType, dict[str, ConfigKey]] = {kind: {} for kind in _SCOPES.values()}
    for row in rows():
        keys[_SCOPES[row.scope]][row.name] = _key(row)
    broker = keys[ConfigResourceType.BROKER]
    lists = {name: tuple(s for s, _ in key.synonyms) for name, key in broker.items() if key.synonyms}
    return ConfigSchema(keys, lists)
