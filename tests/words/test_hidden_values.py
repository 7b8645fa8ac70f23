"""Values that no line may show."""

from __future__ import annotations

import logging

import pytest

from barnabas.net.log_lines import LineFormatter
from barnabas.words import hidden_values
from barnabas.words.error_lines import error_line
from barnabas.words.hidden_values import hidden_in, hide_values, without_hidden


@pytest.fixture(autouse=True)
def of_this_test(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hidden_values, "_hidden", set())


def test_longer_values_come_first_and_short_ones_are_words() -> None:
    text = "a hunter2 hunter22, x=12; 123 12"
    assert hidden_in(text, ["hunter2", "hunter22", "12", ""]) == "a [hidden] [hidden], x=[hidden]; 123 [hidden]"


def test_a_line_of_the_process_shows_no_value_that_was_hidden() -> None:
    assert without_hidden("hunter2 12") == "hunter2 12"
    hide_values(["hunter2", "12"])
    assert without_hidden("hunter2 12") == "[hidden] 12"
    assert error_line("bad hunter2") == "error: bad [hidden]"
    try:
        raise ValueError("bad hunter2")
    except ValueError as error:
        raised = (ValueError, error, error.__traceback__)
    record = logging.LogRecord("x", logging.INFO, "", 0, "said %s", ("hunter2",), raised)
    assert "hunter2" not in LineFormatter().format(record)
