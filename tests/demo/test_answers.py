"""The answers that are computed from result rows."""

from __future__ import annotations

from datetime import date, datetime

import pytest

from barnabas.demo import answers

REVENUE = [
    {"minute": datetime(2010, 12, 1, 8, 26), "country": "UK", "amount_thousandths": 1000, "lines": 2},
    {"minute": datetime(2010, 12, 1, 8, 26), "country": "France", "amount_thousandths": 1500, "lines": 1},
    {"minute": datetime(2010, 12, 2, 9, 0), "country": "UK", "amount_thousandths": 700, "lines": 1},
]


def test_revenue_per_country():
    assert answers.revenue_per_country(REVENUE) == [("UK", 1700, 3), ("France", 1500, 1)]


def test_revenue_over_time():
    assert answers.revenue_per_minute(REVENUE)[0] == (datetime(2010, 12, 1, 8, 26), 2500)
    assert answers.revenue_per_day(REVENUE) == [(date(2010, 12, 1), 2500), (date(2010, 12, 2), 700)]
    assert answers.revenue_per_hour(REVENUE)[8:10] == [2500, 700]


def test_revenue_without_lines_that_were_taken_back():
    bulk = {
        "at": datetime(2010, 12, 1, 8, 26, 30),
        "cancelled_at": datetime(2010, 12, 2, 9, 0),
        "country": "UK",
        "amount_thousandths": 900,
    }
    rest = answers.without(REVENUE, [bulk])
    assert [row["amount_thousandths"] for row in rest] == [100, 1500, 1600]
    assert REVENUE[0]["amount_thousandths"] == 1000, "the results stay as they are"


def test_the_highest_come_first():
    rows = [
        {"stock_code": c, "amount_thousandths": a, "level": a, "line": a} for c, a in (("x", 1), ("y", 3), ("z", 2))
    ]
    assert [row["stock_code"] for row in answers.best_sellers(rows, 2)] == ["y", "z"]
    assert [row["stock_code"] for row in answers.scarce(rows, 2)] == ["x", "z"]
    assert [row["stock_code"] for row in answers.largest(rows, 1)] == ["y"]


def test_payments_by_state():
    rows = [
        {"event": "payment.completed", "amount_thousandths": 5},
        {"event": "payment.failed", "amount_thousandths": 7},
        {"event": "payment.completed", "amount_thousandths": 6},
    ]
    assert answers.payments_by_state(rows) == {"completed": (2, 11), "failed": (1, 7)}


def test_outcomes():
    rows = [
        {"batch": 0, "reason": None, "lines": 10},
        {"batch": 0, "reason": "bad", "lines": 1},
        {"batch": 1, "reason": None, "lines": 5},
        {"batch": 1, "reason": "worse", "lines": 4},
        {"batch": 1, "reason": "bad", "lines": 2},
    ]
    assert answers.clean_lines(rows) == 15
    assert answers.set_aside(rows) == [("worse", 4), ("bad", 3)]


@pytest.mark.parametrize(
    ("changed", "value", "is_clean"),
    [
        (None, "", True),
        (3, "0", False),
        (3, "1.5", False),
        (3, "-2", True),
        (4, "yesterday", False),
        (5, "ask", False),
        (5, "-1", False),
        (1, " ", False),
        (6, "", True),
    ],
)
def test_totals_straight_from_the_lines_reject_what_the_pipeline_rejects(
    changed: int | None, value: str, is_clean: bool
):
    line: list[str] = ["1", "20", "LAMP", "3", "2010-12-01 08:26:00", "2.50", "12", "UK"]
    if changed is not None:
        line[changed] = value
    found = answers.totals([line, ["too", "short"]])
    assert (found.clean, found.rejected) == (is_clean, 2 - is_clean)
