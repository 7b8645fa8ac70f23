"""A wrong command line, in the voice of every other error.

    Usage: barnabas topic list [OPTIONS] [REGEX]…
    Try 'barnabas topic list --help' for help.
    error: no such option: --wid; did you mean --wide?

click finds the mistakes; the words here begin in lower case and end without a full stop, and the exit code is 2.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from typing import Any

import click

from barnabas.cli.wording import in_lower_case, on_one_line
from barnabas.nearest import did_you_mean

_INTERRUPTED = 130


class OneVoice(click.Group):
    """A group whose errors, and those of the commands within, have one form."""

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        **extra: Any,
    ) -> Any:
        """Run a command line; exit the process unless `standalone_mode` is false."""
        try:
            code = super().main(args, prog_name, complete_var, standalone_mode=False, **extra)
        except click.Abort:
            if not standalone_mode:
                raise
            sys.exit(_INTERRUPTED)
        except click.ClickException as error:
            if not standalone_mode:
                raise
            show(error)
            sys.exit(error.exit_code)
        if not standalone_mode:
            return code
        sys.exit(code if isinstance(code, int) else 0)


def show(error: click.ClickException) -> None:
    """Print an error on standard error."""
    if type(error).show not in (click.ClickException.show, click.UsageError.show):
        error.show()  # a failure of ours, or the help that click raises for a group without a command
        return
    if isinstance(error, click.UsageError) and error.ctx is not None:
        click.echo(error.ctx.get_usage(), err=True)
        click.echo(f"Try '{error.ctx.command_path} --help' for help.", err=True)
    click.echo(f"error: {on_one_line(message_of(error))}", err=True)


# click's words, and ours: names of options and arguments without quotes, bounds without symbols.
_WORDS = (
    (re.compile(r"'(--?[a-zA-Z][\w-]*)'"), r"\1"),
    (re.compile(r"^Missing argument '([^']+)'"), r"Missing argument \1"),
    (re.compile(r"(\S+) is not in the range x>=(\S+)"), r"\1 is less than \2"),
    (re.compile(r"(\S+) is not in the range x>(\S+)"), r"\1 is not more than \2"),
)


def message_of(error: click.ClickException) -> str:
    """Return what is wrong, as the rest of a line that begins with `error:`."""
    context = error.ctx if isinstance(error, click.UsageError) else None
    if isinstance(error, click.NoSuchOption):
        names = [] if context is None else list(_options(context.command))
        return f"no such option: {error.option_name}{did_you_mean(error.option_name, names)}"
    name = getattr(error, "command_name", None)
    if name is not None and context is not None and isinstance(context.command, click.Group):
        return f"no such command: {name}{did_you_mean(name, context.command.list_commands(context))}"
    message = error.format_message().rstrip(".")
    for pattern, replacement in _WORDS:
        message = pattern.sub(replacement, message)
    return in_lower_case(message)


def _options(command: click.Command) -> Iterator[str]:
    for each in command.params:
        if isinstance(each, click.Option) and not each.hidden:
            yield from (*each.opts, *each.secondary_opts)
    yield "--help"
