"""The common options of every command: the cluster, the connection, the output.

Precedence of the address: `-b`, `BARNABAS_BOOTSTRAP_SERVERS`, `bootstrap.servers` in the `--command-config`
file, `localhost:9092`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import click

from barnabas.cli.failure import Failure, explained
from barnabas.cli.output import OUTPUTS, Output
from barnabas.client.admin import Admin
from barnabas.client.properties import read_properties
from barnabas.protocol.errors import KafkaError

DEFAULT_BOOTSTRAP = "localhost:9092"
BOOTSTRAP_VARIABLE = "BARNABAS_BOOTSTRAP_SERVERS"
CLIENT_ID = "barnabas-cli"


class Session:
    """A command's cluster and output."""

    def __init__(
        self, bootstrap: str | None, properties: dict[str, str], timeout_ms: int | None, output: Output
    ) -> None:
        self.properties = properties
        self.bootstrap = bootstrap or properties.get("bootstrap.servers") or DEFAULT_BOOTSTRAP
        self.timeout_ms = timeout_ms or _milliseconds(properties, "request.timeout.ms", 30_000)
        self.client_id = properties.get("client.id", CLIENT_ID)
        self.output = output

    def admin(self) -> Admin:
        """Return an administrative client.

        Raises:
            Failure: the address does not parse, or needs TLS or SASL.
        """
        protocol = self.properties.get("security.protocol", "PLAINTEXT").upper()
        if protocol != "PLAINTEXT":
            raise Failure(
                f"security.protocol={protocol} is not supported by this command yet",
                "use a PLAINTEXT listener, or Kafka's own tools",
            )
        try:
            return Admin(self.bootstrap, client_id=self.client_id, timeout_ms=self.timeout_ms)
        except ValueError as error:
            raise Failure(str(error)) from None


def _milliseconds(properties: dict[str, str], name: str, default: int) -> int:
    text = properties.get(name)
    if text is None:
        return default
    if not text.isascii() or not text.isdigit() or not int(text):
        raise Failure(f"{name}={text} in the --command-config file must be a number of milliseconds")
    return int(text)


def session_options(function: Callable[..., None]) -> Callable[..., None]:
    """Add the common options; the command gets them as one `session`, and its errors get hints."""

    @click.option(
        "-b",
        "--bootstrap-server",
        "--bootstrap-servers",
        "--brokers",
        "bootstrap",
        envvar=BOOTSTRAP_VARIABLE,
        metavar="HOST:PORT,…",
        help=f"Addresses of brokers; also {BOOTSTRAP_VARIABLE}.  [default: {DEFAULT_BOOTSTRAP}]",
    )
    @click.option(
        "--command-config",
        type=click.Path(exists=True, dir_okay=False),
        help="A client's properties file, as for Kafka's tools.",
    )
    @click.option(
        "--timeout-ms", type=click.IntRange(min=1), help="How long to wait for the cluster.  [default: 30000]"
    )
    @click.option(
        "--output",
        type=click.Choice(list(OUTPUTS)),
        default="table",
        show_default=True,
        help="For people or for programs.",
    )
    @functools.wraps(function)
    def command(
        bootstrap: str | None, command_config: str | None, timeout_ms: int | None, output: str, **options: Any
    ) -> None:
        properties = _read_command_config(command_config) if command_config else {}
        session = Session(bootstrap, properties, timeout_ms, OUTPUTS[output]())
        with explained():
            function(session=session, **options)

    return command


def _read_command_config(path: str) -> dict[str, str]:
    try:
        # Kafka's clients trim each value too; the file format does not.
        return {name: value.strip() for name, value in read_properties(path).items()}
    except ValueError as error:
        raise Failure(str(error), "write key=value, a line each") from None


def parse_pairs(pairs: tuple[str, ...], option: str) -> dict[str, str]:
    """Parse repeated `KEY=VALUE` options.

    Raises:
        BadParameter: an option has no "=".
    """
    found: dict[str, str] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name:
            raise click.BadParameter(f"{pair!r} is not KEY=VALUE", param_hint=option)
        found[name.strip()] = value
    return found


def parse_words(texts: tuple[str, ...], known: tuple[str, ...], option: str) -> list[str]:
    """Parse a repeated option of words, also separated by commas; case does not matter.

    Raises:
        BadParameter: a word is unknown.
    """
    spelled = {word.lower(): word for word in known}
    found = [each.strip() for text in texts for each in text.split(",")]
    for each in found:
        if each.lower() not in spelled:
            raise click.BadParameter(f"{each!r} is not one of {', '.join(known)}", param_hint=option)
    return [spelled[each.lower()] for each in found]


def complete_topics(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """Complete topic names; return none if no broker answers within a second."""
    return _complete(context, incomplete, lambda admin: [topic.name for topic in admin.list_topics()])


def complete_groups(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """Complete group ids; return none if no broker answers within a second."""
    return _complete(context, incomplete, lambda admin: [listing.group_id for listing in admin.list_groups()])


def _complete(context: click.Context, incomplete: str, names: Callable[[Admin], list[str]]) -> list[str]:
    import os

    bootstrap = context.params.get("bootstrap") or os.environ.get(BOOTSTRAP_VARIABLE) or DEFAULT_BOOTSTRAP
    try:
        with Admin(bootstrap, timeout_ms=1000) as admin:
            return [name for name in names(admin) if name.startswith(incomplete)]
    except (KafkaError, ValueError):
        return []
