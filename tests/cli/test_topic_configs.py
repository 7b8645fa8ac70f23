"""`barnabas topic configs` asks no broker."""

import json

from click.testing import CliRunner, Result

from barnabas.main import command_group


def run(*arguments: str) -> Result:
    return CliRunner().invoke(command_group(), ["topic", "configs", *arguments, "-b", "127.0.0.1:1"])


def test_every_setting_has_its_meaning() -> None:
    found = json.loads(run("-o", "json").stdout)
    assert all(each["documentation"] for each in found)
    names = [each["key"] for each in found]
    assert names == sorted(names)
    assert "retention.ms" in names
    assert "internal.segment.bytes" not in names


def test_only_those_that_are_named() -> None:
    (found,) = json.loads(run("cleanup.policy", "-o", "json").stdout)
    assert (found["type"], found["default"]) == ("list", "delete")


def test_a_mistyped_one() -> None:
    result = run("retention.mss")
    assert result.exit_code == 1
    assert result.stderr.startswith("error: a topic has no setting retention.mss; did you mean retention.ms?")
