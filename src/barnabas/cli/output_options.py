"""`--output` and `--wide` of the commands that ask no broker; the others have them from `session`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import click

from barnabas.cli.output import OUTPUTS

__all__ = ["output_option", "output_options"]

output_option = click.option(
    "-o",
    "--output",
    type=click.Choice(list(OUTPUTS)),
    default="table",
    show_default=True,
    help="For people or for programs.",
)
_wide_option = click.option("--wide", is_flag=True, help="Every column, also if the terminal is too narrow for it.")


def output_options(function: Callable[..., None]) -> Callable[..., None]:
    """Add `--output` and `--wide`; the command gets them as one `output`."""

    @output_option
    @_wide_option
    @functools.wraps(function)
    def command(output: str, wide: bool, **options: Any) -> None:
        function(output=OUTPUTS[output](wide=wide), **options)

    return command
