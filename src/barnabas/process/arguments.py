"""The command line of `barnabas start` and `barnabas storage`, in the voice of the other commands.

A mistake in a command line prints the usage and `error: what is wrong`, and exits with 2. A failure prints the second line
alone and exits with 1. The other commands use click, which would double the time of a start; the help here has the same layout.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Iterator, Sequence
from typing import Any, NoReturn

from barnabas.words.error_lines import error_line
from barnabas.words.nearest import did_you_mean

__all__ = ["Parser", "print_error"]

_WIDEST = 78
_NAMES_WIDTH = 30
_NARROW_NAMES_WIDTH = 20
_HELP_OPTIONS = ("-h", "--help")


def print_error(text: object) -> None:
    """Print a failure on standard error."""
    print(error_line(text), file=sys.stderr)


class Parser(argparse.ArgumentParser):
    """A parser that names what was probably meant. It takes no abbreviated options, and needs a `usage`."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**{"allow_abbrev": False, "add_help": False, **settings})
        self.add_argument(*_HELP_OPTIONS, action="help", help="Show this message and exit.")

    def __repr__(self) -> str:
        return f"<Parser {self.prog}>"

    def format_usage(self) -> str:
        """Return the usage on one line."""
        return f"Usage: {self.usage}\n"

    def format_help(self) -> str:
        """Return the help in the layout of the other commands."""
        width = min(shutil.get_terminal_size().columns - 2, _WIDEST)
        lines = [self.format_usage(), *_wrapped(self.description or "", width, 2)]
        options = [action for action in self._actions if action.option_strings and action.help != argparse.SUPPRESS]
        options.sort(key=lambda action: action.dest == "help")
        lines += ["", "Options:", *_rows([(_names(action), action.help or "") for action in options], width)]
        for action in self._actions:
            if isinstance(action, argparse._SubParsersAction):
                commands = [(each.dest, each.help or "") for each in action._choices_actions]
                lines += ["", "Commands:", *_rows(commands, width)]
        return "\n".join(lines) + "\n"

    def error(self, message: str) -> NoReturn:
        """Print usage and message; exit with 2."""
        self.print_usage(sys.stderr)
        print(f"Try '{self.prog} --help' for help.", file=sys.stderr)
        print_error(message.removeprefix("argument "))
        sys.exit(2)

    def parse_known_args(  # type: ignore[override]  # it has overloads for namespaces, which no command passes
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """Parse, and reject what is not known: an option of an action is suggested by the action's own parser."""
        options, unknown = super().parse_known_args(args, namespace)
        if unknown:
            word = next((word for word in unknown if word.startswith("-")), unknown[0])
            name = word.partition("=")[0]
            if word.startswith("-"):
                self.error(f"no such option: {name}{did_you_mean(name, self._option_string_actions)}")
            self.error(f"unexpected argument: {word}")
        return options, unknown

    def _match_argument(self, action: argparse.Action, arg_strings_pattern: str) -> int:
        try:
            return super()._match_argument(action, arg_strings_pattern)
        except argparse.ArgumentError:
            # It says "expected one argument"; an option is named as it was typed, or by its long name.
            self.error(f"{_long_name(action)} needs a value: {_value(action)}")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is None or value in action.choices:
            return
        names = [str(choice) for choice in action.choices]
        if isinstance(action, argparse._SubParsersAction):
            self.error(f"no such command: {value}{did_you_mean(str(value), names)}")
        self.error(f"{_long_name(action)}: '{value}' is not one of {', '.join(names)}{did_you_mean(str(value), names)}")


def _long_name(action: argparse.Action) -> str:
    return next((name for name in action.option_strings if name.startswith("--")), action.dest)


def _value(action: argparse.Action) -> str:
    """Return what an option's value looks like."""
    if action.choices is not None:
        return f"[{'|'.join(map(str, action.choices))}]"
    return str(action.metavar or action.dest.upper())


def _names(action: argparse.Action) -> str:
    """Return the short and the first long name of an option, and its value."""
    short = [name for name in action.option_strings if not name.startswith("--")]
    names = ", ".join([*short[:1], _long_name(action)])
    return names if action.nargs == 0 else f"{names} {_value(action)}"


def _rows(rows: Sequence[tuple[str, str]], width: int) -> Iterator[str]:
    """Yield names with their meaning beside them, or below if they are long."""
    widest = _NAMES_WIDTH if width >= _WIDEST else _NARROW_NAMES_WIDTH
    column = min(max(len(names) for names, _ in rows), widest) + 4
    for names, meaning in rows:
        lines = _wrapped(meaning, width, column)
        if lines and len(names) + 4 <= column:
            yield f"  {names}".ljust(column) + lines.pop(0)[column:]
        else:
            yield f"  {names}"
        yield from lines


def _wrapped(text: str, width: int, indent: int) -> list[str]:
    import textwrap  # a start has no use for it

    return textwrap.wrap(text, width, initial_indent=" " * indent, subsequent_indent=" " * indent)
