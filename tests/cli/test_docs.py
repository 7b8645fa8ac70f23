"""docs/cli.md names every command and every option that help shows."""

import re
from pathlib import Path

import click
import pytest

from tests.cli.test_commands import ALL, load

PAGE = (Path(__file__).parents[2] / "docs" / "cli.md").read_text()
NAMED = set(re.findall(r"(?<![\w-])--?[A-Za-z][\w-]*", PAGE))


def command(path: tuple[str, ...]) -> click.Command:
    found = load(path[0])
    for name in path[1:]:
        assert isinstance(found, click.Group)
        found = found.commands[name]
    return found


@pytest.mark.parametrize("path", ALL, ids=" ".join)
def test_everything_is_on_the_page(path: tuple[str, ...]) -> None:
    assert f"barnabas {' '.join(path)}" in PAGE
    options = [each for each in command(path).params if isinstance(each, click.Option) and not each.hidden]
    assert {spelling for option in options for spelling in option.opts} - NAMED == set()
