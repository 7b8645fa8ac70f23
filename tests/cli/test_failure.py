"""A broker's error becomes one line with a hint."""

import pytest

from barnabas.cli.failure import Failure, Quiet, explained, failure_of, report_failures
from barnabas.protocol.errors import ErrorCode, error_for

MISSING = error_for(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "topic t does not exist.\nReally.")


def test_a_message_is_one_line_with_its_hint() -> None:
    line = failure_of(MISSING).format_message()
    assert line == "topic t does not exist. Really (`barnabas topic list` shows which exist)"


def test_the_subject_is_added_only_if_the_message_does_not_name_it() -> None:
    assert failure_of(MISSING, "topic t").message == MISSING.message
    assert failure_of(error_for(ErrorCode.INVALID_CONFIG, "bad"), "topic orders").message == "topic orders: bad"


def test_errors_of_brokers_become_failures() -> None:
    with pytest.raises(Failure, match="does not exist"), explained():
        raise MISSING
    with pytest.raises(ZeroDivisionError), explained():
        raise ZeroDivisionError


def test_all_errors_are_printed_before_the_command_ends(capsys: pytest.CaptureFixture[str]) -> None:
    report_failures([("a", None), ("b", 5)])
    with pytest.raises(Quiet) as raised:
        report_failures([("topic t", MISSING), ("topic u", None), ("x", error_for(ErrorCode.INVALID_CONFIG, "bad"))])
    assert raised.value.exit_code == 1
    first, second = capsys.readouterr().err.splitlines()
    assert first.startswith("error: topic t does not exist")
    assert second.startswith("error: x: bad")
