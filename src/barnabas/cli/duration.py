"""Durations as arguments of commands: `10s`, `1h30m`, `PT30M`."""

from __future__ import annotations

import click

from barnabas.words.durations import parse_duration_ms


class Duration(click.ParamType[int]):
    """A duration such as 1h30m; the command gets milliseconds."""

    name = "DURATION"

    def convert(self, value: str | int, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        try:
            return parse_duration_ms(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)
