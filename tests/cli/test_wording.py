"""Sentences on one line, and names from outside in them."""

import shlex

import pytest

from barnabas.cli.wording import as_typed, counted, first_few, in_lower_case, listed, were


def test_a_sentence_goes_on_in_lower_case() -> None:
    assert [in_lower_case(each) for each in ("Topic x", "A group", "ISR", "", "x")] == [
        "topic x", "a group", "ISR", "", "x",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "typed"), [("billing-7", "billing-7"), ("a; rm b", "'a; rm b'"), ("-x", "-- -x"), ("it's", "'it'\"'\"'s'")]
)
def test_a_name_from_outside_is_one_word_of_a_command(name: str, typed: str) -> None:
    assert as_typed(name) == typed
    assert shlex.split(as_typed(name))[-1] == name


@pytest.mark.parametrize(
    ("number", "of", "words"),
    [
        (0, None, "no record was"),
        (1, None, "1 record was"),
        (2000, None, "2000 records were"),
        (1, 1, "the record was"),
        (1, 3, "1 of 3 records was"),
        (2, 3, "2 of 3 records were"),
    ],
)
def test_records_and_their_verb(number: int, of: int | None, words: str) -> None:
    assert were(number, of) == words


def test_one_thing_is_not_many() -> None:
    assert [counted(count, "member") for count in (0, 1, 2)] == ["0 members", "1 member", "2 members"]


def test_long_lists_are_shortened_for_people() -> None:
    assert (first_few("abcde"), listed("abcde")) == (list("abcde"), "a, b, c, d, e")
    assert first_few("abcdefg") == ["a", "b", "c", "d", "e", "and 2 more"]
    assert listed("abcdefg") == "a, b, c, d, e and 2 more"
