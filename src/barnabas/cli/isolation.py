"""The option `--isolation-level` of commands that read records."""

from __future__ import annotations

import click

from barnabas.client.offsets import READ_COMMITTED, READ_UNCOMMITTED

ISOLATION_LEVELS = {"read_uncommitted": READ_UNCOMMITTED, "read_committed": READ_COMMITTED}
"""The words of the option and librdkafka, and the protocol's numbers for them."""

isolation_option = click.option(
    "--isolation-level",
    type=click.Choice(list(ISOLATION_LEVELS)),
    default="read_committed",
    show_default=True,
    help="Whether to skip records of open and aborted transactions.",
)
