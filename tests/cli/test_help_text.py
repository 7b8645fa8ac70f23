"""The layout of help: at 60 and 80 columns, of every command."""

from __future__ import annotations

import re

import click
import pytest
from click.testing import CliRunner, Result

from barnabas.cli.commands import COMMANDS
from barnabas.cli.help_text import HelpText, Voice, in_one_layout
from barnabas.main import command_group
from tests.cli.test_commands import ALL

GROUPS = sorted({path[:-1] for path in ALL if len(path) > 1})


def help_of(path: tuple[str, ...], columns: int) -> Result:
    return CliRunner().invoke(command_group(), [*path, "--help"], terminal_width=columns - 2, prog_name="barnabas")


@pytest.mark.parametrize("columns", [60, 80])
@pytest.mark.parametrize("path", [(), *GROUPS, *ALL], ids=" ".join)
def test_no_help_is_wider_than_the_terminal(path: tuple[str, ...], columns: int) -> None:
    lines = help_of(path, columns).stdout.splitlines()
    # A command to type stays on its line, and no line is longer than a terminal usually is.
    assert [line for line in lines if len(line) > (80 if "barnabas " in line else columns)] == []


@pytest.mark.parametrize("path", [(), *GROUPS, *ALL], ids=" ".join)
def test_numbers_and_summaries_are_in_plain_words(path: tuple[str, ...]) -> None:
    text = help_of(path, 80).stdout
    assert re.findall(r"INTEGER|FLOAT|RANGE|x>|<=x|\.\.\.$", text.replace("[ARGS]...", ""), re.MULTILINE) == []


def test_the_list_of_commands_fits_a_narrow_terminal() -> None:
    lines = help_of((), 60).stdout.partition("Commands:\n")[2].splitlines()
    assert {line.split()[0] for line in lines} == {"start", "storage", *COMMANDS, "demo", "help"}


def test_a_summary_is_whole_and_folds() -> None:
    @click.group()
    def group() -> None:
        pass

    @group.command()
    def one() -> None:
        """Show why a thing is as it is: its causes, its clients, its durations."""

    @group.command()
    def two() -> None:
        """Check every record of every topic, and say which are missing or came twice. Takes long."""

    context = Voice(in_one_layout(group), terminal_width=58)
    assert group.get_help(context).partition("Commands:\n")[2] == (
        "  one  Show why a thing is as it is.\n"
        "  two  Check every record of every topic, and say which\n"
        "       are missing or came twice."
    )


def test_an_option_shows_one_short_and_one_long_name() -> None:
    formatter = HelpText(width=78)
    formatter.write_dl([("-n, --num, --max-messages, -c N", "How many."), ("--all", "All.")])
    assert formatter.getvalue() == "-n, --num N  How many.\n--all        All.\n"


def test_the_layout_may_be_given_twice() -> None:
    @click.command()
    @click.option("--size", type=click.IntRange(min=1))
    def command(size: int) -> None:
        click.echo(size + 1)

    for _ in range(2):
        assert CliRunner().invoke(in_one_layout(command), ["--size", "3"]).output == "4\n"
