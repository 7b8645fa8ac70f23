"""The result of a command that changes something."""

from __future__ import annotations

import pytest

from barnabas.cli.done import Done, failed
from barnabas.cli.failure import Failure, Failures
from barnabas.cli.output import JsonOutput, found_rows
from barnabas.protocol.errors import ErrorCode, error_for

ERROR = error_for(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "topic b does not exist")
OUTCOMES: list[tuple[str, object]] = [("topic a", None), ("topic b", ERROR)]


def test_what_was_done_is_printed_before_what_was_not(capsys: pytest.CaptureFixture[str]) -> None:
    done = Done(found_rows(("TOPIC",), [("a",)]), failed(OUTCOMES), ["a note"])
    with pytest.raises(Failures):
        done.show(JsonOutput())
    printed = capsys.readouterr()
    assert '"topic": "a"' in printed.out
    assert printed.err == "a note\n"
    with pytest.raises(Failure, match="topic b does not exist"):
        done.whole()


def test_without_rows_nothing_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    done = Done(found_rows(("TOPIC",), []))
    done.show(JsonOutput())
    assert capsys.readouterr().out == ""
    assert done.whole() is done
