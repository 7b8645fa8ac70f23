"""Errors as one line that says what to do next.

    error: topic ordrs does not exist; did you mean orders? (`barnabas topic list` shows which exist)

Exit codes: 1 when something failed, 2 when the command line was wrong (`usage`), 0 otherwise.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import IO, Any, NamedTuple

import click

from barnabas.cli.layout import width_of
from barnabas.cli.wording import as_typed, in_lower_case
from barnabas.client.errors import OtherProtocol, OtherSecurity
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.settings_table import suggestion
from barnabas.words.error_lines import error_line
from barnabas.words.kafka_words import in_plain_words
from barnabas.words.nearest import did_you_mean
from barnabas.words.printable import on_one_line

_NO_CONTROLLER = (
    "a majority of the controllers must run: `barnabas cluster status` says which do; --timeout-ms waits longer"
)
_CONTROLLER_IS_SILENT = "the controller does not answer"
"""How a broker that answers begins, when it has waited for the controller in vain."""
_HINTS = {
    "BROKER_NOT_AVAILABLE": "start a broker with `barnabas start --data-dir DIR`, or name another with -b HOST:PORT",
    "REQUEST_TIMED_OUT": "check that the address is a broker's; --timeout-ms waits longer",
    "NETWORK_EXCEPTION": "check that it is a Kafka listener, and security.protocol is its own; the broker's log may say more",
    "UNKNOWN_TOPIC_OR_PARTITION": "`barnabas topic list` shows which exist",
    "TOPIC_ALREADY_EXISTS": "--if-not-exists accepts it",
    "INVALID_TOPIC_EXCEPTION": "use letters, digits, '.', '_' and '-', at most 249 of them",
    "INVALID_REPLICATION_FACTOR": "use at most as many replicas as there are brokers; -r 1 always works",
    "INVALID_PARTITIONS": "`barnabas topic describe {topic}` shows how many there are; the number can only grow",
    "GROUP_ID_NOT_FOUND": "`barnabas group list` shows which exist",
    "TRANSACTIONAL_ID_NOT_FOUND": "`barnabas txn list` shows which exist",
    "INVALID_REGULAR_EXPRESSION": "the broker expects RE2 syntax",
    "NON_EMPTY_GROUP": "stop its consumers first",
    "GROUP_SUBSCRIBED_TO_TOPIC": "stop its consumers first",
    "UNKNOWN_MEMBER_ID": "the group has running consumers: stop them first",
    "OFFSET_OUT_OF_RANGE": "`barnabas topic describe {topic}` shows where the log begins and ends",
    "NOT_LEADER_OR_FOLLOWER": "the leader is moving: try again",
    "LEADER_NOT_AVAILABLE": "`barnabas topic describe {topic}` shows which partitions have no leader",
    "TOPIC_AUTHORIZATION_FAILED": "this user is not allowed to do that",
    "GROUP_AUTHORIZATION_FAILED": "this user is not allowed to do that",
    "CLUSTER_AUTHORIZATION_FAILED": "this user is not allowed to do that",
    "SASL_AUTHENTICATION_FAILED": "check sasl.jaas.config in the --command-config file",
    "UNSUPPORTED_SASL_MECHANISM": "set another one in the --command-config file",
    "DELEGATION_TOKEN_AUTH_DISABLED": "brokers and controllers need delegation.token.secret.key, the same on all",
    "DELEGATION_TOKEN_NOT_FOUND": "`barnabas token describe` shows which exist",
    "DELEGATION_TOKEN_OWNER_MISMATCH": "only the token's owner and its renewers may do that",
    "DELEGATION_TOKEN_REQUEST_NOT_ALLOWED": "log in with a password or a certificate, not with a token",
    "DELEGATION_TOKEN_AUTHORIZATION_FAILED": "it needs the right CREATE_TOKENS on that user",
    "DELEGATION_TOKEN_EXPIRED": "`barnabas token create` makes a new one",
    "INVALID_PRINCIPAL_TYPE": "renewers are users: User:NAME",
    "NOT_CONTROLLER": _NO_CONTROLLER,
    "COORDINATOR_NOT_AVAILABLE": "the cluster is still electing one: try again",
    "INVALID_RECORD": "a compacted topic rejects records without a key: set one with -k or -K",
    "UNSUPPORTED_VERSION": "the broker is too old or too new for this",
}
_NOUNS = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "topic",
    ErrorCode.GROUP_ID_NOT_FOUND: "group",
    ErrorCode.TRANSACTIONAL_ID_NOT_FOUND: "transactional id",
}
_NAMED = re.compile(
    r"(?:topic|group|transactional id) (?P<quote>'?)(?P<name>.+?)(?P=quote)(?:: | does not exist| not found)", re.I
)
_TOPIC = re.compile(r"\btopic '?(?P<name>[\w.-]+)")

Names = Callable[[str], Iterable[str]]
"""The names that exist, by noun: `topic`, `group`, `transactional id`."""


class Missing(NamedTuple):
    """A named thing that does not exist; `Names` lists those that do."""

    noun: str
    name: str


class Failure(click.ClickException):
    """A failure with its remedy.

    Attributes:
        hint: what to do next; None when the message says it.
        missing: the named thing, if the failure is that it does not exist.
    """

    exit_code = 1

    def __init__(self, message: str, hint: str | None = None, missing: Missing | None = None) -> None:
        super().__init__(message)
        self.hint = hint
        self.missing = missing

    def format_message(self) -> str:
        message = on_one_line(self.message).rstrip(".")
        return f"{message} ({on_one_line(self.hint)})" if self.hint else message

    def show(self, file: IO[Any] | None = None) -> None:
        click.echo(error_line(self.format_message(), width_of), file=file, err=True)

    def with_nearest(self, names: Names) -> Failure:
        """Return the failure with the existing name that a mistyped one probably meant."""
        if self.missing is None:
            return self
        existing = list(names(self.missing.noun))
        if self.missing.name in existing:
            return self
        meant = did_you_mean(self.missing.name, existing)
        if meant in self.message:  # the command has looked, too
            return Failure(self.message, self.hint)
        return Failure(self.message.rstrip(".") + meant, self.hint)


class Failures(Exception):
    """Several failures, each to be printed."""

    def __init__(self, failures: Sequence[Failure]) -> None:
        super().__init__(f"{len(failures)} failures")
        self.failures = failures


class Quiet(click.exceptions.Exit):
    """Ends with code 1 after the errors were printed."""

    def __init__(self) -> None:
        super().__init__(1)


def failure_of(error: KafkaError, subject: str | None = None) -> Failure:
    """Return a broker's error as a failure with its hint.

    Args:
        subject: the thing in question, for messages that do not name it.
    """
    plain = in_plain_words(error.message)
    message = in_lower_case(plain.message)
    if subject and message == f"the {_NOUNS.get(error.code)} does not exist":
        message = f"{subject} does not exist"
    elif subject and not re.search(rf"(?<![\w.-]){re.escape(subject.rsplit(maxsplit=1)[-1])}(?![\w.-])", message):
        message = f"{subject}: {message}"
    message += suggestion(error.message)
    return Failure(message, plain.hint or _hint(error, message, subject), _missing(error, message, subject))


def _hint(error: KafkaError, message: str, subject: str | None) -> str | None:
    if error.code == ErrorCode.REQUEST_TIMED_OUT and error.message.startswith(_CONTROLLER_IS_SILENT):
        return _NO_CONTROLLER
    if isinstance(error, OtherSecurity):
        return "--command-config FILE has a client's settings"
    if isinstance(error, OtherProtocol):
        return "name a listener of a broker with -b HOST:PORT"
    if error.code != ErrorCode.INVALID_CONFIG:
        hint = _HINTS.get(error.code.name)
        return hint and hint.replace("{topic}", _topic(subject or message))
    if subject is None or subject.startswith("topic "):
        return "`barnabas topic configs` lists names and defaults"
    if subject.startswith("all "):
        return (
            f"`barnabas config describe {subject.removeprefix('all ').removesuffix('s')} --all` lists names and values"
        )
    kind, _, name = subject.partition(" ")
    return f"`barnabas config describe {kind} --all {as_typed(name)}` lists names and values"


def _topic(text: str) -> str:
    """Return the topic that a text is about, as one types it."""
    found = _TOPIC.search(text)
    return "TOPIC" if found is None else as_typed(found["name"])


def _missing(error: KafkaError, message: str, subject: str | None) -> Missing | None:
    noun = _NOUNS.get(error.code)
    if noun is None:
        return None
    if subject is not None and subject.startswith(f"{noun} "):
        return Missing(noun, subject.removeprefix(f"{noun} "))
    named = _NAMED.search(message)
    return None if named is None else Missing(noun, named["name"])


@contextmanager
def explained(names: Names = lambda noun: ()) -> Iterator[None]:
    """Turn brokers' errors into one line each, with the nearest of the names that exist.

    Raises:
        Failure: something failed.
        Quiet: several things failed, and a line is printed for each.
    """
    try:
        yield
    except KafkaError as error:
        raise failure_of(error).with_nearest(names) from None
    except Failure as failure:
        raise failure.with_nearest(names) from None
    except Failures as several:
        for each in several.failures:
            each.with_nearest(names).show()
        raise Quiet from None


def report_failures(outcomes: Iterable[tuple[str, object]]) -> None:
    """Report the outcomes that are errors, after the others were printed.

    Raises:
        Failures: there is an error; `explained` prints a line for each.
    """
    failures = [failure_of(outcome, subject) for subject, outcome in outcomes if isinstance(outcome, KafkaError)]
    if failures:
        raise Failures(failures)
