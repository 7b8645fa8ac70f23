"""Durations as arguments of commands: `10s`, `1h30m`, `PT30M`."""

from __future__ import annotations

import click

from barnabas.words.durations import parse_duration_ms
from barnabas.words.printable import printable


class Duration(click.ParamType[int]):
    """A duration such as 1h30m; the command gets milliseconds.

    Args:
        bare_is_seconds: a number without a unit is seconds; else it is refused.
        min_ms: the shortest that is allowed.
    """

    name = "DURATION"

    def __init__(self, *, bare_is_seconds: bool = False, min_ms: int | None = None) -> None:
        self._bare_is_seconds, self._min_ms = bare_is_seconds, min_ms

    def convert(self, value: str | int, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        try:
            is_bare = self._bare_is_seconds and value.isascii() and value.isdigit()
            duration_ms = parse_duration_ms(f"{value}s" if is_bare else value)
        except ValueError as error:
            self.fail(str(error), param, ctx)
        if self._min_ms is not None and duration_ms < self._min_ms:
            self.fail(f"'{printable(value)}' is shorter than {self._min_ms} ms", param, ctx)
        return duration_ms
