import click
import pytest

from barnabas.cli.config import parse_add_config


def test_kafkas_spelling_of_lists() -> None:
    assert parse_add_config("a=1,b=[x,y],c=") == {"a": "1", "b": "x,y", "c": ""}
    assert parse_add_config("cleanup.policy=[compact]") == {"cleanup.policy": "compact"}


@pytest.mark.parametrize("text", ["a", "a=[1", "a=1,b"])
def test_no_settings(text: str) -> None:
    with pytest.raises(click.BadParameter):
        parse_add_config(text)
