"""Commands that are parsed by argparse, completed by click."""

import argparse

import click

from barnabas.cli.argparse_completion import as_click


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
