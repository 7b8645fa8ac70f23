"""Errors on a terminal: where their lines end."""

from __future__ import annotations

import io
import os
import shutil
import sys

import pytest

from barnabas.words.error_lines import at_spaces, error_line

LINE = "error: group order-app does not exist; did you mean orders-app? (`barnabas group list` shows which exist)"


@pytest.mark.parametrize(
    ("columns", "lines"),
    [
        (105, [LINE]),
        (
            60,
            [
                "error: group order-app does not exist; did you mean",
                "  orders-app? (`barnabas group list` shows which exist)",
            ],
        ),
        (
            40,
            [
                "error: group order-app does not exist;",
                "  did you mean orders-app?",
                "  (`barnabas group list` shows which",
                "  exist)",
            ],
        ),
        (
            20,
            [
                "error: group",
                "  order-app does not",
                "  exist; did you",
                "  mean orders-app?",
                "  (`barnabas group",
                "  list` shows which",
                "  exist)",
            ],
        ),
    ],
)
def test_a_line_is_broken_at_spaces_outside_of_commands(columns: int, lines: list[str]) -> None:
    assert at_spaces(LINE, columns).splitlines() == lines


def test_a_word_that_is_longer_than_a_line_stays_whole() -> None:
    assert at_spaces("a topic/that/is/long `x", 10) == "a\n  topic/that/is/long\n  `x"


def test_the_measure_of_a_word_may_be_another() -> None:
    assert at_spaces("日本 日本", 8) == "日本 日本"
    assert at_spaces("日本 日本", 8, lambda text: 2 * len(text)) == "日本\n  日本"


def test_a_pipe_gets_one_line_and_a_terminal_several(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    monkeypatch.setattr(shutil, "get_terminal_size", lambda: os.terminal_size((12, 9)))
    assert error_line("one two three") == "error: one two three"
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    assert error_line("one two three") == "error: one\n  two three"


def test_what_a_terminal_would_obey_is_escaped_once() -> None:
    """Names from outside are escaped by their commands; what a library echoes of the command line is not."""
    assert error_line(r"topic a\x1b does not exist") == r"error: topic a\x1b does not exist"
    assert error_line("'a\x1b[2J\n2026 INFO' is not a number") == r"error: 'a\x1b[2J 2026 INFO' is not a number"
