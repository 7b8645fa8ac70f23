"""Settings for confluent-kafka: from the command line, a properties file and `-X`.

Precedence: `-X`, then the command's own options, then the `--command-config` file. Names that only the Java client knows
are left out of the file's settings, so that one file serves both; in `-X` they are errors.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from barnabas.cli.client_settings import is_librdkafkas
from barnabas.cli.failure import Failure, failure_of
from barnabas.cli.session import Session, parse_pairs
from barnabas.protocol.errors import ErrorCode, error_for

if TYPE_CHECKING:
    from confluent_kafka import KafkaError as LibraryError

# The library has these names too; what the file says of them is meant for the Java client, or for our own.
_NOT_FROM_THE_FILE = {
    "bootstrap.servers", "client.dns.lookup", "delivery.timeout.ms", "max.poll.records", "partition.assignment.strategy",
    "request.timeout.ms",
}  # fmt: skip


def client_settings(session: Session, extra: tuple[str, ...], options: dict[str, Any]) -> dict[str, Any]:
    """Return the merged settings of a producer or consumer."""
    from_file = {
        name: value
        for name, value in session.properties.items()
        if is_librdkafkas(name) and name not in _NOT_FROM_THE_FILE
    }
    settings = {
        **from_file,
        "bootstrap.servers": session.bootstrap,
        "client.id": session.client_id,
        # The library writes its own lines to stderr; errors come through exceptions and callbacks here.
        "log_level": 0,
        "error_cb": _Warnings(session.bootstrap),
        **options,
        **parse_pairs(extra, "-X"),
    }
    if not settings.get("group.id", "any"):
        raise Failure("group.id is empty: set a name")  # confluent-kafka would end the process
    return settings


class _Warnings:
    """Warns once that no broker can be reached; the library keeps trying."""

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self._warned = False

    def __call__(self, error: LibraryError) -> None:
        if error.name() == "_ALL_BROKERS_DOWN" and not self._warned:
            self._warned = True
            click.echo(f"warning: lost the brokers at {self._bootstrap}, trying to reach them again", err=True)


def library_failure(error: LibraryError, subject: str) -> Failure:
    """Return an error of the library, its own or a broker's, as a failure with its hint."""
    if error.code() > 0:
        return failure_of(error_for(error.code()), subject)
    if error.name() == "_AUTO_OFFSET_RESET":
        # The library replaces the broker's error by the name of its own reaction.
        return failure_of(error_for(ErrorCode.OFFSET_OUT_OF_RANGE), subject)
    return Failure(f"{subject}: {error.str()}")
