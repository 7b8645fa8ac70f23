"""The commands: where each is found, and its line in `barnabas --help`, which is shown without importing any."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from barnabas.cli.usage import OneVoice

if TYPE_CHECKING:
    import argparse


class Command(NamedTuple):
    """A command; `where` is MODULE:ATTRIBUTE."""

    where: str
    help: str


COMMANDS = {
    "topic": Command("barnabas.cli.topic:topic", "Topics: create, list, describe, alter, trim, delete."),
    "produce": Command("barnabas.cli.produce:produce", "Produce records from standard input, a line each."),
    "consume": Command("barnabas.cli.consume:consume", "Print the records of TOPICS."),
    "group": Command(
        "barnabas.cli.group:group",
        "Groups: list, describe with lag, show why they rebalanced, reset offsets, delete.",
    ),
    "txn": Command("barnabas.cli.txn:txn", "Transactions: list, describe, abort, find those that hold readers back."),
    "cut": Command("barnabas.cli.cut:cut", "Cuts: named offsets of topics; create, list, show, diff, delete."),
    "cluster": Command("barnabas.cli.cluster:cluster", "The cluster: what it is, and whether it is healthy."),
    "broker": Command("barnabas.cli.broker:broker", "Brokers: list, describe, sizes of their log directories."),
    "quota": Command("barnabas.cli.quota:quota", "Quotas of users, client ids and addresses: list, set, delete."),
    "config": Command("barnabas.cli.config:config", "Settings: describe and alter, of topics, brokers, groups."),
    "verify": Command(
        "barnabas.cli.verify:verify",
        "Check that no record is lost, doubled, torn from its transaction or read too early.",
    ),
    "lake": Command("barnabas.cli.lake:lake", "Tables that are written from topics: audit."),
    "completion": Command("barnabas.cli.completion:completion", "Print the completion script of a shell."),
}


# `barnabas help topic` is `barnabas topic --help`: the caller exchanges the words.
_HELP = {"help": "Show the help of a command."}


class LazyCommands(OneVoice):
    """Lists commands as click knows them without their modules; resolves a name to the real one.

    Args:
        found: the commands of the group.
        elsewhere: the help of the commands that the caller runs by itself.
        parser_of: the parser of such a command, for completion; None if it has none.
    """

    def __init__(
        self,
        found: Mapping[str, Command],
        elsewhere: Mapping[str, str],
        parser_of: Callable[[str], argparse.ArgumentParser | None],
        **attributes: Any,
    ) -> None:
        super().__init__(**attributes)
        self._found = found
        self._parser_of = parser_of
        self._help = {**elsewhere, **{name: command.help for name, command in found.items()}, **_HELP}

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self._help)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        return click.Command(cmd_name, help=self._help[cmd_name]) if cmd_name in self._help else None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name, command, rest = super().resolve_command(ctx, args)
        if name is not None and name in self._found:
            module, _, attribute = self._found[name].where.partition(":")
            command = getattr(import_module(module), attribute)
        elif name is not None and ctx.resilient_parsing and (parser := self._parser_of(name)) is not None:
            command = import_module("barnabas.cli.argparse_completion").as_click(name, parser)
        return name, command, rest
