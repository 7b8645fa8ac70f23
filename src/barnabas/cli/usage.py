"""A wrong command line, in the voice of every other error.

    Usage: barnabas topic list [OPTIONS] [REGEX]…
    Try 'barnabas topic list --help' for help.
    error: no such option: --wid; did you mean --wide?

click finds the mistakes; the words here begin in lower case and end without a full stop, and the exit code is 2. `barnabas start` and
`barnabas storage`, which are parsed without click, say the same (`process.arguments`).
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from typing import Any

import click

from barnabas.cli.help_text import Voice
from barnabas.cli.layout import width_of
from barnabas.cli.wording import in_lower_case
from barnabas.words.error_lines import error_line
from barnabas.words.nearest import did_you_mean
from barnabas.words.requirements import NotInstalled, needed_by

_INTERRUPTED = 130
_OF_COMMANDS = frozenset(
    (
        "-b",
        "--bootstrap-server",
        "--bootstrap-servers",
        "--brokers",
        "--command-config",
        "--profile",
        "--timeout-ms",
        "-o",
        "--output",
        "--wide",
    )
)


class OneVoice(click.Group):
    """A group whose errors, and those of the commands within, have one form."""

    context_class = Voice

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
            with needed_by("this command", "cli"):
                code = super().main(args, prog_name, complete_var, standalone_mode=False, **extra)
        except NotInstalled as missing:
            if not standalone_mode:
                raise
            show(click.ClickException(f"{missing.sentence} ({missing.command})"))
            sys.exit(1)
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
    click.echo(error_line(message_of(error), width_of), err=True)


# click's words, and ours.
_WORDS = (
    (r"^Missing argument '([^']+)'", r"missing argument \1"),
    (r"^Got unexpected extra arguments? \((.*)\)$", r"unexpected argument: \1"),
    (r"^Option '([^']+)' does not take a value$", r"\1 takes no value"),
    (r"is not a valid integer(?: range)?$", "is not a whole number"),
    (r"is not a valid float(?: range)?$", "is not a number"),
    (r"^(\S+) is not in the range x>=(\S+)$", r"\1 is less than \2"),
    (r"^(\S+) is not in the range x>(\S+)$", r"\1 is not more than \2"),
    (r"^(\S+) is not in the range (\S+?)<=x<=(\S+)$", r"\1 is not from \2 to \3"),
    (r"^(?:File|Path|Directory) '(.+)' does not exist$", r"cannot read \1: no such file or directory"),
    (r"^File '(.+)' is a directory$", r"cannot read \1: it is a directory"),
    (r"^Directory '(.+)' is a file$", r"\1 is a file, not a directory"),
    (r"^(?:File|Path|Directory) '(.+)' is not readable$", r"cannot read \1: permission denied"),
)
_CHOICE = re.compile(r"^'(?P<word>.*)' is not one of (?P<names>.+)$")
_UNREADABLE = re.compile(r"^'(?P<file>.+)': (?P<why>[A-Z].*)$")


def message_of(error: click.ClickException) -> str:
    """Return what is wrong, as the rest of a line that begins with `error:`."""
    context = error.ctx if isinstance(error, click.UsageError) else None
    if isinstance(error, click.NoSuchOption):
        if context is not None and isinstance(context.command, click.Group) and error.option_name in _OF_COMMANDS:
            return f"{error.option_name} is an option of each command: write it after the command"
        names = [] if context is None else list(_options(context.command))
        return f"no such option: {error.option_name}{did_you_mean(error.option_name, names)}"
    name = getattr(error, "command_name", None)
    if name is not None and context is not None and isinstance(context.command, click.Group):
        return f"no such command: {name}{did_you_mean(name, context.command.list_commands(context))}"
    if isinstance(error, click.BadOptionUsage) and context is not None and "requires" in error.message:
        return f"{error.option_name} needs a value{_value_of(error.option_name, context)}"
    if isinstance(error, click.BadParameter) and not isinstance(error, click.MissingParameter):
        where = _where(error)
        return f"{where}: {in_our_words(error.message)}" if where else in_our_words(error.message)
    return in_our_words(error.format_message())


def in_our_words(sentence: str) -> str:
    """Return a sentence of click, or a mistake of our own, as the rest of a line."""
    sentence = sentence.rstrip(".")
    for pattern, replacement in _WORDS:
        sentence = re.sub(pattern, replacement, sentence)
    if found := _CHOICE.match(sentence):
        names = [name.strip("'") for name in found["names"].split(", ")]
        return f"'{found['word']}' is not one of {', '.join(names)}{did_you_mean(found['word'], names)}"
    if found := _UNREADABLE.match(sentence):
        return f"cannot read {found['file']}: {in_lower_case(found['why'])}"
    return in_lower_case(sentence)


def _where(error: click.BadParameter) -> str:
    """Return the one name of the parameter that people know best: the first long one."""
    if isinstance(error.param_hint, str):
        return error.param_hint.strip("'")
    if error.param is None:
        return ""
    if isinstance(error.param, click.Option):
        return next((each for each in error.param.opts if each.startswith("--")), error.param.opts[0])
    return re.sub(r"[\[\]…]", "", error.param.human_readable_name)


def _value_of(name: str, context: click.Context) -> str:
    """Return what the value of an option looks like, as its help does."""
    for each in context.command.params:
        if isinstance(each, click.Option) and name in each.opts and (record := each.get_help_record(context)):
            return f": {record[0].rpartition(' ')[2]}"
    return ""


def check_utf8(context: click.Context) -> None:
    """Check the texts of a command line, but not its paths. Python keeps bytes that are not UTF-8 as lone surrogates; nothing encodes them.

    Raises:
        BadParameter: a name or a value is not valid UTF-8, as all text is in Kafka's protocol.
    """
    for each in context.command.params:
        given = context.params.get(each.name or "")
        for value in given if isinstance(given, tuple) else (given,):
            if isinstance(value, str) and not isinstance(each.type, click.Path) and (wrong := not_utf8(value)):
                raise click.BadParameter(wrong, context, each)


def not_utf8(text: str) -> str | None:
    """Return what is wrong with a text of the command line or the environment, None if it is valid UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError:
        typed = text.encode(errors="backslashreplace").decode().replace("\\udc", "\\x")
        return f"'{typed}' is not valid UTF-8"
    return None


def _options(command: click.Command) -> Iterator[str]:
    for each in command.params:
        if isinstance(each, click.Option) and not each.hidden:
            yield from (*each.opts, *each.secondary_opts)
    yield "--help"
