"""The common options of every command: the cluster, the connection, the output.

Precedence of the address: `-b`, `BARNABAS_BOOTSTRAP_SERVERS`, `bootstrap.servers` in the `--command-config`
file, `localhost:9092`. One that is given and empty is an error: a script with an unset variable must not reach localhost. A profile
(`profiles`) is an address and its file in one, and never mixes with these.

A `--command-config` file may hold every name that the Java client or librdkafka knows; a command uses what it can. Any other name is a
warning, in every command.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from barnabas.cli.client_settings import client_settings, is_client_setting
from barnabas.cli.failure import Failure, explained
from barnabas.cli.output import OUTPUTS, Output
from barnabas.cli.patience import patience
from barnabas.cli.profiles import PROFILE_VARIABLE, Profile, complete_profiles, profile_in_use
from barnabas.cli.usage import check_utf8, not_utf8
from barnabas.client.admin import Admin
from barnabas.client.bootstrap import parse_bootstrap
from barnabas.client.config_providers import ProviderError, resolved
from barnabas.client.librdkafka_names import java_settings
from barnabas.client.properties import read_properties
from barnabas.protocol.errors import KafkaError
from barnabas.security.client_security import ClientSecurity, client_security
from barnabas.security.setting_error import SecuritySettingError
from barnabas.settings_table import setting_names
from barnabas.words.hidden_values import hide_values
from barnabas.words.nearest import did_you_mean
from barnabas.words.printable import printable

if TYPE_CHECKING:
    from barnabas.security.token_source import TokenRequest

DEFAULT_BOOTSTRAP = "localhost:9092"
BOOTSTRAP_VARIABLE = "BARNABAS_BOOTSTRAP_SERVERS"
CLIENT_ID = "barnabas-cli"
_TWO = ("source", "target")
_LISTING_MS = 2000
"""How long a list of names may take when it only completes an error."""
_MOST_NAMES = 2_000
"""Among more, the nearest one would take too long to find."""


class Session:
    """A command's cluster and output."""

    def __init__(
        self,
        bootstrap: str | None,
        properties: dict[str, str],
        timeout_ms: int | None,
        output: Output,
        given_as: str = "--bootstrap-server",
    ) -> None:
        self.properties = properties
        self.bootstrap = _address(bootstrap, properties, given_as)
        self._is_waited_for = timeout_ms is not None
        self.timeout_ms = timeout_ms or _milliseconds(properties, "request.timeout.ms", 30_000)
        self.client_id = properties.get("client.id", CLIENT_ID)
        self.output = output
        self.profile: str | None = None
        """The profile that names the cluster, if one does."""
        self.security = client_security_of(properties)
        self._names: dict[str, list[str]] = {}

    def admin(self, *, timeout_ms: int | None = None) -> Admin:
        """Return an administrative client.

        Args:
            timeout_ms: the session's if None.

        Raises:
            KafkaError: no broker accepts connections within a `--timeout-ms` that was given.
        """
        timeout_ms = timeout_ms or self.timeout_ms
        waiting = patience(timeout_ms)
        admin = Admin(
            self.bootstrap,
            client_id=self.client_id,
            timeout_ms=timeout_ms,
            security=self.security,
            **waiting.seams(),
        )
        if self._is_waited_for:
            waiting.await_broker(admin.cluster, self.bootstrap)
        return admin

    def names(self, noun: str) -> list[str]:
        """Return the names that exist: of topics, groups or transactional ids; none if no broker answers."""
        if noun not in self._names:
            found = self._list_names(noun)
            self._names[noun] = found if len(found) <= _MOST_NAMES else []
        return self._names[noun]

    def _list_names(self, noun: str) -> list[str]:
        try:
            with self.admin(timeout_ms=min(self.timeout_ms, _LISTING_MS)) as admin:
                if noun == "topic":
                    return [each.name for each in admin.list_topics(internal=True)]
                if noun == "group":
                    return [each.group_id for each in admin.list_groups()]
                return [each.transactional_id for each in admin.list_transactions()]
        except (KafkaError, Failure):
            return []


def client_security_of(properties: dict[str, str]) -> ClientSecurity | None:
    """Return how a command with these settings secures its connections; None in plain text.

    Raises:
        Failure: a setting cannot be used.
    """
    try:
        return client_security(java_settings(properties), _fetch_token)
    except SecuritySettingError as error:
        raise Failure(str(error), "it is in the --command-config file") from None


def _fetch_token(request: TokenRequest) -> bytes:
    # Few commands need the standard library's HTTP, which takes a fifth of the time that a command needs to start.
    body: bytes = import_module("barnabas.client.token_fetch").fetch_token(request)
    return body


def _address(given: str | None, properties: dict[str, str], given_as: str = "--bootstrap-server") -> str:
    """Return the address to connect to first.

    Args:
        given_as: the option or argument that may give it.

    Raises:
        UsageError: it is given and empty, or does not parse.
    """
    sources = {
        given_as: given,
        BOOTSTRAP_VARIABLE: os.environ.get(BOOTSTRAP_VARIABLE),
        "bootstrap.servers in the --command-config file": properties.get("bootstrap.servers"),
    }
    for source, address in sources.items():
        if address is not None:
            if (wrong := not_utf8(address)) is not None:
                raise click.UsageError(f"{source}: {wrong}")
            if not address.strip(" ,"):
                may_be_left_out = f", or leave it out for {DEFAULT_BOOTSTRAP}" if given_as.startswith("-") else ""
                raise click.UsageError(f"{source} is empty: write HOST:PORT{may_be_left_out}")
            try:
                parse_bootstrap(address)
            except ValueError as error:
                raise click.UsageError(f"{source}: {error}") from None
            return address
    return DEFAULT_BOOTSTRAP


def _milliseconds(properties: dict[str, str], name: str, default: int) -> int:
    text = properties.get(name)
    if text is None:
        return default
    if not text.isascii() or not text.isdigit() or not int(text):
        raise Failure(f"{name}={text} in the --command-config file must be a number of milliseconds")
    return int(text)


bootstrap_option = click.option(
    "-b",
    "--bootstrap-server",
    "--bootstrap-servers",
    "--brokers",
    "bootstrap",
    metavar="HOST:PORT,…",
    help=f"Addresses of brokers; also {BOOTSTRAP_VARIABLE}.  [default: {DEFAULT_BOOTSTRAP}]",
)
"""Adds the addresses of the cluster; the command gets them as `bootstrap`, None if they are not given."""

command_config_option = click.option(
    "--command-config",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A client's properties file, as for Kafka's tools.",
)
"""Adds the file of the client's settings, for a program that serves; the command gets its path, None if it is not given."""

_profile_option = click.option(
    "--profile",
    metavar="NAME",
    shell_complete=complete_profiles,
    help=f"A named cluster of `barnabas profile`; also {PROFILE_VARIABLE}.",
)


def session_options(function: Callable[..., None]) -> Callable[..., None]:
    """Add the common options; the command gets them as one `session`, and its errors get hints."""
    return _with_session(function, "-o", "--output", tables=True)


def session_options_of_produce(function: Callable[..., None]) -> Callable[..., None]:
    """Add the common options without `--wide`: there are no tables."""
    return _with_session(function, "-o", "--output", tables=False)


def session_options_of_consume(function: Callable[..., None]) -> Callable[..., None]:
    """Add the common options without `--wide`, and without `-o`, which is the offset as in kcat and rpk."""
    return _with_session(function, "--output", tables=False)


def session_options_of_ranges(function: Callable[..., None]) -> Callable[..., None]:
    """Add the common options to a command with tables whose `-o` is an offset."""
    return _with_session(function, "--output", tables=True)


def session_options_of_sql(outputs: Mapping[str, type[Output]]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return what adds the common options, with other outputs; `--format` is another name of `--output`."""
    return lambda function: _with_session(function, "-o", "--output", "--format", tables=True, outputs=outputs)


def session_options_of_two_clusters(function: Callable[..., None]) -> Callable[..., None]:
    """Add the common options to a command with arguments `source` and `target`, two addresses; it gets two `sessions`.

    Each cluster may have a properties file of its own, instead of that of `--command-config`.
    """
    command = _with_connection(function, "-o", "--output", outputs=OUTPUTS, session_of=_two_sessions)
    for name in reversed(_TWO):
        option = click.option(
            f"--{name}-config",
            type=click.Path(exists=True, dir_okay=False),
            help=f"As --command-config, for {name.upper()} alone.",
        )
        command = option(command)
    return _with_wide(command)


def _two_sessions(
    options: dict[str, Any], properties: dict[str, str], timeout_ms: int | None, output: Output
) -> tuple[Session, ...]:
    found = []
    for name in _TWO:
        own = options.pop(f"{name}_config")
        its = properties if own is None else read_command_config(own)
        found.append(Session(options.pop(name), its, timeout_ms, output, name.upper()))
    options["sessions"] = tuple(found)
    return tuple(found)


def _one_session(
    options: dict[str, Any], properties: dict[str, str], timeout_ms: int | None, output: Output
) -> tuple[Session, ...]:
    bootstrap, name = options.pop("bootstrap"), options.pop("profile")
    profile = _profile(name, bootstrap, click.get_current_context().params["command_config"])
    if profile is None:
        session = Session(bootstrap, properties, timeout_ms, output)
    else:
        properties = profile.properties(read_command_config)
        session = Session(profile.bootstrap(properties), properties, timeout_ms, output, f"profile {profile.name}")
        session.profile = profile.name
    options["session"] = session
    return (session,)


def _profile(name: str | None, bootstrap: str | None, command_config: str | None) -> Profile | None:
    is_chosen = bootstrap is not None or command_config is not None
    if name is not None and is_chosen:
        raise click.UsageError(
            "--profile names an address and its settings: leave out --bootstrap-server and --command-config."
        )
    return None if is_chosen else profile_in_use(name, os.environ, BOOTSTRAP_VARIABLE)


def _with_session(
    function: Callable[..., None], *output: str, tables: bool, outputs: Mapping[str, type[Output]] = OUTPUTS
) -> Callable[..., None]:
    command = _with_connection(function, *output, outputs=outputs, session_of=_one_session)
    command = bootstrap_option(_profile_option(command))
    return _with_wide(command) if tables else command


def _with_wide(command: Callable[..., None]) -> Callable[..., None]:
    option = click.option("--wide", is_flag=True, help="Every column, also if the terminal is too narrow for it.")
    return option(command)


def _with_connection(
    function: Callable[..., None],
    *output: str,
    outputs: Mapping[str, type[Output]],
    session_of: Callable[[dict[str, Any], dict[str, str], int | None, Output], tuple[Session, ...]],
) -> Callable[..., None]:
    @click.option(
        "--command-config",
        type=click.Path(exists=True, dir_okay=False),
        help="A client's properties file, as for Kafka's tools.",
    )
    @click.option(
        "--timeout-ms",
        type=click.IntRange(min=1),
        help="How long to wait for the cluster; if given, also for one that is not started yet.  [default: 30000]",
    )
    @click.option(
        *output,
        "output",
        type=click.Choice(list(outputs)),
        default="table",
        show_default=True,
        help="For people or for programs.",
    )
    @functools.wraps(function)
    def command(
        command_config: str | None,
        timeout_ms: int | None,
        output: str,
        wide: bool = False,
        **options: Any,
    ) -> None:
        check_utf8(click.get_current_context())
        properties = read_command_config(command_config) if command_config else {}
        first, *_ = session_of(options, properties, timeout_ms, outputs[output](wide=wide))
        with explained(first.names):
            function(**options)

    return command


def read_command_config(path: str) -> dict[str, str]:
    """Return the settings in a file of `--command-config`, with the values of its providers.

    Raises:
        Failure: the file is not one, or a provider has no such value.
    """
    try:
        # Kafka's clients trim each value too; the file format does not.
        properties = {name: value.strip() for name, value in read_properties(path).items()}
    except ValueError as error:
        raise Failure(str(error), "write key=value, a line each") from None
    try:
        properties, provided = resolved(properties, os.environ)
    except ProviderError as error:
        raise Failure(f"{printable(path)}: {error}") from None
    hide_values(provided)
    # Kafka's clients trim what a provider brings, too.
    properties = {name: value.strip() for name, value in properties.items()}
    for name in [each for each in properties if not is_client_setting(each)]:
        del properties[name]
        meant = did_you_mean(name, client_settings())
        click.echo(f"warning: {printable(path)}: unknown setting {printable(name)} is ignored{meant}", err=True)
    return properties


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


def complete_cuts(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """Complete the names of cuts; return none if no broker answers within a second."""
    return _complete(context, incomplete, lambda admin: list(admin.list_cuts()))


def complete_transactional_ids(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """Complete transactional ids; return none if no broker answers within a second."""
    return _complete(context, incomplete, lambda admin: [each.transactional_id for each in admin.list_transactions()])


def complete_brokers(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """Complete the ids of brokers; return none if no broker answers within a second."""

    def ids(admin: Admin) -> list[str]:
        found = admin.describe_cluster()
        return [str(node.id) for node in (*found.brokers, *found.fenced)]

    return _complete(context, incomplete, ids)


def complete_topic_settings(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """Complete the names of topics' settings."""
    return [name for name in setting_names("topic") if name.startswith(incomplete)]


def complete_topic_pairs(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """Complete the KEY= of a topic's setting."""
    return [f"{name}=" for name in complete_topic_settings(context, parameter, incomplete)]


def _complete(context: click.Context, incomplete: str, names: Callable[[Admin], list[str]]) -> list[str]:
    try:
        bootstrap, path = context.params.get("bootstrap"), context.params.get("command_config")
        profile = _profile(context.params.get("profile"), bootstrap, path)
        if profile is None:
            properties = read_properties(path) if path else {}
        else:
            properties = profile.properties(read_properties)
            bootstrap = profile.bootstrap(properties)
        address = _address(bootstrap, properties)
        with Admin(
            address, timeout_ms=1000, security=client_security(java_settings(properties), _fetch_token)
        ) as admin:
            # A name with an escape code or a newline would drive the terminal, or forge other names.
            return [name for name in names(admin) if name.startswith(incomplete) and name.isprintable()]
    except (KafkaError, OSError, ValueError, click.ClickException):
        return []
