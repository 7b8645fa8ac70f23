"""Results from the pipeline's tables: only what is committed, exact, and the newest where the newest counts."""

from __future__ import annotations

import json
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from barnabas.demo.results import Results

AT = datetime(2010, 12, 1, 8, 26, 30)
ORDER = {"order_id": "1", "stock_code": "20", "description": "LAMP", "quantity": 2, "at": AT, "country": "UK"}
ORDER |= {"amount": Decimal("5.005"), "reason": None}
ALERT = {"kind": "large", "order_id": "7", "line": 1, "at": AT, "customer": "c", "country": "UK", "description": "LAMP"}
ALERT |= {"quantity": 5, "amount": Decimal(7000), "cancelled_at": AT}
MONEY = pa.decimal128(18, 3)


def commit(folder: Path, table: str, number: int, *rows: dict[str, Any]) -> None:
    """Write a batch as Spark does, and commit it."""
    log = folder / table / "_spark_metadata"
    log.mkdir(parents=True, exist_ok=True)
    file = folder / table / f"part-{number}.parquet"
    columns = pa.Table.from_pylist(list(rows))
    for name in ("amount", "revenue"):
        if name in columns.column_names:
            columns = columns.set_column(columns.schema.get_field_index(name), name, columns[name].cast(MONEY))
    if "reason" in columns.column_names:
        reason = columns["reason"].cast(pa.string())
        columns = columns.set_column(columns.schema.get_field_index("reason"), "reason", reason)
    pq.write_table(columns, file, use_deprecated_int96_timestamps=True)
    (log / str(number)).write_text("v1\n" + json.dumps({"path": file.as_uri(), "action": "add"}))


@pytest.fixture
def results(tmp_path: Path) -> Results:
    return Results(tmp_path)


def test_nothing_yet(results):
    assert [results.revenue(), results.stock(), results.payments(), results.large_lines(), results.outcomes()] == [
        []
    ] * 5
    assert (results.records(), results.too_late()) == (0, 0)


def test_orders(tmp_path, results):
    commit(tmp_path, "checked_orders", 0, ORDER, ORDER | {"amount": Decimal("-1.001"), "quantity": -1})
    assert results.revenue()[0]["lines"] == 2
    commit(tmp_path, "checked_orders", 1, ORDER | {"country": "F", "stock_code": "21"}, ORDER | {"reason": "bad"})
    minute = AT.replace(second=0)
    assert sorted(results.revenue(), key=lambda row: row["country"]) == [
        {"minute": minute, "country": "F", "amount_thousandths": 5005, "lines": 1},
        {"minute": minute, "country": "UK", "amount_thousandths": 4004, "lines": 2},
    ]
    sellers = {row["stock_code"]: (row["quantity"], row["amount_thousandths"]) for row in results.best_sellers()}
    assert sellers == {"20": (1, 4004), "21": (2, 5005)}
    assert {row["reason"]: row["lines"] for row in results.outcomes()} == {None: 3, "bad": 1}
    assert results.records() == 4


def test_the_newest_event_counts(tmp_path, results):
    stock = [("a", 0, 9), ("b", 1, 5), ("a", 2, 3)]
    commit(
        tmp_path,
        "stock_events",
        0,
        *({"stock_code": c, "offset": o, "level": n, "delivered": 9} for c, o, n in stock[::-1]),
    )
    assert {row["stock_code"]: row["level"] for row in results.stock()} == {"a": 3, "b": 5}
    events = [(1, "initiated"), (1, "failed"), (2, "initiated"), (2, "completed")]
    commit(
        tmp_path,
        "payment_events",
        0,
        *(
            {"payment": "p", "attempt": a, "event": f"payment.{e}", "order_id": "1", "amount": Decimal(5)}
            for a, e in events[::-1]
        ),
    )
    assert results.payments() == [{"payment": "p", "event": "payment.completed", "amount_thousandths": 5000}]
    assert results.records() == 7


def test_alerts_by_kind(tmp_path, results):
    commit(tmp_path, "alerts", 0, ALERT, ALERT | {"kind": "taken back", "order_id": "8"})
    (large,), (taken_back,) = results.large_lines(), results.taken_back()
    assert (large["order"], large["amount_thousandths"], large["at"]) == ("7", 7_000_000, AT)
    assert (taken_back["order"], taken_back["cancelled_at"]) == ("8", AT)


def test_what_came_too_late_for_its_window(tmp_path, results):
    minute = AT.replace(second=0)
    commit(tmp_path, "checked_orders", 0, ORDER, ORDER, ORDER | {"at": AT.replace(day=2)})
    commit(tmp_path, "revenue_windows", 0, {"minute": minute, "country": "UK", "revenue": Decimal("5.005")})
    assert results.too_late() == 5005
