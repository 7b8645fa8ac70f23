"""The topics that a command line names: `NAME…`, Kafka's `--topic NAME`, regular expressions."""

from __future__ import annotations

import re
from collections.abc import Callable

import click

from barnabas.cli.session import complete_topics


def topic_names(command: Callable[..., None]) -> Callable[..., None]:
    """Add NAME… and Kafka's --topic, which may be repeated."""
    command = click.option("--topic", "more", multiple=True, hidden=True)(command)
    return click.argument("names", nargs=-1, metavar="NAME…", shell_complete=complete_topics)(command)


def required(names: tuple[str, ...], more: tuple[str, ...]) -> list[str]:
    """Return the names of a command line, each once.

    Raises:
        UsageError: the command line names no topic.
    """
    found = list(dict.fromkeys([*names, *more]))
    if not found:
        raise click.UsageError("Missing argument 'NAME…'.")
    return found


def whole_name(pattern: str) -> re.Pattern[str]:
    """Return a regular expression of names.

    Raises:
        BadParameter: it is not one.
    """
    try:
        return re.compile(pattern)
    except re.error as error:
        raise click.BadParameter(f"{pattern!r} is not a regular expression: {error}") from None
