"""The command line of `start` and `storage`: usage, errors and exit codes in the voice of the other commands."""

from __future__ import annotations

import os
from unittest import mock

import click
import pytest

from barnabas.cli.help_text import Voice, in_one_layout
from barnabas.process.arguments import Parser, print_error


def parser() -> Parser:
    found = Parser(prog="barnabas x", usage="barnabas x [OPTIONS]", description="Do x.")
    found.add_argument("--data-dir", metavar="DIR")
    found.add_argument("--log-level", choices=("debug", "info"))
    return found


def parser_of_actions() -> Parser:
    found = Parser(prog="barnabas x", usage="barnabas x ACTION [OPTIONS]")
    actions = found.add_subparsers(dest="action", metavar="ACTION", prog="barnabas x")
    format_ = actions.add_parser("format", usage="barnabas x format [OPTIONS]", help="Format it.")
    format_.add_argument("--cluster-id")
    return found


@pytest.mark.parametrize(
    ("words", "usage", "error"),
    [
        (["--data-dr", "d"], "x [OPTIONS]", "no such option: --data-dr; did you mean --data-dir?"),
        (["--data-dr=d"], "x [OPTIONS]", "no such option: --data-dr; did you mean --data-dir?"),
        (["--data", "d"], "x [OPTIONS]", "no such option: --data; did you mean --data-dir?"),
        (["--zzz"], "x [OPTIONS]", "no such option: --zzz"),
        (["--log-level", "inof"], "x [OPTIONS]", "--log-level: 'inof' is not one of debug, info; did you mean info?"),
        (["--log-level", "loud"], "x [OPTIONS]", "--log-level: 'loud' is not one of debug, info"),
        (["--data-dir"], "x [OPTIONS]", "--data-dir needs a value: DIR"),
        (["more"], "x [OPTIONS]", "unexpected argument: more"),
        (["fromat"], "x ACTION [OPTIONS]", "no such command: fromat; did you mean format?"),
        (
            ["format", "--clustr-id", "i"],
            "x format [OPTIONS]",
            "no such option: --clustr-id; did you mean --cluster-id?",
        ),
        (["format", "more"], "x format [OPTIONS]", "unexpected argument: more"),
    ],
)
def test_a_mistake_prints_usage_and_one_line(
    words: list[str], usage: str, error: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as end:
        (parser_of_actions() if "ACTION" in usage or "format" in usage else parser()).parse_args(words)
    assert end.value.code == 2
    program = "barnabas x format" if "format" in usage else "barnabas x"
    printed = capsys.readouterr()
    assert (printed.out, printed.err) == (
        "",
        f"Usage: barnabas {usage}\nTry '{program} --help' for help.\nerror: {error}\n",
    )


def test_help_has_the_layout_of_the_other_commands(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The same options in click's hands look the same: names in one column, meanings in the other, at most 80 columns."""
    found = parser()
    found.add_argument(
        "-s", "--set", "--override", metavar="KEY=VALUE", help="A setting of the broker; repeat this option."
    )
    names = ("-s", "--set", "--override")
    options = [
        click.Option(["--data-dir"], metavar="DIR"),
        click.Option(["--log-level"], type=click.Choice(["debug", "info"])),
        click.Option(names, metavar="KEY=VALUE", help="A setting of the broker; repeat this option."),
    ]
    twin = in_one_layout(click.Command("x", params=options, help="Do x."))
    for columns in (60, 80, 120):
        monkeypatch.setenv("COLUMNS", str(columns))
        context = Voice(twin, info_name="barnabas x", help_option_names=["-h", "--help"])
        assert found.format_help() == twin.get_help(context) + "\n"


def test_help_lists_the_commands_within(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        parser_of_actions().parse_args(["--help"])
    assert end.value.code == 0
    assert capsys.readouterr().out.endswith("\nCommands:\n  format  Format it.\n")


def test_what_is_right_is_parsed() -> None:
    options = parser().parse_args(["--data-dir", "d", "--log-level", "info"])
    assert (options.data_dir, options.log_level) == ("d", "info")
    options = parser_of_actions().parse_args(["format", "--cluster-id", "c"])
    assert (options.action, options.cluster_id) == ("format", "c")


def test_a_failure_is_broken_at_spaces_on_a_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    print_error("data is in use (stop that broker)")
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setattr("shutil.get_terminal_size", lambda: os.terminal_size((30, 24)))
    monkeypatch.setattr("os.get_terminal_size", mock.Mock(side_effect=OSError))
    print_error("data is in use (stop that broker)")
    assert capsys.readouterr().err == (
        "error: data is in use (stop that broker)\nerror: data is in use (stop\n  that broker)\n"
    )
