"""`barnabas console`: pages about clusters, for a browser."""

from __future__ import annotations

import ipaddress
import logging
import os
import secrets
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import click

from barnabas.cli.failure import Failure
from barnabas.cli.listen_address import listen_address, listening
from barnabas.cli.output import OUTPUTS
from barnabas.cli.session import Session, bootstrap_option, command_config_option, read_command_config
from barnabas.client.admin import Admin
from barnabas.client.bootstrap import format_address
from barnabas.console.asked_cluster import AskedCluster
from barnabas.console.audit_log import AuditLog, BadAuditLog
from barnabas.console.cluster_file import BadClusterFile, ClusterEntry, read_cluster_file
from barnabas.console.logins import Logins
from barnabas.console.password_file import SALT_BYTES, BadPasswordFile, line_of
from barnabas.decoding.decoder import Decoder
from barnabas.decoding.masks import Masks
from barnabas.http_access import BadTokenFile
from barnabas.schemas.errors import SchemaError
from barnabas.schemas.source import source_of
from barnabas.words.printable import printable
from barnabas.words.requirements import needed_by

DEFAULT_LISTEN = "127.0.0.1:8080"
TIMEOUT_MS = 5_000
"""A page waits less long for a cluster than a command does."""
_PASSWORD_CHARACTERS_MIN = 8


@click.command()
@bootstrap_option
@command_config_option
@click.option(
    "--timeout-ms", type=click.IntRange(min=1), help=f"How long a page waits for a cluster.  [default: {TIMEOUT_MS}]"
)
@click.option(
    "--config",
    "cluster_file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A TOML file of several clusters, in place of -b.",
)
@click.option(
    "-r",
    "--schemas",
    metavar="URL",
    help="A schema registry, or a folder of schemas, by which records are decoded.",
)
@click.option("--listen", default=DEFAULT_LISTEN, show_default=True, metavar="HOST:PORT", help="Where the pages are.")
@click.option(
    "--base-path", default="", metavar="/PATH", help="The path of the pages behind a proxy, such as /console."
)
@click.option(
    "--host-name", "names", multiple=True, metavar="NAME", help="Another name of this console, as of a proxy; repeat."
)
@click.option("--token-file", type=click.Path(dir_okay=False), help="A file with a token that visitors must show.")
@click.option("--password-file", type=click.Path(dir_okay=False), help="A file of users who may log in.")
@click.option("--write", is_flag=True, help="Pages may change clusters.  [default: read-only]")
@click.option(
    "--audit-log",
    type=click.Path(dir_okay=False),
    help="A file for a line of JSON about each change.  [default: stderr]",
)
@click.option("--add-user", metavar="NAME", help="Ask for a password, add the user to the --password-file, and end.")
def console(
    bootstrap: str | None,
    command_config: Path | None,
    timeout_ms: int | None,
    cluster_file: Path | None,
    schemas: str | None,
    listen: str,
    base_path: str,
    names: tuple[str, ...],
    token_file: str | None,
    password_file: str | None,
    write: bool,
    audit_log: str | None,
    add_user: str | None,
) -> None:
    """Show clusters in a browser: health, topics, records, groups, transactions. With --write it also changes them.

    Beyond loopback it needs a --token-file or a --password-file.

    \b
    barnabas console -b localhost:9092
    """
    if add_user is not None:
        if password_file is None:
            raise click.UsageError("--add-user needs --password-file.")
        _add_user(add_user, Path(password_file))
        return
    if cluster_file is not None and (bootstrap is not None or command_config is not None or schemas is not None):
        raise click.UsageError("--config names its clusters: leave out -b, --command-config and --schemas.")
    if audit_log is not None and not write:
        raise click.UsageError("--audit-log needs --write: a console without it changes nothing.")
    audit = _audit(audit_log) if write else None
    host, port = listen_address(listen)
    logins = Logins(token_file, password_file)
    _check(logins, host)
    clusters = [_cluster(each) for each in _entries(cluster_file, bootstrap, command_config, timeout_ms, schemas)]
    with needed_by("barnabas console", "console"):
        serving = import_module("barnabas.console.serving")
    listener = listening(listen, host, port, serving.listening_socket)
    path = _base_path(base_path)
    where = f"http://{format_address(host, listener.getsockname()[1])}{path}/"
    serving.serve(
        clusters,
        listener,
        host=host,
        logins=logins,
        base_path=path,
        names=names,
        audit=audit,
        is_ready=lambda: click.echo(f"console of {', '.join(printable(each.name) for each in clusters)} on {where}"),
    )


def _audit(path: str | None) -> AuditLog:
    """Return the log of changes; without a file its lines go to the standard error."""
    if path is None:
        logger = logging.getLogger("barnabas.console.audit_log")
        logger.addHandler(logging.StreamHandler())
        logger.setLevel(logging.INFO)
    found = AuditLog(path)
    try:
        found.check()
    except BadAuditLog as error:
        raise Failure(str(error)) from None
    return found


def _base_path(text: str) -> str:
    path = text.rstrip("/")
    if path and (
        not path.startswith("/")
        or path.startswith("//")
        or not path.isascii()
        or any(each in path for each in "?#%{} \\")
    ):
        raise click.BadParameter(f"{text!r} is not a path such as /console", param_hint="--base-path")
    return path


def _check(logins: Logins, host: str) -> None:
    try:
        logins.check_files()
    except (BadTokenFile, BadPasswordFile) as error:
        raise Failure(str(error)) from None
    if not logins.are_needed and not _is_loopback(host):
        raise Failure(
            f"{printable(host)} may be reached from other machines, and the console would show them everything",
            "--token-file FILE or --password-file FILE asks visitors to log in",
        )


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _entries(
    cluster_file: Path | None,
    bootstrap: str | None,
    command_config: Path | None,
    timeout_ms: int | None,
    schemas: str | None,
) -> list[ClusterEntry]:
    if cluster_file is None:
        return [ClusterEntry("", bootstrap, command_config, timeout_ms, schemas)]
    try:
        found = read_cluster_file(cluster_file)
    except BadClusterFile as error:
        raise Failure(str(error)) from None
    return [each._replace(timeout_ms=each.timeout_ms or timeout_ms) for each in found]


def _cluster(entry: ClusterEntry) -> AskedCluster:
    """Return the cluster of an entry; nothing is dialled yet."""
    properties: dict[str, str] = {}
    if entry.command_config is not None:
        if not entry.command_config.is_file():
            raise Failure(
                f"{printable(str(entry.command_config))}: no such file",
                f"it is the command-config of {printable(entry.name)}",
            )
        properties = read_command_config(str(entry.command_config))
    session = Session(
        entry.bootstrap, properties, entry.timeout_ms or TIMEOUT_MS, OUTPUTS["json"](), "bootstrap-server"
    )
    try:
        source = None if entry.schemas is None else source_of(entry.schemas)
    except SchemaError as error:
        raise Failure(printable(str(error)), "--schemas names a registry or a folder of schemas") from None
    return AskedCluster(entry.name or session.bootstrap, _connector(session), Decoder(source, Masks(entry.masks)))


def _connector(session: Session) -> Callable[[], Admin]:
    # A session waits for a broker that is about to start; a page says instead that none answers.
    return lambda: Admin(
        session.bootstrap, client_id="barnabas-console", timeout_ms=session.timeout_ms, security=session.security
    )


def _add_user(name: str, path: Path) -> None:
    password = click.prompt("Password", hide_input=True, confirmation_prompt=True)
    if len(password) < _PASSWORD_CHARACTERS_MIN:
        raise Failure(f"a password has at least {_PASSWORD_CHARACTERS_MIN} characters")
    try:
        line = line_of(name, password, secrets.token_bytes(SALT_BYTES))
    except ValueError as error:
        raise Failure(str(error)) from None
    there = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    others = [each for each in there if each.partition(":")[0] != name]
    written = path.with_name(f".{path.name}.new")
    written.unlink(missing_ok=True)
    written.touch(mode=0o600)
    # Whole or not at all: a console that runs reads the file at each login.
    with written.open("w", encoding="utf-8") as file:
        file.write("\n".join([*others, line, ""]))
        file.flush()
        os.fsync(file.fileno())
    written.replace(path)
    click.echo(f"user {name} is in {printable(str(path))}")
