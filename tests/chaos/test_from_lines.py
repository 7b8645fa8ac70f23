"""What the tables must hold, from a few lines, and beside the demo's own sums."""

from __future__ import annotations

from collections import Counter
from datetime import date, datetime

import pytest

from barnabas.demo.answers import totals
from barnabas.demo.feeder import Feed, read_lines
from tests.chaos.from_lines import FromLines, check

GOOD = ["1", "20 ", " A LAMP ", "3", "2010-12-01 08:26:30", "2.555", "12.0", "UK"]
MINUTE = datetime(2010, 12, 1, 8, 26)


def line(**changes: str) -> list[str]:
    names = ("order", "code", "description", "quantity", "at", "price", "customer", "country")
    return [changes.get(name, text) for name, text in zip(names, GOOD, strict=True)]


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"order": ""}, "it is not an order line"),
        ({"code": " "}, "the stock code is missing"),
        ({"country": ""}, "the country is missing"),
        ({"at": "yesterday"}, "the date is not valid"),
        ({"quantity": "a dozen"}, "the quantity is not a whole number"),
        ({"quantity": "1.5"}, "the quantity is not a whole number"),
        ({"quantity": "0"}, "the quantity is zero"),
        ({"price": "ask"}, "the price is not a number"),
        ({"price": "-4.95"}, "the price is negative"),
        ({"price": "0"}, "the price is zero"),
        ({"customer": ""}, None),
        ({"quantity": "-3", "order": "C1"}, None),
    ],
)
def test_why_a_line_is_rejected(changes, reason):
    """The cases of `test_transform`, which asks Spark."""
    found, valid = check(1, line(**changes))
    assert found == reason
    assert (valid is None) is (reason is not None)


def test_a_line_that_is_none():
    assert check(1, ["nonsense", "x"]) == ("it is not an order line", None)
    found = FromLines([["nonsense", "x"]])
    assert (
        found.checked_orders() == found.checked_orders() == Counter([("nonsense,x", "it is not an order line", None)])
    )


def test_sums():
    found = FromLines([line(), line(quantity="-1", at="2010-12-01 08:26:59"), line(country="F"), line(price="0")])
    assert found.revenue_by_minute() == Counter([(MINUTE, "UK", 5_110, 2), (MINUTE, "F", 7_665, 1)])
    assert found.revenue_by_minute(datetime(2010, 12, 1, 8, 25)) == Counter()
    assert found.revenue_by_day() == Counter([(date(2010, 12, 1), 12_775, 3)])
    assert found.revenue_by_country() == Counter([("UK", 5_110, 2), ("F", 7_665, 1)])
    assert found.best_sellers() == Counter([("20", 5, 12_775)])
    assert found.rejected_by_reason() == Counter([("the price is zero", 1)])
    assert found.stock() == Counter([("20 ", 1000 - 8, 1000)])
    assert found.payments() == Counter([("pay-1", "1", "payment.completed", 1, 12_775)])


def test_what_is_taken_back():
    large = line(quantity="5000")
    back = {"order": "C1", "quantity": "-5000", "at": "2010-12-01 09:26:30"}
    found = FromLines([large, line(**back), line(**(back | {"at": "2010-12-01 09:26:31"}))])
    assert found.suspicious_orders() == Counter(
        [("large", "1", 1, None), ("taken back", "1", 1, datetime(2010, 12, 1, 9, 26, 30))]
    )


def test_the_sums_are_those_of_the_demo():
    lines = list(read_lines(Feed(rows=3000, seed=8)))
    found, expected = FromLines(lines), totals(lines)
    assert sum(row[-2] for row in found.revenue_by_minute().elements()) == expected.revenue_thousandths
    assert found.rejected().total() == expected.rejected
    assert found.events == sum((found.checked_orders() + found.stock_events() + found.payment_events()).values())
