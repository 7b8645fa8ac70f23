"""Commands that are parsed by argparse, completed by click."""

import argparse

import click
import pytest
from click.shell_completion import BashComplete

from barnabas.cli.argparse_completion import as_click
from barnabas.main import command_group


def completed(*words: str) -> list[str]:
    *before, incomplete = words
    complete = BashComplete(command_group(), {}, "barnabas", "_X")
    return [each.value for each in complete.get_completions(list(before), incomplete)]


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("start --data", ["--data-dir"]),
        ("start --log-level w", ["warning"]),
        ("start --set log.retention.h", ["log.retention.hours="]),
        ("start --set a=1 --se", ["--set"]),
        ("storage form", ["format"]),
        ("storage format --ignore", ["--ignore-formatted"]),
    ],
)
def test_start_and_storage(line: str, found: list[str]) -> None:
    assert completed(*line.split()) == found


def test_a_parser_becomes_a_command() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("file", nargs="?", metavar="FILE")
    parser.add_argument("-q", "--quiet", action="store_true", help="say less")
    parser.add_argument("--old", help=argparse.SUPPRESS)
    command = as_click("run", parser)
    file, quiet = command.params
    assert isinstance(file.type, click.Path)
    assert isinstance(quiet, click.Option)
    assert (quiet.opts, quiet.is_flag, quiet.help) == (["-q", "--quiet"], True, "say less")
