"""The options of commands that ask no broker."""

from __future__ import annotations

import json

import click
import pytest
from click.testing import CliRunner

from barnabas.cli.output import Output
from barnabas.cli.output_options import output_options


@click.command()
@output_options
def listing(output: Output) -> None:
    output.table(("NAME",), [("orders",)])


@pytest.mark.parametrize(
    ("options", "printed"), [((), "NAME\norders\n"), (("--wide",), "NAME\norders\n"), (("-o", "json"), None)]
)
def test_the_command_gets_one_output(options: tuple[str, ...], printed: str | None) -> None:
    stdout = CliRunner().invoke(listing, options).stdout
    assert stdout == printed if printed else json.loads(stdout) == [{"name": "orders"}]


def test_another_output_is_a_mistake() -> None:
    assert CliRunner().invoke(listing, ["-o", "xml"]).exit_code == 2
