"""The `barnabas` command: finds the command that was named and imports little else.

`start` and `storage` go straight to `process.commands`, past click and rich: a broker is started often, and these two libraries
would take a third of its start. Every other command is imported when it is called; `--help` and completion list the commands from
a table (`cli.commands`, and `demo`), so a command's own module imports what it needs at its top.

A closed standard input reads as an empty one; a closed standard output discards everything. An output that cannot be written (a full
disk behind `>`) is one line and exit code 1, as every other failure; a reader that closed the pipe (`| head`) is exit code 1 alone.

Ctrl-C before a command runs ends the process with exit code 130 and without a word.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, NoReturn

from barnabas.version import VERSION, commit
from barnabas.words.error_lines import error_line

if TYPE_CHECKING:
    import argparse

    import click

__all__ = ["main"]

_SERVER = {
    "start": "Run one node, or a cluster on this machine.",
    "storage": "Format or describe a data directory.",
}
_INTERRUPTED = 130
_PARSERS = {
    "start": "barnabas.process.commands:_start_parser",
    "storage": "barnabas.process.storage_commands:_parser",
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line; exits the process."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if given[:1] == ["help"]:
        given = [*given[1:], "--help"]
    if given and given[0] in _SERVER:
        _end_quietly_when_interrupted()
        from barnabas.process import commands

        if given[1:] == ["help"] and not os.path.exists("help"):
            given[1] = "--help"
        sys.exit(commands.run(given[0], given[1:]))
    _open_closed_streams()
    try:
        command_group().main(args=given, prog_name="barnabas")
    except KeyboardInterrupt:
        sys.exit(_INTERRUPTED)
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        sys.stderr.write(f"{error_line(f'{where}{error.strerror or error}')}\n")
        # The interpreter would try to write the rest of the buffer at exit, and print a traceback.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)


def _end_quietly_when_interrupted() -> None:
    """Let SIGINT end the process, until the broker has its own handler; an import would answer it with a traceback.

    Nothing is open yet that an end could harm. A caller that ignores SIGINT still does.
    """
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _end)


def _end(*_: object) -> NoReturn:
    os._exit(_INTERRUPTED)


def _open_closed_streams() -> None:
    """Open standard streams that the caller closed (`<&-`, `>&-`); Python has None for them."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115


def _parser_of(name: str) -> argparse.ArgumentParser | None:
    """Return the parser of a command that does without click; None if it is another."""
    if name not in _PARSERS:
        return None
    module, _, attribute = _PARSERS[name].partition(":")
    parser: argparse.ArgumentParser = getattr(import_module(module), attribute)()
    return parser


def command_group() -> click.Group:
    """Return the click group of all commands."""
    import click

    from barnabas.cli.commands import COMMANDS, Command, LazyCommands

    demo = Command("barnabas.demo.command:demo", "Watch a shop's orders flow into Spark.")
    group = LazyCommands(
        {**COMMANDS, "demo": demo},
        _SERVER,
        _parser_of,
        name="barnabas",
        help="A commit log that speaks Apache Kafka's protocol.",
        context_settings={"help_option_names": ["-h", "--help"]},
        no_args_is_help=True,
    )
    group.params.append(
        click.Option(
            ["--version"],
            is_flag=True,
            is_eager=True,
            expose_value=False,
            callback=_show_version,
            help="Show the version and exit.",
        )
    )
    return group


def _show_version(context: click.Context, _: click.Parameter, is_asked: bool) -> None:
    if not is_asked or context.resilient_parsing:
        return
    built_from = commit()
    sys.stdout.write(f"barnabas, version {VERSION}{f' (commit {built_from})' if built_from else ''}\n")
    context.exit()


if __name__ == "__main__":
    main()
