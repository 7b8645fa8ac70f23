"""`barnabas broker move`: replicas go to another directory of their broker.

The broker does the work (`client.directory_moves`), and goes on with it when the command ends. One call has one target directory.
`kafka-reassign-partitions --execute` does the same for a file that names `log_dirs`.

Source: KIP-113.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import NamedTuple

import click

from barnabas.cli.cluster_throttle import Rate
from barnabas.cli.failure import Failure, Failures, failure_of
from barnabas.cli.named_brokers import named_brokers
from barnabas.cli.output import Found, Table
from barnabas.cli.partitions import named_partitions
from barnabas.cli.progress import Measured, shown
from barnabas.cli.session import Session, complete_brokers, complete_topics, session_options
from barnabas.cli.wording import counted, listed
from barnabas.client.admin import (
    Admin,
    ConfigChange,
    ConfigResource,
    ConfigSource,
    LogDir,
    ResourceType,
    TopicPartition,
    result,
)
from barnabas.client.configs import ConfigOperation
from barnabas.protocol.errors import KafkaError
from barnabas.words.byte_sizes import format_bytes
from barnabas.words.printable import printable

_LIMIT = "replica.alter.log.dirs.io.max.bytes.per.second"


class _Replica(NamedTuple):
    """A replica, and where its copy is if it is being moved."""

    directory: str
    size_bytes: int
    copy_in: str | None
    copied_bytes: int


@click.command()
@click.argument("broker_id", type=click.IntRange(min=0), metavar="BROKER", shell_complete=complete_brokers)
@click.argument("partitions", nargs=-1, metavar="[TOPIC[:0,1]]…", shell_complete=complete_topics)
@click.option("--to", "target", required=True, metavar="DIRECTORY", help="Where the replicas go, as in log.dirs.")
@click.option(
    "--from", "source", metavar="DIRECTORY", help="Only replicas that are in DIRECTORY. Without TOPIC, all of them."
)
@click.option("--throttle", type=Rate(), metavar="RATE", help="Copy at most this many bytes a second, as 20MB.")
@click.option("-d", "--dry-run", is_flag=True, help="Only show what would be moved.")
@session_options
def move(
    session: Session,
    broker_id: int,
    partitions: tuple[str, ...],
    target: str,
    source: str | None,
    throttle: int | None,
    dry_run: bool,
) -> None:
    """Move replicas of a broker to another of its directories, and wait until they are there.

    Producers and consumers go on meanwhile. Ctrl-C ends the command, and the broker goes on with the moves. To cancel a move, name the
    directory where the replica is now as --to.

    \b
    barnabas broker move 1 orders:0,3 --to /disk-2 --dry-run
    barnabas broker move 1 --from /disk-1 --to /disk-2 --throttle 50MB
    """
    if source is None and not partitions:
        raise click.UsageError("Name partitions, --from DIRECTORY, or both.")
    with session.admin() as admin:
        named_brokers(admin, [broker_id])
        wanted = None if not partitions else named_partitions(admin, partitions)
        found = admin.describe_log_dirs([broker_id], wanted)[broker_id]
        if isinstance(found, KafkaError):
            raise failure_of(found, f"broker {broker_id}")
        to = _directory(broker_id, found, target)
        chosen = _chosen(broker_id, wanted, found, source, to)
        plan = {at: each for at, each in chosen.items() if each.directory != to.path or each.copy_in is not None}
        _check(broker_id, to, plan)
        failures: dict[TopicPartition, Failure] = {}
        if plan and not dry_run:
            with _limited(admin, broker_id, throttle):
                failures = _carry_out(admin, broker_id, plan, to.path)
    session.output.show_found(_found(chosen, to.path, failures, dry_run=dry_run))
    if not plan:
        click.echo(f"nothing to move: {_why_nothing(chosen, source, to)}", err=True)
    if failures:
        raise Failures(list(failures.values()))


def _directory(broker_id: int, found: list[LogDir], path: str) -> LogDir:
    """Return the directory of a path.

    Raises:
        Failure: the broker has no such directory, or it is offline.
    """
    for each in found:
        if each.path.rstrip("/") == path.rstrip("/"):
            if each.error is not None:
                raise Failure(
                    f"{printable(each.path)} of broker {broker_id} is offline: {each.error.code.name}",
                    "mend its disk and restart the broker; if the disk is lost, put an empty one in its place",
                )
            return each
    raise Failure(
        f"broker {broker_id} has no directory {printable(path)}",
        f"write one as the broker does: {', '.join(printable(each.path) for each in found)}",
    )


def _chosen(
    broker_id: int, wanted: list[TopicPartition] | None, found: list[LogDir], source: str | None, to: LogDir
) -> dict[TopicPartition, _Replica]:
    """Return the replicas that are meant.

    Raises:
        Failure: the broker has no replica of a partition, or the directories are the same.
    """
    copies = {each.partition: (there.path, each) for there in found for each in there.replicas if each.is_future}
    held = {}
    for there in found:
        for each in there.replicas:
            if not each.is_future:
                path, copy = copies.get(each.partition, (None, None))
                held[each.partition] = _Replica(
                    there.path, each.size_in_bytes, path, 0 if copy is None else copy.size_in_bytes
                )
    if absent := [at for at in wanted or () if at not in held]:
        raise Failure(
            f"broker {broker_id} has no replica of {listed(absent)}",
            f"`barnabas topic describe {printable(absent[0].topic)}` shows which brokers have one",
        )
    if source is not None:
        path = _directory(broker_id, found, source).path
        if path == to.path:
            raise Failure("--from and --to are the same directory", "name another one as --to")
        held = {at: each for at, each in held.items() if each.directory == path}
    return dict(sorted(held.items()))


def _why_nothing(chosen: Mapping[TopicPartition, _Replica], source: str | None, to: LogDir) -> str:
    if chosen:
        return f"what is named is in {printable(to.path)} already"
    return f"no such replica is in {printable(source or '')}"


def _check(broker_id: int, to: LogDir, plan: Mapping[TopicPartition, _Replica]) -> None:
    """Raise Failure if a directory cannot take these replicas."""
    arriving = [each for each in plan.values() if each.directory != to.path]
    if plan and to.is_cordoned:
        what = (
            "takes no other replica" if arriving else "is where these replicas are, and their moves cannot be cancelled"
        )
        raise Failure(
            f"{printable(to.path)} {what}: it is cordoned",
            f"take it out of cordoned.log.dirs: `barnabas config alter broker {broker_id} --delete cordoned.log.dirs`, or in the file"
            " of the node",
        )
    needed = sum(each.size_bytes - (each.copied_bytes if each.copy_in == to.path else 0) for each in arriving)
    if 0 <= to.usable_bytes < needed:
        raise Failure(
            f"{printable(to.path)} has {format_bytes(to.usable_bytes)} free,"
            f" and these replicas need {format_bytes(needed)} more",
            "move fewer of them",
        )


@contextmanager
def _limited(admin: Admin, broker_id: int, rate: int | None) -> Iterator[None]:
    """Limit the copying between the broker's directories while the block runs, then set what was set before."""
    if rate is None:
        yield
        return
    resource = ConfigResource(ResourceType.BROKER, str(broker_id))
    entries = result(admin.describe_configs([resource], names=[_LIMIT])[resource])
    own = [each.value for each in entries if each.source == ConfigSource.DYNAMIC_BROKER_CONFIG]
    _alter(admin, resource, ConfigChange(_LIMIT, str(rate)))
    try:
        yield
    except BaseException:
        change = f"--set {_LIMIT}={own[0]}` sets the former one" if own else f"--delete {_LIMIT}` removes it"
        stays = f"the limit of {format_bytes(rate)} a second stays"
        click.echo(f"{stays}: `barnabas config alter broker {broker_id} {change}", err=True)
        raise
    _alter(admin, resource, ConfigChange(_LIMIT, own[0]) if own else ConfigChange(_LIMIT, None, ConfigOperation.DELETE))
    if own:
        click.echo(f"the limit that was set before holds again: {own[0]} bytes a second", err=True)


def _alter(admin: Admin, resource: ConfigResource, change: ConfigChange) -> None:
    error = admin.alter_configs({resource: [change]})[resource]
    if error is not None:
        raise failure_of(error, f"{_LIMIT} of broker {resource.name}")


def _carry_out(
    admin: Admin, broker_id: int, plan: Mapping[TopicPartition, _Replica], to: str
) -> dict[TopicPartition, Failure]:
    """Move the replicas and wait; return a failure for each that is not in its new directory."""
    total = sum(each.size_bytes for each in plan.values())
    left = {at: each.size_bytes for at, each in plan.items()}

    def looked(copied: Mapping[TopicPartition, int]) -> None:
        for at, each in plan.items():
            left[at] = max(each.size_bytes - copied[at], 0) if at in copied else 0

    def measure() -> Measured:
        done = total - sum(left.values())
        moving = sum(1 for each in left.values() if each)
        return Measured(f"{counted(moving, 'replica')} to copy", done, total)

    outcomes = admin.alter_replica_log_dirs(broker_id, dict.fromkeys(plan, to))
    failures = {at: failure_of(error, f"partition {at}") for at, error in outcomes.items() if error is not None}
    begun = [at for at in plan if at not in failures]
    try:
        with shown(measure):
            there = admin.await_directory_moves(broker_id, begun, looked=looked) if begun else {}
    except KafkaError:
        click.echo("the broker goes on with the moves when it runs again: type the same command then", err=True)
        raise
    except KeyboardInterrupt:
        commands = _cancelling(broker_id, plan)
        click.echo(f"the broker goes on with the moves that have begun; to cancel: {commands}", err=True)
        raise
    for at in begun:
        if at not in there:
            failures[at] = Failure(f"broker {broker_id} has no replica of {at} any longer")
        elif there[at] != to:
            failures[at] = Failure(
                f"the move of {at} has ended early: the replica is in {printable(there[at])}",
                "somebody ended it, or the broker gave it up: its log says why",
            )
    return dict(sorted(failures.items()))


def _cancelling(broker_id: int, plan: Mapping[TopicPartition, _Replica]) -> str:
    """Return the commands that cancel the moves of replicas: one for each directory where some are."""
    named: dict[str, dict[str, list[str]]] = {}
    for at, each in plan.items():
        named.setdefault(each.directory, {}).setdefault(at.topic, []).append(str(at.partition))
    commands = []
    for path, topics in named.items():
        partitions = " ".join(f"{topic}:{','.join(indexes)}" for topic, indexes in topics.items())
        commands.append(f"`barnabas broker move {broker_id} {printable(partitions)} --to {printable(path)}`")
    return ", ".join(commands)


def _found(
    chosen: Mapping[TopicPartition, _Replica], to: str, failed: Mapping[TopicPartition, Failure], *, dry_run: bool
) -> Found:
    rows: list[tuple[object, ...]] = []
    data: list[dict[str, object]] = []
    for at, each in chosen.items():
        if at not in failed:
            status = _status(each, to, dry_run=dry_run)
            rows.append((*at, each.directory, to, format_bytes(each.size_bytes), status))
            data.append(
                {
                    "topic": at.topic,
                    "partition": at.partition,
                    "directory": each.directory,
                    "new_directory": to,
                    "size_bytes": each.size_bytes,
                    "status": status,
                }
            )
    columns = ("TOPIC", "PARTITION", "DIRECTORY", "NEW-DIRECTORY", "SIZE", "STATUS")
    return Found(data, [Table(columns, rows, hidden_first=("SIZE", "STATUS"))] if rows else [])


def _status(replica: _Replica, to: str, *, dry_run: bool) -> str:
    if replica.directory == to:
        if replica.copy_in is None:
            return "already there"
        return "move would be cancelled" if dry_run else "move cancelled"
    if not dry_run:
        return "moved"
    if replica.copy_in == to:
        return "moves already"
    return "would be moved" if replica.copy_in is None else f"would be moved, in place of a move to {replica.copy_in}"
