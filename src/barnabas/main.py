"""The `barnabas` command: finds the command that was named and imports nothing else. Shell.

`start` and `storage` go straight to `server.commands`, past click and rich: a broker is started often, and these two libraries
would take a third of its start. Every other command lives behind a click group that imports it when it is called;
`cli.commands` names those of the tools, `demo` is its own.

A closed standard input reads as an empty one, a closed standard output takes everything. What cannot be written (a full disk
behind `>`) is one line and exit code 1, as every other failure; so is a reader that went away (`| head`), without a line.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import click

__all__ = ["main"]

_SERVER = {
    "start": "Run one node: a broker and its controller.",
    "storage": "Format or describe a data directory.",
}
_OTHERS = {"demo": "barnabas.demo.command:demo"}


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line; exits the process."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if given and given[0] in _SERVER:
        from barnabas.server import commands

        sys.exit(commands.run(given[0], given[1:]))
    _open_closed_streams()
    try:
        _group().main(args=given, prog_name="barnabas")
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        sys.stderr.write(f"error: {where}{error.strerror or error}\n")
        # What the buffer still holds would fail once more when the interpreter ends, and say so at length.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)


def _open_closed_streams() -> None:
    """Python has None for a standard stream that the caller closed (`<&-`, `>&-`)."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115


def _group() -> click.Group:
    """The click group of all commands; each is imported when it is called or its help is asked for."""
    import click

    from barnabas.cli.commands import COMMANDS

    found = {**COMMANDS, **_OTHERS}

    class Commands(click.Group):
        def list_commands(self, ctx: click.Context) -> list[str]:
            return [*_SERVER, *found]

        def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
            if cmd_name in _SERVER:
                return _stand_in(cmd_name)
            where = found.get(cmd_name)
            if where is None:
                return None
            module, _, attribute = where.partition(":")
            command: click.Command = getattr(import_module(module), attribute)
            return command

    from importlib.metadata import version

    group = Commands(
        name="barnabas",
        help="A distributed commit log that speaks Apache Kafka's protocol.",
        context_settings={"help_option_names": ["-h", "--help"]},
        no_args_is_help=True,
    )
    return click.version_option(version("barnabas"), prog_name="barnabas")(group)


def _stand_in(name: str) -> click.Command:
    """A server command as the group lists it; it hands everything on."""
    import click

    def run(rest: tuple[str, ...]) -> Any:
        from barnabas.server import commands

        sys.exit(commands.run(name, list(rest)))

    return click.Command(
        name,
        callback=run,
        help=_SERVER[name],
        params=[click.Argument(["rest"], nargs=-1, type=click.UNPROCESSED)],
        context_settings={"ignore_unknown_options": True, "allow_extra_args": True, "help_option_names": []},
    )


if __name__ == "__main__":
    main()
