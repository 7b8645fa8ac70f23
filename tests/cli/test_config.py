"""`config`: what is read of a command line, and what is sent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from unittest import mock

import click
import pytest
from click.testing import CliRunner, Result

from barnabas.cli.config import parse_add_config
from barnabas.cli.session import Session
from barnabas.client.admin import ConfigResource
from barnabas.main import command_group
from tests.cli.made_up_cluster import MadeUpAdmin


def test_kafkas_spelling_of_lists() -> None:
    assert parse_add_config("a=1,b=[x,y],c=") == {"a": "1", "b": "x,y", "c": ""}
    assert parse_add_config("cleanup.policy=[compact]") == {"cleanup.policy": "compact"}


@pytest.mark.parametrize("text", ["a", "a=[1", "a=1,b"])
def test_no_settings(text: str) -> None:
    with pytest.raises(click.BadParameter):
        parse_add_config(text)


class Cluster(MadeUpAdmin):
    """Remembers the settings that the command changes."""

    def __init__(self) -> None:
        super().__init__()
        self.changed: list[str] = []

    def alter_configs(self, changes: Mapping[ConfigResource, Any], **_: object) -> dict[ConfigResource, Any]:
        self.changed += [each.name for given in changes.values() for each in given]
        return dict.fromkeys(changes)


def alter(*arguments: str) -> tuple[Result, list[str]]:
    cluster = Cluster()
    with mock.patch.object(Session, "admin", return_value=cluster):
        result = CliRunner().invoke(command_group(), ["config", "alter", *arguments], prog_name="barnabas")
    return result, cluster.changed


@pytest.mark.parametrize(
    "arguments",
    [
        ["broker", "1", "--set", "log.retention.mss=9"],
        ["broker", "1", "--set", "log.retention.ms=9", "--add-config", "log.retention.mss=9", "--dry-run"],
        ["broker", "--entity-default", "--append", "log.retention.mss=9"],
    ],
)
def test_a_setting_that_no_broker_knows_is_rejected_with_the_nearest(arguments: list[str]) -> None:
    """A broker would store it, and do nothing with it."""
    result, changed = alter(*arguments)
    assert (result.exit_code, changed) == (1, [])
    assert result.stderr == (
        "error: log.retention.mss is not a setting of Kafka's brokers; did you mean log.retention.ms? (--force sets it all the same)\n"
    )
    assert alter(*arguments, "--force")[0].exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        (["broker", "1", "--set", "my.plugin.setting=1", "--force"], "my.plugin.setting"),
        (["broker", "1", "--delete", "log.retention.ms"], "log.retention.ms"),
        (
            ["broker", "1", "--set", "listener.name.internal.ssl.keystore.type=PEM"],
            "listener.name.internal.ssl.keystore.type",
        ),
        (["group", "g", "--set", "my.setting=1"], "my.setting"),
    ],
)
def test_what_is_sent(arguments: list[str], name: str) -> None:
    """The broker itself rejects the unknown settings of topics and groups."""
    result, changed = alter(*arguments)
    assert (result.exit_code, changed) == (0, [name])
