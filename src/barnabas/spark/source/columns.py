"""The columns of the source's rows: those of Spark's own Kafka source, or the query's choice of them.

Spark does not tell a Python source which columns a query uses. The option `columns` does: a column that is left out is
neither decoded nor sent to Spark.
"""

from __future__ import annotations

from barnabas.spark.given_options import GivenOptions
from barnabas.words.nearest import did_you_mean
from barnabas.words.printable import printable

HEADERS = "headers"
TYPES = {
    "key": "binary",
    "value": "binary",
    "topic": "string",
    "partition": "int",
    "offset": "bigint",
    "timestamp": "timestamp",
    "timestampType": "int",
    HEADERS: "array<struct<key: string, value: binary>>",
}
"""Spark's types by name, in the order of Spark's own source."""

DEFAULT = tuple(name for name in TYPES if name != HEADERS)
"""Without the options `columns` and `includeHeaders`."""


def chosen_columns(given: GivenOptions) -> tuple[str, ...]:
    """Return the names of a query's columns, in order.

    Raises:
        ValueError: a name is unknown or there twice, or the options contradict each other; the message is for the user.
    """
    text = given.text("columns")
    with_headers = given.boolean("includeHeaders", False)
    if text is None:
        return (*DEFAULT, HEADERS) if with_headers else DEFAULT
    by_name = {name.lower(): name for name in TYPES}
    found: list[str] = []
    for each in text.split(","):
        name = each.strip()
        if name.lower() not in by_name:
            raise ValueError(
                f"columns has '{printable(name)}', and the source has {', '.join(TYPES)}{did_you_mean(name, TYPES)}"
            )
        if by_name[name.lower()] in found:
            raise ValueError(f"columns has {by_name[name.lower()]} twice")
        found.append(by_name[name.lower()])
    if with_headers and HEADERS not in found:
        raise ValueError("columns is without headers, and includeHeaders is true: add headers to columns")
    return tuple(found)


def schema(columns: tuple[str, ...]) -> str:
    """Return the columns as Spark's schema text."""
    return ", ".join(f"{name} {TYPES[name]}" for name in columns)
