"""`barnabas registry`: a schema registry over a cluster."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from barnabas.cli.failure import Failure, failure_of
from barnabas.cli.listen_address import listen_address, listening
from barnabas.cli.output import OUTPUTS
from barnabas.cli.session import Session, bootstrap_option, command_config_option, read_command_config
from barnabas.client.bootstrap import format_address
from barnabas.client.cluster import Cluster
from barnabas.http_access import BadTokenFile, is_loopback, read_token
from barnabas.protocol.errors import KafkaError
from barnabas.words.printable import printable
from barnabas.words.requirements import needed_by

DEFAULT_LISTEN = "127.0.0.1:8081"
DEFAULT_TOPIC = "_schemas"
TIMEOUT_MS = 10_000
"""A request waits less long for the cluster than a command does."""


@click.command()
@bootstrap_option
@command_config_option
@click.option(
    "--timeout-ms",
    type=click.IntRange(min=1),
    help=f"How long a request waits for the cluster.  [default: {TIMEOUT_MS}]",
)
@click.option("--listen", default=DEFAULT_LISTEN, show_default=True, metavar="HOST:PORT", help="Where it listens.")
@click.option("--topic", default=DEFAULT_TOPIC, show_default=True, metavar="NAME", help="The topic of the schemas.")
@click.option("--token-file", type=click.Path(dir_okay=False), help="A file with a token that clients must show.")
def registry(
    bootstrap: str | None,
    command_config: Path | None,
    timeout_ms: int | None,
    listen: str,
    topic: str,
    token_file: str | None,
) -> None:
    """Serve a schema registry, with Confluent's routes, over a cluster.

    Its state is in the topic _schemas. Any number of registries may serve one cluster.

    \b
    barnabas registry -b localhost:9092
    """
    host, port = listen_address(listen)
    _check_access(host, token_file)
    properties = {} if command_config is None else read_command_config(str(command_config))
    session = Session(bootstrap, properties, timeout_ms or TIMEOUT_MS, OUTPUTS["json"]())
    with needed_by("barnabas registry", "registry"):
        serving = import_module("barnabas.http_serving")
        rooms = [import_module(f"barnabas.registry.{each}") for each in ("app", "registry", "schemas_log")]
    app, registries, logs = rooms
    connect = _connector(session)
    _open_topic(logs, connect, topic)
    listener = listening(listen, host, port, serving.listening_socket)
    where = f"http://{format_address(host, listener.getsockname()[1])}"
    made = registries.Registry(connect, topic, timeout_s=session.timeout_ms / 1000)
    serving.HttpServer(
        app.registry_app(made, host=host, token_file=token_file),
        lambda: click.echo(f"schema registry of {printable(session.bootstrap)} on {where}"),
    ).run([listener])


def _check_access(host: str, token_file: str | None) -> None:
    try:
        if token_file is not None:
            read_token(token_file)
    except BadTokenFile as error:
        raise Failure(str(error)) from None
    if token_file is None and not (host == "localhost" or (_is_address(host) and is_loopback(host))):
        raise Failure(
            f"{printable(host)} may be reached from other machines, and everybody there could change schemas",
            "--token-file FILE asks clients for a token",
        )


def _is_address(host: str) -> bool:
    return ":" in host or host.replace(".", "").isdigit()


def _connector(session: Session) -> Callable[[], Cluster]:
    # A session waits for a broker that is about to start; a request says instead that none answers.
    return lambda: Cluster(session.bootstrap, "barnabas-registry", session.timeout_ms, security=session.security)


def _open_topic(logs: Any, connect: Callable[[], Cluster], topic: str) -> None:
    """Create the topic if it does not exist; end with one line if a registry cannot use it."""
    with connect() as cluster:
        try:
            logs.SchemasLog(cluster, topic).open()
        except KafkaError as error:
            raise failure_of(error, topic) from None
        except logs.BadSchemasTopic as error:
            raise Failure(str(error)) from None
