"""The broker's own log as JSON."""

from __future__ import annotations

import json
import logging
import sys
from typing import Any

import pytest

from barnabas.net.json_log_lines import JsonFormatter, log_what_ends_the_process
from barnabas.words import hidden_values
from tests.net.test_log_lines import HOSTILE


@pytest.fixture
def secret(monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(hidden_values, "_hidden", {"hunter2-hunter2"})
    return "hunter2-hunter2"


def record(message: str, *args: object, error: BaseException | None = None) -> logging.LogRecord:
    exc_info = None if error is None else (type(error), error, error.__traceback__)
    made = logging.LogRecord("barnabas.group", logging.INFO, __file__, 1, message, args, exc_info)
    made.created = 1_795_926_667.4129
    return made


def formatted(made: logging.LogRecord, node_id: int | None = None) -> dict[str, Any]:
    formatter = JsonFormatter()
    formatter.node_id = node_id
    line = formatter.format(made)
    assert line.isprintable()
    assert line.isascii()
    found: dict[str, Any] = json.loads(line)
    return found


def test_an_event_is_an_object() -> None:
    made = record("group %s: rebalance", "größer")
    assert formatted(made) == {
        "time": "2026-11-29T04:31:07.412Z",
        "level": "INFO",
        "logger": "barnabas.group",
        "message": "group größer: rebalance",
    }
    assert formatted(made, 2)["node"] == 2
    assert repr(JsonFormatter()) == "<JsonFormatter node=None>"


def test_no_name_begins_a_line_or_drives_a_terminal() -> None:
    assert formatted(record("%s", HOSTILE + "\x7f"))["message"] == HOSTILE + "\x7f"


def test_a_traceback_is_in_the_object_without_secrets(secret: str) -> None:
    try:
        raise ValueError(f"password {secret}")
    except ValueError as error:
        found = formatted(record("failed with %s", secret, error=error))
    assert found["message"] == "failed with [hidden]"
    assert found["exception"].startswith("Traceback (most recent call last):\n  File ")
    assert found["exception"].endswith("\nValueError: password [hidden]")


def test_a_stack_is_in_the_object() -> None:
    made = record("m")
    made.stack_info = "Stack\nof frames"
    assert formatted(made)["stack"] == "Stack\nof frames"


def test_a_long_name_does_not_fill_the_log() -> None:
    assert len(formatted(record("%s", "x" * 30_000))["message"]) < 4100


def test_an_exception_that_ends_the_process_is_an_event(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)
    log_what_ends_the_process()
    error = MemoryError("too much")
    sys.excepthook(MemoryError, error, None)
    (found,) = caplog.records
    assert formatted(found)["message"] == "The process ends: MemoryError"
    assert formatted(found)["exception"] == "MemoryError: too much"
