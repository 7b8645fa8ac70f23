"""The command line of `barnabas start` and `barnabas storage`, in the voice of the other commands.

A mistake in a command line prints the usage and `error: what is wrong`, and exits with 2. A failure prints the second line
alone and exits with 1. The other commands use click, which would double the time of a start.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence
from typing import Any, NoReturn

from barnabas.metadata.config_schema import ConfigError
from barnabas.nearest import did_you_mean

__all__ = ["Parser", "UsageMistake", "print_error"]


class UsageMistake(ConfigError):
    """The command line is wrong; the text is one line that says how."""


def print_error(text: object) -> None:
    """Print a failure on standard error."""
    print(f"error: {text}", file=sys.stderr)


class _Formatter(argparse.HelpFormatter):
    def add_usage(
        self, usage: str | None, actions: Iterable[Any], groups: Iterable[Any], prefix: str | None = None
    ) -> None:
        super().add_usage(usage, actions, groups, "Usage: " if prefix is None else prefix)


class Parser(argparse.ArgumentParser):
    """A parser that names what was probably meant. It takes no abbreviated options."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**{"allow_abbrev": False, "formatter_class": _Formatter, **settings})
        self._optionals.title = "Options"

    def __repr__(self) -> str:
        return f"<Parser {self.prog}>"

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

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            names = [str(choice) for choice in action.choices]
            problem = f"{value} is not one of {', '.join(names)}{did_you_mean(str(value), names)}"
            raise argparse.ArgumentError(action, problem)
