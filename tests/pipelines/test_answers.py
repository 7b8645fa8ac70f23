"""The answers in SQL, over a few rows."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pytest

from shop.streams import answers
from tests.pipelines.order_lines import PAIRS, checked, pairs, taken_back
from tests.spark.session import SPARK

pytestmark = SPARK

STOCK = [("a", 5, 0), ("b", 9, 1), ("a", 3, 2)]
PAYMENTS = [("1", "initiated", 1), ("1", "failed", 1), ("1", "initiated", 2), ("1", "completed", 2)]
PAYMENTS += [("2", "initiated", 1), ("3", "initiated", 1), ("3", "failed", 1)]


@pytest.fixture(scope="module")
def tables(spark: Any) -> Any:
    """The answers as temporary views over made-up tables."""
    orders = checked(
        spark, {}, {"quantity": "-1"}, {"stock_code": "21", "at": "2010-12-02 08:26:59"}, "nonsense", *pairs()
    )
    orders.cache().createOrReplaceTempView("checked_orders")
    stock = [(code, level, 10, offset) for code, level, offset in STOCK]
    spark.createDataFrame(
        stock, "stock_code string, level bigint, delivered bigint, offset bigint"
    ).createOrReplaceTempView("stock_events")
    # Every event twice, the second time in the other order: a repeated event changes nothing.
    payments = [(p, f"payment.{e}", a, p, Decimal(5)) for p, e, a in [*PAYMENTS, *PAYMENTS[::-1]]]
    spark.createDataFrame(
        payments, "payment string, event string, attempt int, order_id string, amount decimal(18,3)"
    ).createOrReplaceTempView("payment_events")
    for statement in answers("CREATE OR REPLACE TEMPORARY VIEW"):
        spark.sql(statement)
    return spark


def test_revenue(tables):
    ordinary = tables.sql("SELECT minute, revenue, lines FROM revenue_by_minute WHERE minute >= '2010-12-02'").collect()
    assert [tuple(row) for row in ordinary] == [(datetime(2010, 12, 2, 8, 26), Decimal("7.665"), 1)]
    days = {row.day: row.lines for row in tables.table("revenue_by_day").collect()}
    assert days == {date(2010, 12, 1): 3 + 2 * len(PAIRS), date(2010, 12, 2): 1}
    (country,) = tables.table("revenue_by_country").collect()
    assert country.lines == 4 + 2 * len(PAIRS)


def test_rejected_lines_are_in_no_answer_but_their_own(tables):
    assert [tuple(row) for row in tables.table("rejected_by_reason").collect()] == [("it is not an order line", 1)]
    assert tables.table("lines").where("offset = 3").count() == 0


def test_best_sellers(tables):
    found = {row.stock_code: (row.description, row.pieces) for row in tables.table("best_sellers").collect()}
    assert set(found) == {"20", "21"}
    assert found["21"] == ("A LAMP", 3 - 5000)


def test_suspicious_orders(tables):
    found = tables.table("suspicious_orders").collect()
    assert sorted(row.order_id for row in found if row.kind == "large") == [str(n) for n in range(len(PAIRS))]
    assert sorted(row.order_id for row in found if row.kind == "taken back") == taken_back()


def test_stock_is_the_newest_level(tables):
    assert {row.stock_code: row.level for row in tables.table("stock").collect()} == {"a": 3, "b": 9}


def test_payments_are_their_latest_attempt(tables):
    states = {row.payment: (row.event, row.attempt) for row in tables.table("payments").collect()}
    assert states == {"1": ("payment.completed", 2), "2": ("payment.initiated", 1), "3": ("payment.failed", 1)}
