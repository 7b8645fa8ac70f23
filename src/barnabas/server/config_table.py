"""The table of settings: every topic, broker, group and client-metrics setting, once.

`settings.tsv` has one setting a line: scope, name, type, importance, default, update mode, internal mark, synonyms, bounds, and our
sentence about it. `tools/read_configs.py` refreshes everything but the sentences from Kafka's published classes. `DEFAULTS` lists
the defaults that differ from Kafka's, `EMBEDDED_DEFAULTS` those of an embedded broker.

- A default is `-` (required), `null` (no value) or `=` and the text.
- A setting without a sentence is validated but has no effect.
- Each start reads the whole table, in about a millisecond.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from barnabas.metadata.config_schema import ConfigKey, ConfigResourceType, ConfigSchema, ConfigType

WITHOUT_EFFECT = "Accepted for compatibility; has no effect."

# Defaults that differ from Kafka's, because Kafka's do not suit one node or a new user.
DEFAULTS = {
    "advertised.listeners": "auto",
    "auto.create.topics.enable": "false",
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
    "auto.create.topics.enable": "true",
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
TABLE = Path(__file__).with_name("settings.tsv")


def _synonym(text: str) -> tuple[str, int]:
    name, _, factor = text.partition("*")
    return name, int(factor or 1)


def _read_row(row: list[str]) -> ConfigKey:
    scope, name, kind, importance, default, dynamic, internal, synonyms, valid, documentation = row
    default = f"={DEFAULTS[name]}" if scope == "broker" and name in DEFAULTS else default
    return ConfigKey(
        name=name,
        kind=ConfigType[kind],
        importance=importance,
        default=default[1:] if default[0] == "=" else None,
        required=default == "-",
        dynamic="" if dynamic == "-" else dynamic,
        synonyms=() if synonyms == "-" else tuple(_synonym(text) for text in synonyms.split(",")),
        valid=valid,
        internal=internal != "-",
        documentation=documentation or WITHOUT_EFFECT,
    )


@cache
def config_schema() -> ConfigSchema:
    """Return the table, which is read once."""
    keys: dict[ConfigResourceType, dict[str, ConfigKey]] = {kind: {} for kind in _SCOPES.values()}
    for line in TABLE.read_text(encoding="utf-8").splitlines()[1:]:
        row = line.split("\t")
        keys[_SCOPES[row[0]]][row[1]] = _read_row(row)
    broker = keys[ConfigResourceType.BROKER]
    lists = {name: tuple(s for s, _ in key.synonyms) for name, key in broker.items() if key.synonyms}
    return ConfigSchema(keys, lists)
