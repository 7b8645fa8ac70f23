"""The commands: where each is found, and its line in `barnabas --help`, which is shown without importing any."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from barnabas.cli.help_text import in_one_layout
from barnabas.cli.usage import OneVoice

if TYPE_CHECKING:
    import argparse


class Command(NamedTuple):
    """A command; `where` is MODULE:ATTRIBUTE."""

    where: str
    help: str


# A summary has at most 42 letters, so that the list fits a terminal of 60 columns.
COMMANDS = {
    "topic": Command("barnabas.cli.topic:topic", "Topics: create, list, describe, alter, …"),
    "produce": Command("barnabas.cli.produce:produce", "Produce records, a line each."),
    "generate": Command("barnabas.cli.generate:generate", "Produce made-up records, at a rate."),
    "consume": Command("barnabas.cli.consume:consume", "Print the records of topics."),
    "sql": Command("barnabas.cli.sql:sql", "SQL over topics, with DuckDB."),
    "group": Command("barnabas.cli.group:group", "Groups: lag, rebalances, offsets."),
    "txn": Command("barnabas.cli.txn:txn", "Transactions: list, abort, find the stuck."),
    "deliver": Command("barnabas.cli.deliver:deliver_", "Deliver records at the time in a header."),
    "dlq": Command("barnabas.cli.dlq:dlq", "Dead letters: list, send back, purge."),
    "replay": Command("barnabas.cli.replay:replay", "Send a topic's records to another one."),
    "claims": Command("barnabas.cli.claims:claims", "Payloads of large messages: sweep, audit."),
    "mirror": Command("barnabas.cli.mirror:mirror", "Copy topics and groups to another cluster."),
    "cut": Command("barnabas.cli.cut:cut", "Cuts: named offsets of topics."),
    "spark": Command("barnabas.cli.spark:spark", "Spark queries: how far each is behind."),
    "cluster": Command("barnabas.cli.cluster:cluster", "The cluster: health, nodes, quorum, moves."),
    "adopt": Command("barnabas.adopt.command:adopt", "Take over a cluster of Apache Kafka."),
    "console": Command("barnabas.console.command:console", "Pages about clusters, in a browser."),
    "top": Command("barnabas.console.top:top", "The overview of a cluster, in a terminal."),
    "broker": Command("barnabas.cli.broker:broker", "Brokers: settings, sizes of their logs."),
    "support": Command("barnabas.cli.support:support", "An archive for somebody who helps."),
    "log": Command("barnabas.dump.command:log", "The files of logs: dump."),
    "quota": Command("barnabas.cli.quota:quota", "Quotas of users, clients, addresses."),
    "user": Command("barnabas.cli.user:user", "Users of SCRAM: list, create, delete."),
    "token": Command("barnabas.cli.token:token", "Delegation tokens: create, renew, expire."),
    "acl": Command("barnabas.cli.acl:acl", "Access control lists: who may do what."),
    "config": Command("barnabas.cli.config:config", "Settings of topics, brokers, groups."),
    "perf": Command("barnabas.cli.perf:perf", "Load a cluster: throughput and latency."),
    "plan": Command("barnabas.cli.plan:plan", "Partitions, brokers, disk of a workload."),
    "verify": Command("barnabas.cli.verify:verify", "Check that no record is lost or doubled."),
    "lake": Command("barnabas.cli.lake:lake", "Tables of topics: audit, compact, vacuum."),
    "schemas": Command("barnabas.cli.schemas:schemas", "Schemas: list, get, put, check, delete, …"),
    "registry": Command("barnabas.cli.registry:registry", "A schema registry with Confluent's routes."),
    "cert": Command("barnabas.cli.cert:cert", "Certificates for development."),
    "profile": Command("barnabas.cli.profile:profile", "Named clusters: add, list, use, remove."),
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
        if cmd_name not in self._help:
            return None
        return click.Command(cmd_name, help=self._help[cmd_name], short_help=self._help[cmd_name])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name, command, rest = super().resolve_command(ctx, args)
        if name is not None and name in self._found:
            module, _, attribute = self._found[name].where.partition(":")
            command = in_one_layout(getattr(import_module(module), attribute))
        elif name is not None and ctx.resilient_parsing and (parser := self._parser_of(name)) is not None:
            command = import_module("barnabas.cli.argparse_completion").as_click(name, parser)
        return name, command, rest
