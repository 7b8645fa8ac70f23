"""A broker's error becomes one line with a hint."""

import re
import shlex

import pytest
from click.testing import CliRunner

from barnabas.cli.failure import Failure, Quiet, explained, failure_of, report_failures
from barnabas.client.errors import RequestTimedOut
from barnabas.main import command_group
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
    with pytest.raises(Quiet) as raised, explained():
        report_failures([("topic t", MISSING), ("topic u", None), ("x", error_for(ErrorCode.INVALID_CONFIG, "bad"))])
    assert raised.value.exit_code == 1
    first, second = capsys.readouterr().err.splitlines()
    assert first.startswith("error: topic t does not exist")
    assert second.startswith("error: x: bad")


@pytest.mark.parametrize(
    ("code", "message", "subject", "line"),
    [
        (MISSING.code, "topic ordrs does not exist", None, "topic ordrs does not exist; did you mean orders?"),
        (MISSING.code, "topic ordrs does not exist; did you mean orders?", None, "topic ordrs does not exist; did you mean orders?"),
        (MISSING.code, "The topic 'ordrs' does not exist.", None, "the topic 'ordrs' does not exist; did you mean orders?"),
        (MISSING.code, "Unknown topic or partition", "topic ordrs", "topic ordrs: unknown topic or partition; did you mean orders?"),
        (MISSING.code, "Unknown topic or partition", "topic orders", "topic orders: unknown topic or partition"),
        (ErrorCode.GROUP_ID_NOT_FOUND, "Group my bilings not found.", None, "group my bilings not found; did you mean my billings?"),
        (ErrorCode.GROUP_ID_NOT_FOUND, "group x does not exist", "group x", "group x does not exist"),
        (ErrorCode.TRANSACTIONAL_ID_NOT_FOUND, "Transactional id not found.", "transactional id biling-7",
         "transactional id biling-7 does not exist; did you mean billing-7?"),
        (ErrorCode.INVALID_CONFIG, "Unknown topic config name: retention.mss", "topic t",
         "topic t: a topic has no setting retention.mss; did you mean retention.ms?"),
    ],
)  # fmt: skip
def test_a_mistyped_name_gets_the_nearest_one(code: ErrorCode, message: str, subject: str | None, line: str) -> None:
    names = {"topic": ["orders", "payments"], "group": ["my billings"], "transactional id": ["billing-7"]}
    failure = failure_of(error_for(code, message), subject).with_nearest(names.__getitem__)
    assert failure.format_message().rpartition(" (`")[0] == line


@pytest.mark.parametrize(
    ("subject", "hint"),
    [
        ("topic t", "`barnabas topic configs` lists names and defaults"),
        ("broker 1", "`barnabas config describe broker --all 1` lists names and values"),
        ("group a; rm b", "`barnabas config describe group --all 'a; rm b'` lists names and values"),
        ("all brokers", "`barnabas config describe broker --all` lists names and values"),
    ],
)
def test_a_wrong_setting_says_where_the_right_ones_are(subject: str, hint: str) -> None:
    assert failure_of(error_for(ErrorCode.INVALID_CONFIG, "bad"), subject).hint == hint


@pytest.mark.parametrize("code", [code for code in ErrorCode if code is not ErrorCode.NONE], ids=lambda code: code.name)
def test_every_command_in_a_hint_is_one_to_type(code: ErrorCode) -> None:
    for subject in ("topic t", "group g", "broker 1"):
        hint = failure_of(error_for(code), subject).hint or ""
        for command in re.findall(r"`barnabas (.+?)`", hint):
            if command == "start --data-dir DIR":
                continue
            result = CliRunner().invoke(command_group(), [*shlex.split(command), "-b", "127.0.0.1:1"])
            assert result.exit_code == (0 if command == "topic configs" else 1), result.output
            assert "Usage" not in result.output


def test_a_broker_that_waited_for_the_controller_in_vain_is_a_broker() -> None:
    mine = failure_of(RequestTimedOut("127.0.0.1:9 did not answer in time")).hint or ""
    theirs = (
        failure_of(error_for(ErrorCode.REQUEST_TIMED_OUT, "the controller does not answer: nobody leads")).hint or ""
    )
    assert "check that the address is a broker's" in mine
    assert theirs == failure_of(error_for(ErrorCode.NOT_CONTROLLER, "the cluster has no controller now")).hint
    assert "majority of the controllers" in theirs


def test_an_error_line_cannot_be_forged() -> None:
    failure = Failure("group g\x1b[2J\n2026 INFO forged\u202e not found", "see C:\\x")
    assert failure.format_message() == r"group g\x1b[2J 2026 INFO forged\u202e not found (see C:\x)"
