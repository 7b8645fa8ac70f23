"""The settings of topics, brokers and groups, as Kafka's own classes define them; no broker is asked.

The broker reads the same table. With it a tool lists settings before a topic exists, and finds what a mistyped name meant.
"""

from __future__ import annotations

import csv
from functools import cache
from pathlib import Path
from typing import NamedTuple

_TABLE = Path(__file__).parents[1] / "settings.tsv"


class Setting(NamedTuple):
    """A setting; `default` is None if it has none."""

    name: str
    type: str
    default: str | None
    documentation: str


@cache
def settings(scope: str) -> list[Setting]:
    """Return the settings of a `topic`, `broker`, `group` or `client-metrics`, sorted by name; internal ones are left out."""
    rows = csv.DictReader(_TABLE.read_text(encoding="utf-8").splitlines(), delimiter="\t", quoting=csv.QUOTE_NONE)
    return sorted(
        Setting(row["name"], row["type"].lower(), _default(row["default"]), row["documentation"])
        for row in rows
        if row["#scope"] == scope and row["internal"] == "-"
    )


def _default(text: str) -> str | None:
    return text[1:] if text.startswith("=") else None


def setting_names(scope: str) -> list[str]:
    """Return the names of the settings of a scope."""
    return [each.name for each in settings(scope)]
