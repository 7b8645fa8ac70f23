"""The table of settings: every topic, broker, group and client-metrics setting, once. Shell, read at start.

`settings.tsv` holds the facts, one setting a line: scope, name, type, importance, default, update mode, internal mark,
synonyms, bounds, and our sentence about it. `tools/read_configs.py` refreshes the facts from Kafka's published classes
and keeps the sentences. Where barnabas's default is another than Kafka's, `DEFAULTS` says so; an embedded broker lays
`EMBEDDED_DEFAULTS` over that.

- A default is `-` (must be given), `null` (no value) or `=` and the text.
- A setting without a sentence of its own is known and validated, and nothing acts on it yet.
- The whole table is read in about a millisecond, since each start pays for it.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from barnabas.metadata.config_schema import ConfigKey, ConfigResourceType, ConfigSchema, ConfigType

WITHOUT_EFFECT = "Accepted for compatibility; has no effect."

# Defaults that differ from Kafka's, each because one node or a newcomer would be hurt by Kafka's.
DEFAULTS = {
    "advertised.listeners": "auto",
    "auto.create.topics.enable": "false",
}
# What Kafka wants to be told, and one node can do without being told: as if the properties file had said so.
IMPLIED = {
    "node.id": "1",
    "process.roles": "broker,controller",
    "controller.listener.names": "CONTROLLER",
}
# What an embedded broker changes on top: it lives for one test and nobody waits for a power cut.
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
    """The table, read once."""
    keys: dict[ConfigResourceType, dict[str, ConfigKey]] = {kind: {} for kind in _SCOPES.values()}
    for line in TABLE.read_text(encoding="utf-8").splitlines()[1:]:
        row = line.split("\t")
        keys[_SCOPES[row[0]]][row[1]] = _read_row(row)
    broker = keys[ConfigResourceType.BROKER]
    lists = {name: tuple(s for s, _ in key.synonyms) for name, key in broker.items() if key.synonyms}
    return ConfigSchema(keys, lists)
