"""`barnabas top`: the overview of a cluster in a terminal."""

from __future__ import annotations

import sys
import time
from importlib import import_module
from pathlib import Path

import click

from barnabas.cli.failure import Failure
from barnabas.cli.output import OUTPUTS
from barnabas.cli.progress import on_terminal
from barnabas.cli.session import Session, bootstrap_option, command_config_option, read_command_config
from barnabas.client.admin import Admin
from barnabas.console.look import Look, look
from barnabas.words.printable import printable
from barnabas.words.requirements import needed_by

INTERVAL_S = 5.0
TIMEOUT_MS = 5_000


@click.command()
@bootstrap_option
@command_config_option
@click.option(
    "--timeout-ms", type=click.IntRange(min=1), help=f"How long a look waits for a cluster.  [default: {TIMEOUT_MS}]"
)
@click.option(
    "--interval",
    "interval_s",
    type=click.FloatRange(min=1),
    default=INTERVAL_S,
    show_default=True,
    metavar="SECONDS",
    help="The pause between two looks.",
)
def top(bootstrap: str | None, command_config: Path | None, timeout_ms: int | None, interval_s: float) -> None:
    """Show a cluster in a terminal, again and again: health, topics, groups, nodes, transactions.

    It shows what the console's overview shows. Keys: tab shows the next table, / filters by name, s sorts, p pauses, q quits.

    \b
    barnabas top -b localhost:9092
    """
    properties = {} if command_config is None else read_command_config(str(command_config))
    session = Session(bootstrap, properties, timeout_ms or TIMEOUT_MS, OUTPUTS["json"]())
    with needed_by("barnabas top", "top"):
        screen = import_module("barnabas.console.top_screen")
    if not on_terminal(sys.stdout):
        raise Failure("barnabas top needs a terminal", "barnabas cluster status prints the cluster's health once")
    looking = Looking(session)
    try:
        screen.TopScreen(printable(session.bootstrap), looking, interval_s).run()
    finally:
        looking.close()


class Looking:
    """Looks at a session's cluster; a client without an answer is closed, and the next look dials again."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._admin: Admin | None = None

    def __repr__(self) -> str:
        return f"<Looking {self._session.bootstrap}>"

    def __call__(self) -> Look:
        """Look once."""
        if self._admin is None:
            # A session waits for a broker that is about to start; a screen says instead that none answers.
            self._admin = Admin(
                self._session.bootstrap,
                client_id="barnabas-top",
                timeout_ms=self._session.timeout_ms,
                security=self._session.security,
            )
        found = look(self._admin, time.monotonic(), time.time_ns() // 1_000_000)
        if found.silence is not None:
            self.close()
        return found

    def close(self) -> None:
        """Close the client."""
        if self._admin is not None:
            self._admin.close()
            self._admin = None
