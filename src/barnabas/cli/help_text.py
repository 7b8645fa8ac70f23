"""The help of every command, in one layout: short summaries, plain words for numbers, and columns that fit a narrow terminal.

`in_one_layout` gives it to a command and to those within. The commands themselves say nothing about their help's form.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import click

_NARROW = 78
"""The rest of 80 columns; in fewer, the names of options get less room, so that their meaning does not fold at every word."""
_NAMES_WIDTH = 20
_SUMMARY_LENGTH = 45


class HelpText(click.HelpFormatter):
    """Writes lists of options and commands: one short and one long name each, in a column that leaves room for the meaning."""

    def write_dl(self, rows: Iterable[tuple[str, str]], col_max: int = 30, col_spacing: int = 2) -> None:
        shown = [(_main_names(names), meaning) for names, meaning in rows]
        super().write_dl(shown, col_max if self.width >= _NARROW else _NAMES_WIDTH, col_spacing)


def _main_names(names: str) -> str:
    """Return an option's first short and first long name, and its value: `docs/cli.md` has the other spellings."""
    *others, last = names.split(", ")
    name, space, value = last.partition(" ")
    spellings = [*others, name]
    short = [each for each in spellings if not each.startswith("--")]
    long = [each for each in spellings if each.startswith("--")]
    return ", ".join([*short[:1], *long[:1]]) + space + value


class Voice(click.Context):
    """A context whose help has our layout, and whose mistakes know the command that they are about."""

    formatter_class = HelpText

    @contextmanager
    def scope(self, cleanup: bool = True) -> Iterator[click.Context]:
        try:
            with super().scope(cleanup) as context:
                yield context
        except click.UsageError as error:
            # An option without its value: the parser does not say whose.
            error.ctx = error.ctx or self
            raise


class Number(click.ParamType):  # type: ignore[type-arg]  # older versions of click have no argument
    """A number: shown as N; only an error names its bounds."""

    name = "number"

    def __init__(self, bounded: Any) -> None:
        self._bounded = bounded

    def __repr__(self) -> str:
        return f"<Number {self._bounded!r}>"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return self._bounded.convert(value, param, ctx)


def in_one_layout(command: click.Command) -> click.Command:
    """Return the command, changed so that its help and that of the commands within have one layout."""
    command.context_class = Voice
    for parameter in command.params:
        if isinstance(parameter.type, click.types.IntParamType | click.types.FloatParamType):
            parameter.type = Number(parameter.type)
            parameter.metavar = parameter.metavar or "N"
    if isinstance(command, click.Group):
        for within in command.commands.values():
            # click would cut its own summary at the terminal's edge; the formatter folds this one.
            within.short_help = within.short_help or _summary(within.help or "")
            in_one_layout(within)
    return command


def _summary(text: str) -> str:
    """Return the first sentence; of a long one with a colon what stands before it."""
    sentence = " ".join(text.split("\n\n", 1)[0].split()).split(". ")[0].removesuffix(".")
    if len(sentence) > _SUMMARY_LENGTH:
        sentence = sentence.partition(":")[0]
    return f"{sentence}." if sentence else ""
