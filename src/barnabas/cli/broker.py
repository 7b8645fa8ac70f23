"""`barnabas broker`: list, describe, logdirs, move, self-test."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import click

from barnabas.cli.broker_move import move
from barnabas.cli.broker_self_test import self_test
from barnabas.cli.changed_settings import SHORT_SOURCES
from barnabas.cli.failure import failure_of
from barnabas.cli.named_brokers import named_brokers
from barnabas.cli.output import Found, Table
from barnabas.cli.session import Session, session_options
from barnabas.client.admin import (
    Admin,
    ConfigEntry,
    ConfigResource,
    LogDir,
    Node,
    PartitionDescription,
    PartitionMetadata,
    ResourceType,
    result,
)
from barnabas.protocol.errors import KafkaError
from barnabas.words.byte_sizes import format_bytes


@click.group()
def broker() -> None:
    """Brokers: list, describe, sizes of their log directories, moves between these."""


broker.add_command(move)
broker.add_command(self_test)


@broker.command(name="list")
@session_options
def list_(session: Session) -> None:
    """List brokers, with the partitions that each leads and holds."""
    with session.admin() as admin:
        found = admin.describe_cluster()
        leads, holds = partition_counts(admin)
    states = dict.fromkeys(found.brokers, "serving") | dict.fromkeys(found.fenced, "fenced")
    rows = [
        (node.id, node.host, node.port, node.rack, states[node], leads[node.id], holds[node.id])
        for node in sorted(states, key=lambda node: node.id)
    ]
    columns = ("BROKER", "HOST", "PORT", "RACK", "STATE", "LEADERS", "REPLICAS")
    hidden_first = ("RACK", "LEADERS", "REPLICAS")
    session.output.table(columns, rows, hidden_first=hidden_first)


def partition_counts(admin: Admin) -> tuple[Counter[int], Counter[int]]:
    """Return how many partitions each broker leads, and of how many it has a replica."""
    return counts_of(each for topic in admin.list_topics(internal=True) for each in topic.partitions)


def counts_of(partitions: Iterable[PartitionMetadata | PartitionDescription]) -> tuple[Counter[int], Counter[int]]:
    """Return how many of these partitions each broker leads, and of how many it has a replica."""
    leads: Counter[int] = Counter()
    holds: Counter[int] = Counter()
    for each in partitions:
        leads[each.leader] += 1
        holds.update(each.replicas)
    return leads, holds


@broker.command()
@click.argument("ids", nargs=-1, type=int, metavar="[ID]…")
@session_options
def describe(session: Session, ids: tuple[int, ...]) -> None:
    """Describe brokers: address, partitions, disk space, and the settings that differ from their default.

    \b
    barnabas broker describe 1
    """
    with session.admin() as admin:
        nodes = named_brokers(admin, ids)
        leads, holds = partition_counts(admin)
        log_dirs = admin.describe_log_dirs([node.id for node in nodes])
        configs = admin.describe_configs([ConfigResource(ResourceType.BROKER, str(node.id)) for node in nodes])
    data: list[dict[str, object]] = []
    tables: list[Table] = []
    for node in nodes:
        entries = result(configs[ConfigResource(ResourceType.BROKER, str(node.id))])
        found = log_dirs[node.id]
        summary = _summary(node, leads[node.id], holds[node.id], found)
        settings = _settings(entry for entry in entries if not entry.is_default)
        data.append(
            summary.objects()[0] | {"log_dirs": _objects(node.id, result(found)), "configs": settings.objects()}
        )
        tables += [summary, settings] if settings.rows else [summary]
    session.output.show(data, *tables)


def _summary(node: Node, leads: int, holds: int, found: list[LogDir] | KafkaError) -> Table:
    dirs = result(found)
    columns = ("BROKER", "HOST", "PORT", "RACK", "LEADERS", "REPLICAS", "SIZE", "FREE", "LOG-DIRS")
    size = format_bytes(sum(replica.size_in_bytes for each in dirs for replica in each.replicas))
    free = [format_bytes(each.usable_bytes) for each in dirs if each.usable_bytes >= 0]
    row = (node.id, node.host, node.port, node.rack, leads, holds, size, free, [_named(each) for each in dirs])
    return Table(columns, [row], vertical=True)


def _named(directory: LogDir) -> str:
    state = "offline" if directory.error else "cordoned" if directory.is_cordoned else ""
    return f"{directory.path} ({state})" if state else directory.path


def _settings(entries: Iterable[ConfigEntry]) -> Table:
    rows = [(entry.name, "(hidden)" if entry.sensitive else entry.value, entry.source.name) for entry in entries]
    return Table(("KEY", "VALUE", "SOURCE"), rows, hidden_first=("SOURCE",), shorter={"SOURCE": SHORT_SOURCES})


@broker.command()
@click.argument("ids", nargs=-1, type=int, metavar="[ID]…")
@click.option("--topic", "topics", multiple=True, help="Only this topic; repeat.")
@click.option("--partitions", "by_partition", is_flag=True, help="Also the size of each partition.")
@session_options
def logdirs(session: Session, ids: tuple[int, ...], topics: tuple[str, ...], by_partition: bool) -> None:
    """Show the log directories of brokers: how many replicas, their size, and the free space of the disk.

    \b
    barnabas broker logdirs --partitions --topic orders
    """
    with session.admin() as admin:
        session.output.show_found(log_dirs_of(admin, ids, topics, by_partition=by_partition))


def log_dirs_of(
    admin: Admin, ids: Iterable[int] = (), topics: tuple[str, ...] = (), *, by_partition: bool = False
) -> Found:
    """Return the log directories of brokers, and their replicas.

    Args:
        ids: of brokers; all if empty.
        topics: only replicas of these topics; all if empty.
        by_partition: with a table of the replicas.

    Raises:
        Failure: a broker does not serve or answer.
        KafkaError: a topic does not exist.
    """
    for described in admin.describe_topics(topics).values():
        result(described)
    outcomes = admin.describe_log_dirs([node.id for node in named_brokers(admin, ids)])
    chosen = {broker_id: _only(_dirs(broker_id, found), topics) for broker_id, found in sorted(outcomes.items())}
    rows = [
        (
            broker_id,
            f"{each.path} (cordoned)" if each.is_cordoned else each.path,
            sum(not replica.is_future for replica in each.replicas),
            format_bytes(sum(replica.size_in_bytes for replica in each.replicas)),
            format_bytes(each.usable_bytes) if each.usable_bytes >= 0 else None,
            format_bytes(each.total_bytes) if each.total_bytes >= 0 else None,
            each.error.code.name if each.error else None,
        )
        for broker_id, dirs in chosen.items()
        for each in dirs
    ]
    columns = ("BROKER", "DIRECTORY", "REPLICAS", "SIZE", "FREE", "DISK", "ERROR")
    tables = [Table(columns, rows, hidden_first=("ERROR", "DISK"))]
    if by_partition:
        tables.append(_replicas(chosen))
    return Found([each for broker_id, dirs in chosen.items() for each in _objects(broker_id, dirs)], tables)


def _dirs(broker_id: int, found: list[LogDir] | KafkaError) -> list[LogDir]:
    if isinstance(found, KafkaError):
        raise failure_of(found, f"broker {broker_id}")
    return found


def _only(dirs: list[LogDir], topics: tuple[str, ...]) -> list[LogDir]:
    if not topics:
        return dirs
    return [each._replace(replicas=[one for one in each.replicas if one.partition.topic in topics]) for each in dirs]


def _replicas(chosen: dict[int, list[LogDir]]) -> Table:
    """Return a row for each replica, and one for the copy of each replica that moves to another directory."""
    rows = [
        (
            replica.partition.topic,
            replica.partition.partition,
            broker_id,
            format_bytes(replica.size_in_bytes),
            replica.offset_lag,
            f"{each.path} (copy)" if replica.is_future else each.path,
        )
        for broker_id, dirs in chosen.items()
        for each in dirs
        for replica in each.replicas
    ]
    columns = ("TOPIC", "PARTITION", "BROKER", "SIZE", "OFFSET-LAG", "DIRECTORY")
    return Table(columns, sorted(rows), hidden_first=("OFFSET-LAG",))


def _objects(broker_id: int, dirs: list[LogDir]) -> list[dict[str, object]]:
    """Return log directories as JSON objects, sizes in bytes."""
    return [
        {
            "broker": broker_id,
            "directory": each.path,
            "error": each.error.code.name if each.error else None,
            "cordoned": each.is_cordoned,
            "size_bytes": sum(replica.size_in_bytes for replica in each.replicas),
            "usable_bytes": each.usable_bytes if each.usable_bytes >= 0 else None,
            "total_bytes": each.total_bytes if each.total_bytes >= 0 else None,
            "replicas": [
                {
                    "topic": replica.partition.topic,
                    "partition": replica.partition.partition,
                    "size_bytes": replica.size_in_bytes,
                    "offset_lag": replica.offset_lag,
                    "is_future": replica.is_future,
                }
                for replica in each.replicas
            ],
        }
        for each in dirs
    ]
