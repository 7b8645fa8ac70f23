"""A few records of the shop's topics, as a batch."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

from shop import transform

GOOD = {
    "event": "order.created",
    "line": 1,
    "order": "1",
    "stock_code": "20",
    "description": " A LAMP ",
    "quantity": "3",
    "at": "2010-12-01 08:26:30",
    "unit_price": "2.555",
    "customer": "12.0",
    "country": "UK",
}


def text(change: dict[str, Any], line: int = 1) -> str:
    """Return the text of a record: a good line, changed."""
    return json.dumps(GOOD | {"line": line} | change)


def records(spark: Any, *values: str) -> Any:
    """Return records with the columns of a topic."""
    now = datetime(2026, 1, 1)
    rows = [(value.encode(), "orders", 0, offset, now) for offset, value in enumerate(values)]
    return spark.createDataFrame(rows, "value binary, topic string, partition int, offset bigint, timestamp timestamp")


def checked(spark: Any, *changes: dict[str, Any] | str) -> Any:
    """Return the table `checked_orders` of changed good lines, or of texts."""
    values = [change if isinstance(change, str) else text(change, line) for line, change in enumerate(changes)]
    return transform.checked_orders(records(spark, *values))


# One pair of lines per case, each of a customer of its own: how the second differs, and whether it takes the first back.
PAIRS: list[tuple[dict[str, Any], bool]] = [
    ({}, True),
    ({"at": "2010-12-01 09:26:30"}, True),
    ({"at": "2010-12-01 09:26:31"}, False),
    ({"at": "2010-12-01 08:26:29"}, False),
    ({"quantity": "-4999"}, False),
    ({"customer": "another"}, False),
    ({"stock_code": "21"}, False),
]


def pairs() -> list[dict[str, Any]]:
    """Return the changes that make the lines of `PAIRS`, after one ordinary line."""
    changes: list[dict[str, Any]] = [{"quantity": "2"}]
    for n, (change, _) in enumerate(PAIRS):
        changes.append({"quantity": "5000", "order": str(n), "customer": str(n)})
        back = {"order": f"C{n}", "customer": str(n), "quantity": "-5000", "at": "2010-12-01 08:40:00"}
        changes.append(back | change)
    return changes


def taken_back() -> list[str]:
    """Return the orders of `PAIRS` that are taken back."""
    return [str(n) for n, (_, is_taken_back) in enumerate(PAIRS) if is_taken_back]
