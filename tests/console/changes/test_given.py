"""The fields of a form."""

from __future__ import annotations

import pytest

from barnabas.console.changes.given import BadForm, Given
from barnabas.console.page import Field


@pytest.mark.parametrize(("text", "number"), [("", None), (" 7 ", 7), ("-3", -3), ("007", 7)])
def test_numbers(text: str, number: int | None) -> None:
    assert Given({"count": text}).number("count", "the count", least=-5) == number


@pytest.mark.parametrize("text", ["x", "1.5", "1e3", "٣", "--1", "-", "9" * 5000, "<script>", "0x10"])
def test_what_is_not_a_number(text: str) -> None:
    with pytest.raises(BadForm, match=r"^the count is not a whole number: ") as caught:
        Given({"count": text}).number("count", "the count")
    assert len(str(caught.value)) < 100


def test_numbers_that_are_too_small_or_missing() -> None:
    with pytest.raises(BadForm, match=r"^the count must be at least 1, not 0$"):
        Given({"count": "0"}).number("count", "the count", least=1)
    with pytest.raises(BadForm, match=r"^the count is missing$"):
        Given({"count": " "}).required_number("count", "the count")


def test_lines_and_pairs() -> None:
    given = Given({"set": "a=1\n\n b = x=y \nc=\n"})
    assert given.lines("set") == ["a=1", " b = x=y ", "c="]
    assert given.pairs("set") == {"a": "1", "b": "x=y", "c": ""}
    for line in ("=1", "a", "<b>"):
        with pytest.raises(BadForm, match=f"^“{line}” is not NAME=VALUE$"):
            Given({"set": line}).pairs("set")


def test_choices_and_boxes() -> None:
    given = Given({"how": "b", "box": "1", "other": "yes"})
    assert given.choice("how", "the way", ["a", "b"]) == "b"
    assert (given.is_ticked("box"), given.is_ticked("other")) == (True, False)
    with pytest.raises(BadForm, match=r"^the way must be one of a$"):
        given.choice("how", "the way", ["a"])


def test_the_audit_log_has_no_secret() -> None:
    fields = [
        Field("name", ""),
        Field("value", "", is_private=True),
        Field("password", "", kind="secret"),
        Field("x", ""),
    ]
    given = Given({"name": "n", "value": "abc", "password": "p", "unknown": "u"})
    assert given.for_audit(fields) == {"name": "n", "value": "(3 characters)"}


def test_numbers_that_no_request_can_carry() -> None:
    with pytest.raises(BadForm, match=r"^the count must be at most 2147483647, not 2147483648$"):
        Given({"count": "2147483648"}).number("count", "the count")
