"""`barnabas support bundle`: one archive for a person who helps with a cluster, without its secrets.

    barnabas-support/
        about.json          versions of barnabas, Python and the platform; when it was made
        status.json, cluster.json, quorum.json, features.json, log-dirs.json, topics.json, groups.json
        configs.json        settings that were changed, of brokers and topics
        node.properties     with --config: a node's own settings
        log-1.txt, …        with --log: the last lines of these files
        metrics-1.txt, …    the metrics of broker 1, and metrics-url-1.txt with --metrics (`support_metrics`)
        missing.txt         the parts that the command could not read, and why

`support_secrets` leaves the secrets out. Records, and the contents of the data directory, are never read.
"""

from __future__ import annotations

import enum
import io
import json
import os
import platform
import sys
import tarfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import click

from barnabas.cli.changed_settings import changed
from barnabas.cli.cluster_status import status_of
from barnabas.cli.failure import Failure
from barnabas.cli.session import Session, session_options
from barnabas.cli.support_metrics import MetricsFetch, metrics_url, places
from barnabas.cli.support_secrets import Secrets
from barnabas.client.admin import Admin, ConfigResource, ResourceType
from barnabas.client.properties import read_properties
from barnabas.http_access import BadTokenFile, read_token
from barnabas.protocol.errors import KafkaError
from barnabas.version import VERSION
from barnabas.words.printable import printable

_FOLDER = "barnabas-support"
_LINE_BYTES = 400
"""The bytes of a log that are read for each wanted line."""
_OWNER_ONLY = 0o600
_FIRST = "cluster.json"
"""The first question to the cluster: without an answer, no other is asked."""

Part = tuple[str, Callable[[], str]]


def _checked_urls(context: click.Context, option: click.Parameter, given: tuple[str, ...]) -> tuple[str, ...]:
    try:
        return tuple(metrics_url(each) for each in given)
    except ValueError as error:
        raise click.BadParameter(str(error), context, option) from None


@click.group()
def support() -> None:
    """Archives for a person who helps with a cluster."""


@support.command()
@click.argument("file", metavar="[FILE.tar.gz]", required=False, type=click.Path(dir_okay=False, path_type=Path))
@click.option(
    "--log", "logs", multiple=True, type=click.Path(dir_okay=False, path_type=Path), metavar="FILE",
    help="Add the last lines of a log; repeat.",
)  # fmt: skip
@click.option("--lines", type=click.IntRange(1, 100_000), default=2000, show_default=True, help="So many of each log.")
@click.option(
    "--config", "config", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE",
    help="Add a node's server.properties.",
)  # fmt: skip
@click.option(
    "--metrics", "urls", multiple=True, metavar="URL", callback=_checked_urls,
    help="Add the metrics of a node that the brokers' settings do not name; repeat.",
)  # fmt: skip
@click.option(
    "--metrics-token", "token_file", type=click.Path(dir_okay=False), metavar="FILE",
    help="The token that the nodes ask for before they show their metrics.",
)  # fmt: skip
@session_options
def bundle(
    session: Session,
    file: Path | None,
    logs: tuple[Path, ...],
    lines: int,
    config: Path | None,
    urls: tuple[str, ...],
    token_file: str | None,
) -> None:
    """Write an archive about a cluster for a person who helps, without its secrets.

    It says what it could not get. If no broker answers, it has the rest, and the exit code is 1. It has names of topics, groups, hosts
    and users: look at it before you send it.

    \b
    barnabas support bundle
    barnabas support bundle --log node.log --config node.conf
    """
    now = time.gmtime()
    path = file or Path(time.strftime("barnabas-support-%Y%m%dT%H%M%SZ.tar.gz", now))
    missing: list[tuple[str, str]] = []
    secrets = Secrets()
    secrets.add_settings(session.properties)
    fetch = MetricsFetch(session.properties, _token(token_file, secrets))
    own: list[Part] = []
    if config is not None:
        try:
            settings = read_properties(str(config))
        except (OSError, ValueError) as error:
            missing.append(("node.properties", _cause(error)))
        else:
            secrets.add_settings(settings, may_be_unknown=True)
            shown = "".join(f"{name}={value}\n" for name, value in secrets.shown(settings).items())
            own.append(("node.properties", lambda: shown))
    own += [(f"log-{n}.txt", partial(_tail, log, lines, secrets)) for n, log in enumerate(logs, 1)]
    about = {
        "barnabas": VERSION,
        "python": sys.version,
        "platform": platform.platform(),
        "made": time.strftime("%Y-%m-%dT%H:%M:%SZ", now),
        "logs": [str(log) for log in logs],
        "metrics": list(urls),
    }
    files = {"about.json": json.dumps(about, indent=2)}
    files |= _got(own, missing)
    files |= _of_cluster(session, missing, fetch, secrets)
    files |= _got(
        [(f"metrics-url-{n}.txt", partial(_metrics, fetch, url, secrets)) for n, url in enumerate(urls, 1)], missing
    )
    files["missing.txt"] = "".join(f"{name}: {why}\n" for name, why in missing)
    # Everything passes here: a secret that is known by its value is in no file, whatever that is about.
    written = {name: secrets.without(text).encode() for name, text in files.items()}
    _write(path, written, time.time())
    session.output.table(("FILE", "BYTES"), [(name, len(content)) for name, content in written.items()])
    for name, why in missing:
        click.echo(f"missing: {name}: {secrets.without(why)}", err=True)
    click.echo(f"written to {path}; it names topics, groups, hosts and users: look at it before you send it", err=True)
    if _FIRST not in written:
        raise Failure(
            f"{printable(str(path))} has nothing about the cluster: no broker answered",
            "correct -b and the login, and write it again, or send it if no broker runs",
        )


def _of_cluster(
    session: Session, missing: list[tuple[str, str]], fetch: MetricsFetch, secrets: Secrets
) -> dict[str, str]:
    """Return the files about the cluster; none if no broker answers."""
    try:
        with session.admin() as admin:
            first = _json(admin.describe_cluster())
            found = {_FIRST: first} | _got(_parts(admin), missing)
            return found | _got(_metrics_parts(admin, fetch, secrets, missing), missing)
    except (KafkaError, Failure) as error:
        missing.append(("everything about the cluster", _cause(error)))
        return {}


def _parts(admin: Admin) -> Iterator[Part]:
    yield "status.json", lambda: _json(status_of(admin).data)
    yield "quorum.json", lambda: _json(admin.describe_quorum())
    yield "features.json", lambda: _json(admin.describe_features())
    yield "log-dirs.json", lambda: _json(admin.describe_log_dirs(partitions=[]))
    yield "topics.json", lambda: _json(admin.describe_partitions())
    yield "groups.json", lambda: _json(admin.describe_groups([each.group_id for each in admin.list_groups()]))
    yield "configs.json", lambda: _json(_configs(admin))


def _metrics_parts(admin: Admin, fetch: MetricsFetch, secrets: Secrets, missing: list[tuple[str, str]]) -> list[Part]:
    """Return the parts of the brokers that can be asked; note each of the others."""
    try:
        found = places(admin)
    except KafkaError as error:
        missing.append(("metrics of the brokers", _cause(error)))
        return []
    missing += [(each.name, each.why) for each in found if not each.url]
    return [(each.name, partial(_metrics, fetch, each.url, secrets)) for each in found if each.url]


def _metrics(fetch: MetricsFetch, url: str, secrets: Secrets) -> str:
    # Labels have what clients call themselves.
    return secrets.of_log(fetch.text(url))


def _token(file: str | None, secrets: Secrets) -> str:
    if file is None:
        return ""
    try:
        token = read_token(file).decode()
    except BadTokenFile as error:
        raise Failure(str(error)) from None
    secrets.add_settings({"token": token})
    return token


def _configs(admin: Admin) -> dict[str, Any]:
    brokers = [ConfigResource(ResourceType.BROKER, str(each.id)) for each in admin.describe_cluster().brokers]
    topics = [ConfigResource(ResourceType.TOPIC, each.name) for each in admin.list_topics(internal=True)]
    found: dict[str, Any] = {}
    for resource, entries in admin.describe_configs([*brokers, *topics]).items():
        if isinstance(entries, KafkaError):
            answer: object = entries
        else:
            kept = [each for each in changed(resource.type, entries) if not each.sensitive]
            answer = Secrets().shown({each.name: each.value or "" for each in kept})
        found[f"{resource.type.name.lower()} {resource.name}"] = answer
    return found


def _got(parts: Iterator[Part] | list[Part], missing: list[tuple[str, str]]) -> dict[str, str]:
    """Return the contents of the parts by name; note each part that the cluster does not answer."""
    files = {}
    for name, get in parts:
        try:
            files[name] = get()
        except (KafkaError, Failure, OSError, ValueError) as error:
            missing.append((name, _cause(error)))
    return files


def _tail(log: Path, lines: int, secrets: Secrets) -> str:
    with open(log, "rb") as opened:
        size = opened.seek(0, os.SEEK_END)
        opened.seek(max(0, size - lines * _LINE_BYTES))
        read = opened.read().decode(errors="replace")
    # Before lines are cut off: a PEM block ends only after its first line.
    return "\n".join(secrets.of_log(read).splitlines()[-lines:]) + "\n"


def _cause(error: Exception) -> str:
    if isinstance(error, KafkaError | Failure):
        return str(error.message)
    named = getattr(error, "filename", None)
    return f"{f'{printable(str(named))}: ' if named else ''}{(getattr(error, 'strerror', None) or str(error)).lower()}"


def _json(value: object) -> str:
    return json.dumps(_plain(value), indent=2)


def _plain(value: Any) -> Any:
    """Return a value of the administrative client as JSON has it."""
    if isinstance(value, KafkaError):
        return {"error": value.message}
    if isinstance(value, enum.Enum):
        return value.name
    if hasattr(value, "_asdict"):
        return _plain(value._asdict())
    if hasattr(value, "items"):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(each) for each in value]
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


def _write(path: Path, files: dict[str, bytes], now: float) -> None:
    """Write the archive, for its owner only.

    Raises:
        Failure: the file exists, or cannot be written.
    """
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for name, content in files.items():
            entry = tarfile.TarInfo(f"{_FOLDER}/{name}")
            entry.size, entry.mtime, entry.mode = len(content), int(now), _OWNER_ONLY
            archive.addfile(entry, io.BytesIO(content))
    try:
        with open(path, "xb", opener=lambda name, flags: os.open(name, flags, _OWNER_ONLY)) as out:
            out.write(packed.getvalue())
    except FileExistsError:
        raise Failure(f"{path} exists", "name another file") from None
    except OSError as error:
        raise Failure(f"cannot write {path}: {error.strerror or error}") from None
