"""Settings for confluent-kafka: from the command line, a properties file and `-X`.

Precedence: `-X`, then the command's own options, then the `--command-config` file. Names that only the Java client knows
are left out of the file's settings, so that one file serves both; in `-X` they are errors.

TLS and SASL come from the file only, under Java's names, because our own client asks first: `client/librdkafka_security` translates
them. So no password stands among the arguments of a process.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Set
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click

from barnabas.cli.client_settings import client_settings as known_settings
from barnabas.cli.client_settings import is_librdkafkas
from barnabas.cli.failure import Failure, failure_of
from barnabas.cli.session import Session, parse_pairs
from barnabas.client.admin import Admin
from barnabas.client.bootstrap import format_address
from barnabas.client.librdkafka_security import librdkafka_security
from barnabas.protocol.errors import ErrorCode, error_for
from barnabas.security.client_security import PROTOCOL, ClientSecurity
from barnabas.security.setting_error import SecuritySettingError
from barnabas.words.nearest import did_you_mean
from barnabas.words.printable import printable

if TYPE_CHECKING:
    from confluent_kafka import KafkaError as LibraryError

# The library has these names too; what the file says of them is meant for the Java client, or for our own.
_NOT_FROM_THE_FILE = {
    "bootstrap.servers", "client.dns.lookup", "delivery.timeout.ms", "max.poll.records", "partition.assignment.strategy",
    "request.timeout.ms",
}  # fmt: skip
_OF_SECURITY = re.compile(r"^(security\.protocol$|(enable\.)?(ssl|sasl)\.)")
_NAMED_SETTING = re.compile(r'(?:property:?|value for) "([^"]+)"')
_KNOWN = "-X takes settings such as linger.ms=5; CONFIGURATION.md of librdkafka lists them"
_COMPLAINTS = (
    (re.compile(r"is outside allowed range (\S+)\.\.(\S+)"), r"must be from \1 to \2"),
    (re.compile(r"^Expected bool value"), "must be true or false"),
    (re.compile(r"^Invalid value"), "is not a valid value"),
)
_ALIASES = {
    "queue.buffering.max.ms": "linger.ms",
    "request.required.acks": "acks",
    "message.send.max.retries": "retries",
}
"""Kafka's names of settings that the library's errors call otherwise."""
_TIMED_OUT = "Local: Timed out"
_NOT_REACHED = "check the broker; --timeout-ms waits longer"
_WORDS = {
    "_ALL_BROKERS_DOWN": ("no broker can be reached", _NOT_REACHED),
    "_AUTHENTICATION": ("the broker rejected the user name or password", None),
    "_BAD_COMPRESSION": ("a batch cannot be decompressed", None),
    "_BAD_MSG": ("the broker's response cannot be read", None),
    "_FENCED": ("another client with the same transactional or instance id has taken over", None),
    "_MAX_POLL_EXCEEDED": ("the group went on without this consumer, which was too slow", "raise -X max.poll.interval.ms"),
    "_MSG_TIMED_OUT": ("the broker did not acknowledge the records in time", _NOT_REACHED),
    "_RESOLVE": ("a broker's host name does not resolve", "brokers name themselves with advertised.listeners"),
    "_SSL": ("the TLS connection failed", "check ssl.truststore.location, and that the listener speaks TLS"),
    "_TIMED_OUT": ("the broker did not answer in time", _NOT_REACHED),
    "_TRANSPORT": ("the connection to the broker was lost", _NOT_REACHED),
    "_UNKNOWN_PARTITION": ("there is no such partition", "`barnabas topic list` shows how many partitions each topic has"),
    "_UNKNOWN_TOPIC": ("there is no such topic", "`barnabas topic list` shows which exist"),
    "_UNSUPPORTED_FEATURE": ("the broker is too old for this", None),
}  # fmt: skip
"""The library's own errors in our words, and what to do next."""

_Client = TypeVar("_Client")


class LibraryConnection(NamedTuple):
    """A cluster for the library, where there is no session of a command.

    Attributes:
        bootstrap: addresses, joined by commas.
        properties: further settings of the library.
    """

    bootstrap: str
    client_id: str
    security: ClientSecurity | None
    properties: dict[str, str]


def connection_of(admin: Admin) -> LibraryConnection:
    """Return the cluster of our own client for the library, with the same login."""
    cluster = admin.cluster
    bootstrap = ",".join(format_address(host, port) for host, port in cluster.bootstrap)
    return LibraryConnection(bootstrap, cluster.client_id, cluster.security, {})


def client_settings(
    session: Session | LibraryConnection, extra: tuple[str, ...], options: dict[str, Any]
) -> dict[str, Any]:
    """Return the merged settings of a producer or consumer.

    Raises:
        Failure: `-X` has settings of TLS or SASL, or librdkafka cannot do what the file says of them, or a group has no name.
    """
    given = parse_pairs(extra, "-X")
    is_plain = session.security is None and given.get(PROTOCOL, "").upper() == "PLAINTEXT"
    refused = (name for name in given if _OF_SECURITY.search(name) and not (is_plain and name == PROTOCOL))
    if secret := next(refused, None):
        raise Failure(
            f"{printable(secret)} is for TLS or SASL, and -X cannot set it", "write it into a file for --command-config"
        )
    from_file = {
        name: value
        for name, value in session.properties.items()
        if is_librdkafkas(name) and name not in _NOT_FROM_THE_FILE and not _OF_SECURITY.search(name)
    }
    settings = {
        **from_file,
        **_security(session),
        "bootstrap.servers": session.bootstrap,
        "client.id": session.client_id,
        # The library writes its own lines to stderr; errors come through exceptions and callbacks here.
        "log_level": 0,
        "error_cb": _Warnings(session.bootstrap),
        **options,
        **given,
    }
    if not settings.get("group.id", "any"):
        raise Failure("group.id is empty: set a name")  # confluent-kafka would end the process
    return settings


def _security(session: Session | LibraryConnection) -> dict[str, Any]:
    try:
        return librdkafka_security(session.security)
    except SecuritySettingError as error:
        raise Failure(str(error), "it is in the --command-config file") from None


class _Warnings:
    """Warns once that no broker can be reached; the library keeps trying."""

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self._warned = False

    def __call__(self, error: LibraryError) -> None:
        if error.name() == "_ALL_BROKERS_DOWN" and not self._warned:
            self._warned = True
            click.echo(f"warning: lost the brokers at {self._bootstrap}, trying to reach them again", err=True)


def connected(
    kind: Callable[[dict[str, Any]], _Client],
    session: Session | LibraryConnection,
    extra: tuple[str, ...],
    options: dict[str, Any],
) -> _Client:
    """Return a producer or consumer with the merged settings.

    Raises:
        Failure: a setting is unknown or not valid.
    """
    from confluent_kafka import KafkaException

    settings = client_settings(session, extra, options)
    try:
        return kind(settings)
    except KafkaException as error:
        from_file = session.properties.keys() - parse_pairs(extra, "-X").keys()
        raise _rejected(error.args[0].str(), settings, from_file) from None


def _rejected(message: str, settings: dict[str, Any], from_file: Set[str]) -> Failure:
    """Return the library's complaint about a setting in our words, with the place where the setting was given."""
    for alias, name in _ALIASES.items():
        message = message.replace(alias, name)
    named = _NAMED_SETTING.search(message)
    if named is None:
        return Failure(message)
    name = named[1]
    where = "it is in the --command-config file" if name in from_file else "it is given with -X"
    if message.startswith("No such"):
        names = (each for each in known_settings() if is_librdkafkas(each))
        return Failure(f"{name} is not a setting that librdkafka knows{did_you_mean(name, names)}", _KNOWN)
    for pattern, words in _COMPLAINTS:
        if found := pattern.search(message):
            return Failure(f"{name}={settings.get(name, '…')}: {found.expand(words)}", where)
    return Failure(message, where)


def library_failure(error: LibraryError, subject: str) -> Failure:
    """Return an error of the library, its own or a broker's, as a failure with its hint."""
    if error.code() > 0:
        return failure_of(error_for(error.code()), subject)
    if error.name() == "_AUTO_OFFSET_RESET":
        # The library replaces the broker's error by the name of its own reaction.
        return failure_of(error_for(ErrorCode.OFFSET_OUT_OF_RANGE), subject)
    words, hint = _WORDS.get(error.name(), (_plain(error.str()), None))
    if error.name() == "_TIMED_OUT" and error.str() != _TIMED_OUT:
        # A command waits for many things: the library, or the code that raised this, says for which.
        words = f"{words}: {_plain(error.str())}"
    return Failure(f"{subject}: {words}", hint)


def _plain(words: str) -> str:
    """Return the library's own words without its prefix, and without the name of a timeout behind them."""
    words = words.removeprefix("Local: ").removesuffix(f": {_TIMED_OUT}")
    return words[:1].lower() + words[1:]
