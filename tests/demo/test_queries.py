"""What each query computes from a few lines in a batch."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

from barnabas.demo import queries
from tests.spark.session import SPARK

pytestmark = SPARK

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


def orders(spark: Any, *changes: dict[str, Any] | str) -> Any:
    values = [
        change if isinstance(change, str) else json.dumps(GOOD | {"line": n} | change)
        for n, change in enumerate(changes)
    ]
    rows = [(value.encode(), "orders", 0, n) for n, value in enumerate(values)]
    return spark.createDataFrame(rows, "value binary, topic string, partition int, offset bigint")


def clean(spark: Any, *changes: dict[str, Any]) -> Any:
    return queries.parse_orders(orders(spark, *changes)).where("reason is null")


def test_a_clean_line(spark):
    (row,) = queries.parse_orders(orders(spark, {})).collect()
    assert row.reason is None
    assert (row.description, row.quantity, row.at) == ("A LAMP", 3, datetime(2010, 12, 1, 8, 26, 30))
    assert (row.price_thousandths, row.amount_thousandths, row.customer) == (2555, 7665, "12.0")


def test_why_lines_are_set_aside(spark):
    broken = [
        ("nonsense,x", "it is not an order line"),
        ({"order": ""}, "it is not an order line"),
        ({"stock_code": " "}, "the stock code is missing"),
        ({"country": ""}, "the country is missing"),
        ({"at": "yesterday"}, "the date is not valid"),
        ({"quantity": "a dozen"}, "the quantity is not a whole number"),
        ({"quantity": "1.5"}, "the quantity is not a whole number"),
        ({"quantity": "0"}, "the quantity is zero"),
        ({"unit_price": "ask"}, "the price is not a number"),
        ({"unit_price": "-4.95"}, "the price is negative"),
        ({"unit_price": "0"}, "the price is zero"),
        ({"customer": ""}, None),
        ({"quantity": "-3", "order": "C1"}, None),
    ]
    found = queries.parse_orders(orders(spark, *(change for change, _ in broken))).orderBy("offset").collect()
    assert [row.reason for row in found] == [reason for _, reason in broken]


def test_revenue_per_minute_and_country(spark):
    lines = clean(
        spark, {}, {"at": "2010-12-01 08:26:59", "quantity": "-1"}, {"at": "2010-12-01 08:27:00"}, {"country": "F"}
    )
    found = {(row.minute, row.country): row.amount_thousandths for row in queries.revenue(lines).collect()}
    assert found == {
        (datetime(2010, 12, 1, 8, 26), "UK"): 7665 - 2555,
        (datetime(2010, 12, 1, 8, 27), "UK"): 7665,
        (datetime(2010, 12, 1, 8, 26), "F"): 7665,
    }


def test_best_sellers(spark):
    lines = clean(spark, {}, {"quantity": "-1"}, {"stock_code": "21"})
    found = {row.stock_code: (row.quantity, row.amount_thousandths) for row in queries.best_sellers(lines).collect()}
    assert found == {"20": (2, 5110), "21": (3, 7665)}


def test_taken_back_within_the_hour(spark):
    """One pair of lines per case; each pair is a customer's."""
    cases = [
        ({}, True),
        ({"at": "2010-12-01 09:26:30"}, True),
        ({"at": "2010-12-01 09:26:31"}, False),
        ({"at": "2010-12-01 08:26:29"}, False),
        ({"quantity": "-4999"}, False),
        ({"customer": "another"}, False),
        ({"stock_code": "21"}, False),
    ]
    pairs: list[dict[str, Any]] = [{"quantity": "2"}]
    for n, (change, _) in enumerate(cases):
        pairs.append({"quantity": "5000", "order": str(n), "customer": str(n)})
        back = {"order": f"C{n}", "customer": str(n), "quantity": "-5000", "at": "2010-12-01 08:40:00"}
        pairs.append(back | change)
    lines = clean(spark, *pairs)
    found = sorted(row.order for row in queries.taken_back(lines, lines).collect())
    assert found == [str(n) for n, (_, is_taken_back) in enumerate(cases) if is_taken_back]
    assert sorted(row.order for row in queries.large_lines(lines).collect()) == [str(n) for n in range(len(cases))]


def test_stock_is_the_newest_level(spark):
    events = [("a", 5, 0), ("b", 9, 1), ("a", 3, 2)]
    rows = [
        (json.dumps({"event": "stock.reserved", "stock_code": code, "level": level, "delivered": 10}).encode(), offset)
        for code, level, offset in events
    ]
    frame = spark.createDataFrame([*rows, (b"nonsense", 3)], "value binary, offset bigint")
    assert {row.stock_code: row.level for row in queries.stock(frame).collect()} == {"a": 3, "b": 9}


def test_repeated_payment_events_change_nothing(spark):
    story = [("1", "initiated", 1), ("1", "failed", 1), ("1", "initiated", 2), ("1", "completed", 2)]
    story += [("2", "initiated", 1), ("3", "initiated", 1), ("3", "failed", 1)]
    rows = [
        (
            json.dumps(
                {"event": f"payment.{e}", "payment": p, "attempt": a, "order": p, "amount_thousandths": 5}
            ).encode(),
        )
        for p, e, a in [*story, *story[::-1]]
    ]
    found = queries.payments(spark.createDataFrame(rows, "value binary")).collect()
    states = {row.payment: row.event for row in found}
    assert states == {"1": "payment.completed", "2": "payment.initiated", "3": "payment.failed"}
