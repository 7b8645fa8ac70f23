"""Nothing that a terminal or a log obeys leaves `printable`, and different texts stay different."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.words.printable import on_one_line, printable


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("orders-app", "orders-app"),
        ("Ångström 🦊", "Ångström 🦊"),
        ("a\nb\r\tc", "a\\nb\\r\\tc"),
        ("\x1b]0;owned\x07\x1b[2J", "\\x1b]0;owned\\x07\\x1b[2J"),
        ("\x9b31m\x7f", "\\x9b31m\\x7f"),
        ("user\u202egpj", "user\\u202egpj"),
        ("a\u2028b", "a\\u2028b"),
        ("a\\nb", "a\\\\nb"),
        ("\U000e0001", "\\U000e0001"),
        ("\udc80", "\\udc80"),
    ],
)
def test_what_a_terminal_would_obey_is_escaped(text: str, expected: str) -> None:
    assert printable(text) == expected


@given(st.text(), st.text())
def test_different_texts_stay_different_and_nothing_is_obeyed(one: str, other: str) -> None:
    assert (printable(one) == printable(other)) == (one == other)
    assert printable(one).isprintable()


def test_a_text_is_one_line_that_a_terminal_does_not_obey() -> None:
    assert on_one_line("group g\x1b[2J\n2026 INFO\u202e, in C:\\x") == r"group g\x1b[2J 2026 INFO\u202e, in C:\x"
