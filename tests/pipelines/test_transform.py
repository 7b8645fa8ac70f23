"""What each table is made of, from a few rows in a batch."""

from __future__ import annotations

import json
from datetime import datetime
from decimal import Decimal
from typing import Any

from shop import transform
from tests.pipelines.order_lines import checked, records
from tests.spark.session import SPARK

pytestmark = SPARK


def test_a_clean_line(spark):
    (row,) = checked(spark, {}).collect()
    assert row.reason is None
    assert (row.description, row.quantity, row.at) == ("A LAMP", 3, datetime(2010, 12, 1, 8, 26, 30))
    assert (row.unit_price, row.amount, row.customer) == (Decimal("2.555"), Decimal("7.665"), "12.0")


def test_why_lines_are_rejected(spark):
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
    table = checked(spark, *(change for change, _ in broken)).cache()
    assert [row.reason for row in table.orderBy("offset").collect()] == [reason for _, reason in broken]
    assert transform.lines(table).count() == 2
    assert {row.text for row in transform.rejected(table).where("offset = 0").collect()} == {"nonsense,x"}


def test_revenue_per_minute_and_country(spark):
    lines = transform.lines(
        checked(
            spark, {}, {"at": "2010-12-01 08:26:59", "quantity": "-1"}, {"at": "2010-12-01 08:27:00"}, {"country": "F"}
        )
    )
    found = {(row.minute, row.country): row.revenue for row in transform.revenue_windows(lines).collect()}
    assert found == {
        (datetime(2010, 12, 1, 8, 26), "UK"): Decimal("5.110"),
        (datetime(2010, 12, 1, 8, 27), "UK"): Decimal("7.665"),
        (datetime(2010, 12, 1, 8, 26), "F"): Decimal("7.665"),
    }


def test_events_that_are_none_are_left_out(spark):
    stock = {"event": "stock.reserved", "stock_code": "a", "at": "2010-12-01 08:26:00", "level": 5, "delivered": 10}
    payment: dict[str, Any] = {"event": "payment.initiated", "payment": "p", "attempt": 1, "order": "1"}
    payment |= {"at": "2010-12-01 08:26:00", "amount_thousandths": 1_999}
    events = records(spark, "nonsense", json.dumps(stock), json.dumps(payment))
    assert [(row.stock_code, row.level, row.offset) for row in transform.stock_events(events).collect()] == [
        ("a", 5, 1)
    ]
    assert [(row.payment, row.amount) for row in transform.payment_events(events).collect()] == [
        ("p", Decimal("1.999"))
    ]
