"""Errors as one line with what to do next.

    error: topic nope does not exist (`barnabas topic list` shows which do)

Exit codes: 1 when something failed, 2 when the command line was wrong (click's own), 0 otherwise.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import IO, Any

import click

from barnabas.protocol.errors import KafkaError

_HINTS = {
    "BROKER_NOT_AVAILABLE": "start one with `barnabas start`, or name another with -b HOST:PORT",
    "REQUEST_TIMED_OUT": "check that the address is a broker's; --timeout-ms waits longer",
    "NETWORK_EXCEPTION": "check that it is a Kafka listener without TLS; the broker's log may say more",
    "UNKNOWN_TOPIC_OR_PARTITION": "`barnabas topic list` shows which exist",
    "TOPIC_ALREADY_EXISTS": "--if-not-exists accepts it",
    "INVALID_TOPIC_EXCEPTION": "use letters, digits, '.', '_' and '-', at most 249 of them",
    "INVALID_REPLICATION_FACTOR": "use at most as many replicas as there are brokers; -r 1 always works",
    "INVALID_PARTITIONS": "`barnabas topic describe` shows how many there are; the number can only grow",
    "INVALID_CONFIG": "`barnabas config describe --all` lists names and values",
    "GROUP_ID_NOT_FOUND": "`barnabas group list` shows which exist",
    "TRANSACTIONAL_ID_NOT_FOUND": "`barnabas txn list` shows which exist",
    "INVALID_REGULAR_EXPRESSION": "the broker expects RE2 syntax",
    "NON_EMPTY_GROUP": "stop its consumers first",
    "GROUP_SUBSCRIBED_TO_TOPIC": "stop its consumers first",
    "UNKNOWN_MEMBER_ID": "the group has running consumers: stop them first",
    "OFFSET_OUT_OF_RANGE": "`barnabas topic describe` shows where the log begins and ends",
    "NOT_LEADER_OR_FOLLOWER": "the leader is moving: try again",
    "LEADER_NOT_AVAILABLE": "`barnabas topic describe` shows which partitions have no leader",
    "TOPIC_AUTHORIZATION_FAILED": "this user is not allowed to do that",
    "GROUP_AUTHORIZATION_FAILED": "this user is not allowed to do that",
    "CLUSTER_AUTHORIZATION_FAILED": "this user is not allowed to do that",
    "COORDINATOR_NOT_AVAILABLE": "the cluster is still electing one: try again",
    "INVALID_RECORD": "a compacted topic rejects records without a key: set one with -k or -K",
    "UNSUPPORTED_VERSION": "the broker is too old or too new for this",
}


class Failure(click.ClickException):
    """A failure with its remedy.

    Attributes:
        hint: what to do next; None when the message says it.
    """

    exit_code = 1

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.hint = hint

    def format_message(self) -> str:
        message = " ".join(self.message.split()).rstrip(".")
        return f"{message} ({self.hint})" if self.hint else message

    def show(self, file: IO[Any] | None = None) -> None:
        click.echo(f"error: {self.format_message()}", file=file, err=True)


class Quiet(click.exceptions.Exit):
    """Ends with code 1 after the errors were printed."""

    def __init__(self) -> None:
        super().__init__(1)


def failure_of(error: KafkaError, subject: str | None = None) -> Failure:
    """Return a broker's error as a failure with its hint.

    Args:
        subject: what the error is about, for messages that do not name it.
    """
    message = error.message
    if subject and subject.rsplit(maxsplit=1)[-1] not in message:
        message = f"{subject}: {message}"
    return Failure(message, _HINTS.get(error.code.name))


@contextmanager
def explained() -> Iterator[None]:
    """Turn brokers' errors into one line each."""
    try:
        yield
    except KafkaError as error:
        raise failure_of(error) from None


def report_failures(outcomes: Iterable[tuple[str, object]]) -> None:
    """Print one line for each outcome that is an error.

    Raises:
        Quiet: there is an error.
    """
    failures = [failure_of(outcome, subject) for subject, outcome in outcomes if isinstance(outcome, KafkaError)]
    for failure in failures:
        failure.show()
    if failures:
        raise Quiet
