"""`--isolation-level` has the words of librdkafka, and the protocol's numbers for them."""

from __future__ import annotations

import click
import pytest
from click.testing import CliRunner

from barnabas.cli.isolation import ISOLATION_LEVELS, isolation_option


@click.command()
@isolation_option
def shown(isolation_level: str) -> None:
    click.echo(ISOLATION_LEVELS[isolation_level])


@pytest.mark.parametrize(
    ("arguments", "output"),
    [((), "1\n"), (("--isolation-level", "read_committed"), "1\n"), (("--isolation-level", "read_uncommitted"), "0\n")],
)
def test_committed_records_are_the_default(arguments: tuple[str, ...], output: str) -> None:
    assert CliRunner().invoke(shown, arguments).output == output


def test_another_word_is_refused() -> None:
    assert "'serializable' is not one of" in CliRunner().invoke(shown, ["--isolation-level", "serializable"]).output
