"""A comparison finds what is missing and what is there twice."""

from __future__ import annotations

from collections import Counter

from tests.chaos.from_shop import HEADER, QUESTIONS, Comparison

WANTED = Counter([("a", 1), ("b", 2)])


def test_what_is_equal():
    same = Comparison("table t", WANTED, WANTED.copy())
    assert same.is_equal
    assert same.examples() == []
    assert str(same).split() == ["table", "t", "2", "2", "0", "0"]
    assert len(str(same)) == len(HEADER)


def test_a_row_that_is_missing_and_one_that_is_there_twice():
    found = Comparison("table t", WANTED, Counter([("a", 1), ("a", 1)]))
    assert not found.is_equal
    assert str(found).split() == ["table", "t", "2", "2", "1", "1"]
    assert found.examples() == ["  table t, missing: b, 2", "  table t, unexpected: a, 1"]


def test_rows_of_sql_are_read():
    read = {
        name: row(*text.split("|"))
        for name, text in (("revenue_by_country", "UK|7.665|3"), ("suspicious_orders", "large|1|2|NULL"))
        for _, row in (QUESTIONS[name],)
    }
    assert read == {"revenue_by_country": ("UK", 7665, 3), "suspicious_orders": ("large", "1", 2, None)}
