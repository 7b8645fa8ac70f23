"""A peer's expression is RE2's, matches the whole text, and is bounded."""

from __future__ import annotations

import pytest

from barnabas.regular_expressions import COSTLY_MAX, LENGTH_MAX, InvalidExpression, compiled


def test_the_whole_text_has_to_match() -> None:
    expression = compiled("t|u")
    assert [text for text in ("t", "u", "tu", "at", "t\n", "") if expression.matches(text)] == ["t", "u"]
    assert repr(expression) == "<RegularExpression t|u>"
    assert compiled(r"\pL+").matches("abcé")


@pytest.mark.parametrize("text", ["(", "(?=a)", r"(a)\1", "a{2,1}", "*", "a{1001}"])
def test_what_re2_does_not_know_is_invalid(text: str) -> None:
    with pytest.raises(InvalidExpression, match=r"\w"):
        compiled(text)


def test_no_expression_backtracks() -> None:
    expression = compiled("(a+)+$")
    assert not expression.matches("a" * 30_000 + "!")
    assert expression.matches("a" * 30_000)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("a" * (LENGTH_MAX + 1), "it has 8193 characters, and the limit is 8192"),
        (r"\pL" * (COSTLY_MAX + 1), "it has more than 256 counted repetitions and Unicode classes"),
        ("(a?){9}" * (COSTLY_MAX + 1), "it has more than 256 counted repetitions and Unicode classes"),
        ("(?:.?.?.?.?.?.?.?.?.?.?.?.?.?.?.?){800}", "pattern too large - compile failed"),
    ],
    ids=["long", "classes", "repetitions", "program"],
)
def test_an_expression_is_bounded(text: str, reason: str) -> None:
    with pytest.raises(InvalidExpression) as raised:
        compiled(text)
    assert str(raised.value) == reason


def test_a_long_choice_of_names_is_within_the_bounds() -> None:
    names = [f"orders-of-the-region-{number:04}" for number in range(300)]
    expression = compiled("|".join(names))
    assert all(expression.matches(name) for name in names)
    assert not expression.matches("orders-of-the-region-0300")
