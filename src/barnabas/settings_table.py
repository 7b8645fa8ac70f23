"""The table of settings, `settings.tsv`: every topic, broker, group and client-metrics setting, once.

One setting a line; the columns are the fields of `Row`, as text. `tools/read_configs.py` refreshes everything but the sentences from
Kafka's published classes. The broker makes its schema of it (`config.config_table`); the tools look up names and meanings here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from barnabas.words.nearest import did_you_mean

__all__ = ["TABLE", "Row", "Setting", "near_setting", "rows", "setting_names", "settings_of", "suggestion"]

TABLE = Path(__file__).with_name("settings.tsv")
# The description of an unknown name, as brokers of this project and of Apache Kafka return it.
_UNKNOWN = r"Unknown (topic|group) config name: (\S+)"


class Row(NamedTuple):
    """One line of the table.

    Attributes:
        default: `-` (required), `null` (no value) or `=` and the text.
        dynamic: `-` or Kafka's update mode.
        internal: `-` or `internal`.
        synonyms: `-`, or names with multipliers, as `log.roll.ms,log.roll.hours*3600000`.
    """

    scope: str
    name: str
    kind: str
    importance: str
    default: str
    dynamic: str
    internal: str
    synonyms: str
    valid: str
    meaning: str


class Setting(NamedTuple):
    """One setting for people; `default` is None without a value."""

    name: str
    kind: str
    default: str | None
    valid: str
    meaning: str


def rows() -> Iterator[Row]:
    """Yield every line of the table, in the order of Kafka's definitions."""
    for line in TABLE.read_text(encoding="utf-8").splitlines()[1:]:
        yield Row(*line.split("\t"))


def settings_of(scope: str) -> list[Setting]:
    """Return the settings of `topic`, `broker`, `group` or `client-metrics` that Kafka lists, in name order."""
    return sorted(
        Setting(
            row.name, row.kind.lower(), row.default[1:] if row.default.startswith("=") else None, row.valid, row.meaning
        )
        for row in rows()
        if row.scope == scope and row.internal == "-"
    )


def setting_names(scope: str) -> list[str]:
    """Return the names of `settings_of` a scope."""
    return [each.name for each in settings_of(scope)]


def near_setting(scope: str, name: str) -> str:
    """Return `"; did you mean NAME?"` for a mistyped name, or an empty string if no setting's name is like it."""
    return did_you_mean(name, (row.name for row in rows() if row.scope == scope))


def suggestion(message: str) -> str:
    """Return `"; did you mean NAME?"` for a broker's error about an unknown setting; empty for any other error."""
    found = re.search(_UNKNOWN, message)
    return "" if found is None else near_setting(found[1], found[2])
