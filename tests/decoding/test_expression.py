"""Filters in CEL: what holds, what is refused with its place, and what would cost too much."""

from __future__ import annotations

import contextlib
import time
from datetime import UTC, datetime
from typing import Any

import pytest

from barnabas.decoding.expression import CHARACTERS_MAX, BadExpression, Expression, Unjudged

RECORD: dict[str, Any] = {
    "value": {
        "a": 5,
        "s": "hello",
        "n": None,
        "l": [1, 2, 3],
        "d": {"x": 1.5},
        "big": 2**63,
        "items": [{"tags": ["t"]}],
    },
    "key": "eu-17",
    "headers": {"source": "shop", "raw": b"\xff", "none": None},
    "topic": "orders",
    "partition": 2,
    "offset": 77,
    "timestamp": 1_700_000_000_000,
    "time": datetime(2023, 11, 14, tzinfo=UTC),
    "state": "committed",
}


def holds(text: str, **changed: Any) -> bool:
    return Expression(text).holds((RECORD | changed).__getitem__)


@pytest.mark.parametrize(
    "text",
    [
        "value.a > 3",
        "value.a == 5.0 && value.s.startsWith('he')",
        "has(value.a) && !has(value.b)",
        "value.b == 1 || value.a == 5",
        "value.n == null",
        "size(value.l) == 3 && value.l.exists(x, x == 2)",
        "value.items.exists(i, i.tags.exists(t, t == 't'))",
        "value.d.x > 1.0",
        "value.s.matches('^h.*o$')",
        'headers["source"] == "shop"',
        "key.endsWith('17') && topic == 'orders' && partition == 2 && offset >= 77 && state == 'committed'",
        "timestamp > 1600000000000",
        "time > timestamp('2023-01-01T00:00:00Z') && time.getFullYear() == 2023",
        "value['a'] in [4, 5]",
        "true",
    ],
)
def test_what_holds(text: str) -> None:
    assert holds(text)


@pytest.mark.parametrize(
    "text",
    [
        "value.a > 5",
        "value.b == 1",
        "value.s > 3",
        "value.a.b.c == 1",
        "headers['x'] == 'y'",
        "1 / 0 == 1",
        "value.l[9] == 1",
    ],
)
def test_a_field_that_is_missing_or_of_another_type_is_no_match(text: str) -> None:
    assert not holds(text)
    assert not holds("value.a > 5", value=None)
    assert not holds("value.a > 5", value="text")


def test_only_the_parts_that_it_has_are_asked_for() -> None:
    asked: list[str] = []

    def variable(name: str) -> object:
        asked.append(name)
        return RECORD[name]

    assert Expression("offset == 77 && partition == 2").holds(variable)
    assert sorted(asked) == ["offset", "partition"]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("value.a > ", "at character 11: mismatched input its end"),
        ("value..a", "at character 7: no viable alternative"),
        ("value.a ==\n  ]", "at line 2, character 3: mismatched input ']'"),
        ("'open", "at character 1: token recognition error"),
        ("", "at character 1"),
        ("valu.a == 1", "“valu”, which is not one of value, key,"),
        ("(" * 400 + "1" + ")" * 400, "The filter cannot be read"),
        ("x" * (CHARACTERS_MAX + 1), f"at most {CHARACTERS_MAX} are possible"),
        ("\x00", "The filter cannot be read"),
    ],
)
def test_what_cannot_be_read_is_one_sentence_with_its_place(text: str, sentence: str) -> None:
    with pytest.raises(BadExpression) as found:
        Expression(text)
    assert sentence in str(found.value)
    assert "\n" not in str(found.value)
    assert len(str(found.value)) < 400


def test_the_nearest_variable() -> None:
    with pytest.raises(BadExpression, match="did you mean value"):
        Expression("valu.a == 1")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("value.a", "The filter is int for a record, not true or false"),
        ("lower(value.s) == 'x'", "no function “lower”"),
        ("value.s.matches('[')", "a bad regular expression"),
    ],
)
def test_what_only_a_record_shows(text: str, sentence: str) -> None:
    with pytest.raises(BadExpression, match=sentence):
        holds(text)


def test_what_the_library_cannot_take_is_not_judged() -> None:
    with pytest.raises(Unjudged):
        holds("value == value", value={"a": "\ud800"})


@pytest.mark.parametrize(
    ("text", "elements", "is_judged"),
    [
        ("value.exists(x, x == -1)", 40_000, True),
        ("value.exists(x, x == -1)", 60_000, False),
        ("value.exists(x, value.exists(y, x * y == -1))", 30, True),
        ("value.exists(x, value.exists(y, x * y == -1))", 60, False),
        ("value.all(x, x > -1) && value.all(y, y > -1)", 40_000, True),
        ("value.map(x, x).exists(y, y == -1)", 200, True),
        ("value.map(x, x).exists(y, y == -1)", 40_000, False),
        ("value.filter(x, x == 1).size() == -1", 40_000, False),
        ("value.exists(x, x in value)", 200, True),
        ("value.exists(x, x in value)", 300, False),
        ("[1, 2].map(x, [3, 4].map(y, x + y)).size() == 9 && value == null", 40_000, False),
        ("value.exists(x, 'a.exists(y, (' == 'b' || x == -1)", 40_000, True),
    ],
)
def test_what_would_hold_the_interpreter_is_not_judged(text: str, elements: int, is_judged: bool) -> None:
    expression = Expression(text)
    values = list(range(elements))
    if is_judged:
        assert expression.holds(lambda name: values) in (True, False)
        return
    began_s = time.monotonic()
    with pytest.raises(Unjudged, match="too many elements"):
        expression.holds(lambda name: values)
    assert time.monotonic() - began_s < 5


def test_long_and_deep_texts_do_not_end_the_process() -> None:
    for text in ("!" * 999 + "true", "1" + "+1" * 490 + " > 0", "-" * 900 + "1 < 2", "[[[[1]]]] == [[[[1]]]]"):
        with contextlib.suppress(BadExpression):
            holds(text)


@pytest.mark.parametrize("text", ["value.a > 5", "has(value.a)", "value['a'] == 1", "value.exists(x, x == 1)"])
def test_a_field_of_what_is_only_text_is_not_judged(text: str) -> None:
    changed = (RECORD | {"value": "text"}).__getitem__
    with pytest.raises(Unjudged, match="the value is text, which has no fields"):
        Expression(text).holds(changed, {"value"})
    assert not Expression(text).holds(changed, {"key"})
    assert not Expression(f"partition == 9 && {text}").holds(changed, {"value"})
    assert Expression("value.startsWith('t')").holds(changed, {"value"})
