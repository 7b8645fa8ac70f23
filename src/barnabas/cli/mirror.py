"""`barnabas mirror`: copy topics and groups of a cluster into another one."""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable
from contextlib import closing

import click
from confluent_kafka import Consumer

from barnabas.cli.failure import Failure, failure_of
from barnabas.cli.librdkafka import connected
from barnabas.cli.progress import Measured, shown
from barnabas.cli.record_rewrite import load_rewrite
from barnabas.cli.sending_once import create_state_topic, explained_library, transactional_producer
from barnabas.cli.session import Session, session_options_of_two_clusters
from barnabas.cli.termination import ends_cleanly
from barnabas.cli.topic_arguments import whole_name
from barnabas.client.admin import Admin
from barnabas.client.cuts import is_valid_cut_name
from barnabas.client.errors import ClientError
from barnabas.mirror.groups import GroupOffsets
from barnabas.mirror.mirror import Clients, Mirror, Wanted, transactional_id
from barnabas.mirror.notes import STATE_TOPIC
from barnabas.mirror.source_records import SOURCE_SETTINGS
from barnabas.mirror.stopped import MirrorStopped
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.retries.committed_records import READER_SETTINGS
from barnabas.retries.forwarding import Forwarder
from barnabas.words.printable import printable
from barnabas.words.times import parse_time_ms

_COLUMNS = ("TOPIC", "PARTITIONS", "COPIED", "DROPPED", "LAG")


@click.command()
@click.argument("source", metavar="SOURCE")
@click.argument("target", metavar="TARGET")
@click.option("--topics", metavar="REGEX,…", help="Names, or regular expressions of whole names.  [default: all]")
@click.option("--mask", metavar="FILE.PY:FUNCTION", help="Gets a Record, returns one, or None to drop it.")
@click.option(
    "--since", metavar="TIME", help="-1h: where partitions begin that were not mirrored yet.  [default: start]"
)
@click.option("--name", help="The name of the mirror.  [default: the source's cluster id]")
@click.option("--until-end", is_flag=True, help="End at the offsets that the source has now.")
@click.option("--no-groups", is_flag=True, help="Leave groups alone.")
@click.option("--skip-deleted", is_flag=True, help="Go on behind records that were deleted before they were copied.")
@session_options_of_two_clusters
def mirror(
    sessions: tuple[Session, Session],
    topics: str | None,
    mask: str | None,
    since: str | None,
    name: str | None,
    until_end: bool,
    no_groups: bool,
    skip_deleted: bool,
) -> None:
    """Copy topics and groups of the cluster SOURCE into the cluster TARGET.

    Both are addresses, HOST:PORT. Topics get the same names, partitions and settings, each record is written once, and the offsets of
    groups follow, translated. It runs until Ctrl-C; the same command goes on, also after a kill. Internal topics (__…) are not copied.

    \b
    barnabas mirror kafka:9092 localhost:9092
    barnabas mirror kafka:9092 localhost:9092 --since -1h
    """
    if name is not None and not is_valid_cut_name(name):
        raise click.UsageError(
            f"'{printable(name)}' is not a valid name: use letters, digits, '.', '_' and '-' with --name"
        )
    wanted = Wanted(
        _matching(topics),
        None if mask is None else load_rewrite(mask, "--mask"),
        "" if mask is None else f"--mask {shlex.quote(mask)}",
        None if since is None else _time(since),
        until_end,
        not no_groups,
        skip_deleted,
    )
    source, target = sessions
    with source.admin() as source_admin, target.admin() as target_admin:
        source_id = _source_id((source_admin, target_admin), sessions)
        name = name or source_id
        create_state_topic(target_admin, STATE_TOPIC)
        consumers: list[Consumer] = [
            connected(Consumer, source, (), {**SOURCE_SETTINGS, "group.id": "barnabas-mirror"}),
            connected(Consumer, target, (), {**READER_SETTINGS, "group.id": "barnabas-mirror"}),
        ]
        with (
            closing(consumers[0]),
            closing(consumers[1]),
            explained_library("the mirror was interrupted: the same command goes on"),
            ends_cleanly(),
        ):
            forwarder = Forwarder(transactional_producer(target, transactional_id(name)))
            clients = Clients(source_admin, consumers[0], target_admin, consumers[1], forwarder)
            copy = Mirror(name, source_id, clients, wanted, _say)
            _run(copy, wanted, sessions)
            rows = _rows(copy)
    target.output.table(_COLUMNS, rows, hidden_first=("DROPPED",))


def _run(copy: Mirror, wanted: Wanted, sessions: tuple[Session, Session]) -> None:
    try:
        with shown(lambda: _measured(copy)):
            copy.run()
    except MirrorStopped as stopped:
        raise Failure(str(stopped), stopped.hint) from None
    except ClientError as error:
        raise Failure(failure_of(error).message, "the same command goes on when the cluster runs again") from None
    except KeyboardInterrupt:
        if wanted.until_end:
            raise
        if wanted.groups:
            # With connections of their own: the others may be amid a response.
            with sessions[0].admin() as source, sessions[1].admin() as target:
                GroupOffsets(source, target, _say).move(copy.partitions)


def _say(line: str) -> None:
    click.echo(printable(line), err=True)


def _measured(copy: Mirror) -> Measured:
    partitions = list(copy.partitions.values())
    copied = sum(each.copied for each in partitions)
    lag = sum(copy.lags().values())
    return Measured(f"{copied:,} records copied  lag {lag:,}  {len(partitions):,} partitions")


def _rows(copy: Mirror) -> list[tuple[str, int, int, int, int]]:
    """Return a row for each topic."""
    lags = copy.lags()
    rows = []
    for topic in sorted({topic for topic, _ in copy.partitions}):
        mine = {where: each for where, each in copy.partitions.items() if where[0] == topic}
        copied, dropped = sum(each.copied for each in mine.values()), sum(each.dropped for each in mine.values())
        rows.append((topic, len(mine), copied, dropped, sum(lags[where] for where in mine)))
    return rows


def _source_id(admins: tuple[Admin, Admin], sessions: tuple[Session, Session]) -> str:
    """Return the id of the source's cluster.

    Raises:
        Failure: it is the target's, too, or a cluster cannot be reached.
    """
    source, target = (_cluster_id(*each) for each in zip(admins, ("SOURCE", "TARGET"), strict=True))
    if source == target:
        raise Failure(
            f"{sessions[0].bootstrap} and {sessions[1].bootstrap} are the same cluster, {source}",
            "name another TARGET; within a cluster, replay copies a topic",
        )
    return str(source)


def _cluster_id(admin: Admin, argument: str) -> str | None:
    try:
        return admin.describe_cluster().cluster_id
    except KafkaError as error:
        if error.code is not ErrorCode.BROKER_NOT_AVAILABLE:
            raise
        # The usual hint is about -b, which this command does not have.
        raise Failure(failure_of(error).message, f"{argument} is the address of a broker, HOST:PORT") from None


def _matching(topics: str | None) -> Callable[[str], bool]:
    if topics is None:
        return lambda name: True
    patterns = [whole_name(each.strip()) for each in topics.split(",") if each.strip()]
    if not patterns:
        raise click.UsageError("--topics is empty: name a topic")
    return lambda name: any(pattern.fullmatch(name) for pattern in patterns)


def _time(text: str) -> int:
    try:
        return parse_time_ms(text, time.time_ns() // 1_000_000)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--since") from None
