"""The commands: where each is found, and its line in `barnabas --help`, which `barnabas.main` shows without importing any."""

from typing import NamedTuple


class Command(NamedTuple):
    """A command; `where` is MODULE:ATTRIBUTE."""

    where: str
    help: str


COMMANDS = {
    "topic": Command("barnabas.cli.topic:topic", "Topics: create, list, describe, alter, delete."),
    "produce": Command("barnabas.cli.produce:produce", "Produce records from standard input, a line each."),
    "consume": Command("barnabas.cli.consume:consume", "Print the records of TOPICS."),
    "group": Command(
        "barnabas.cli.group:group",
        "Groups: list, describe with lag, show why they rebalanced, reset offsets, delete.",
    ),
    "txn": Command("barnabas.cli.txn:txn", "Transactions: list, describe, abort, find those that hold readers back."),
    "config": Command("barnabas.cli.config:config", "Settings: describe and alter, of topics, brokers, groups."),
    "verify": Command(
        "barnabas.cli.verify:verify",
        "Check that no record is lost, doubled, torn from its transaction or read too early.",
    ),
    "completion": Command("barnabas.cli.completion:completion", "Print the completion script of a shell."),
}
