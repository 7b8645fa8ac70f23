"""`barnabas cluster status`: the cluster at a glance, what is wrong with it, and what helps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import click

from barnabas.cli.cluster_nodes import SILENT_MS
from barnabas.cli.cluster_quorum import controller_of, quorum_of
from barnabas.cli.failure import Quiet
from barnabas.cli.output import Found, Table
from barnabas.cli.session import Session, session_options
from barnabas.cli.wording import first_few
from barnabas.client.admin import (
    Admin,
    ClusterDescription,
    ConfigResource,
    ConfigSource,
    LogDir,
    PartitionDescription,
    Quorum,
    Reassignment,
    ResourceType,
    TopicPartition,
)
from barnabas.client.replication_throttle import RATES
from barnabas.client.topics import MIN_ISR
from barnabas.protocol.errors import ErrorCode, KafkaError


class Problem(NamedTuple):
    """A fault of the cluster, its place, and its remedy."""

    problem: str
    where: list[str]
    remedy: str


class _Partitions(NamedTuple):
    """The partitions that are not as they should be.

    Attributes:
        offline: without a leader; they are in no other list but `moving`.
        under_replicated: some of their replicas are not in sync. A replica that is being added is not counted.
        under_min_isr: they reject `acks=all`.
    """

    offline: dict[TopicPartition, PartitionDescription]
    under_replicated: list[TopicPartition]
    under_min_isr: list[TopicPartition]
    not_preferred: list[TopicPartition]


@click.command()
@session_options
def status(session: Session) -> None:
    """Show the cluster at a glance, and what is wrong: controllers, brokers, log directories, partitions.

    The exit code is 1 if something is wrong.

    \b
    barnabas cluster status
    """
    with session.admin() as admin:
        found = status_of(admin)
    session.output.show_found(found)
    if not found.data["healthy"]:
        raise Quiet


def status_of(admin: Admin, described: Mapping[TopicPartition, PartitionDescription] | None = None) -> Found:
    """Return the cluster at a glance; the data has `healthy`, counts, and `problems` with their remedies.

    Args:
        described: all partitions, if the caller has asked for them already.

    Raises:
        KafkaError: no broker answers.
    """
    found = admin.describe_cluster()
    quorum = quorum_of(admin)
    log_dirs = admin.describe_log_dirs(partitions=[])
    described = admin.describe_partitions() if described is None else described
    moving = _moving(admin)
    # Where all replicas are in sync, no `min.insync.replicas` says that there are too few.
    short = {at.topic for at, each in described.items() if len(each.isr) < len(each.replicas)}
    min_isr = _min_isr(admin, sorted(short))
    partitions = _sorted_out(described, moving, min_isr)
    problems = [
        *_of_controllers(found, quorum),
        *_of_brokers(found),
        *_of_log_dirs(log_dirs),
        *_of_partitions(partitions, [each.id for each in found.brokers]),
        *([] if moving else _of_throttle(admin, found)),
    ]
    columns = (
        "HEALTHY", "CONTROLLER", "VOTERS", "BROKERS", "FENCED", "PARTITIONS", "OFFLINE", "UNDER-MIN-ISR",
        "UNDER-REPLICATED", "NOT-PREFERRED-LEADER", "MOVING", "PROBLEMS",
    )  # fmt: skip
    row = (
        not problems,
        controller_of(found, quorum),
        None if quorum is None else len(quorum.voters),
        len(found.brokers),
        len(found.fenced),
        len(described),
        len(partitions.offline),
        len(partitions.under_min_isr),
        len(partitions.under_replicated),
        len(partitions.not_preferred),
        len(moving),
        len(problems),
    )
    summary = Table(columns, [row], vertical=True)
    table = Table(
        ("PROBLEM", "COUNT", "WHERE", "WHAT-TO-DO"),
        [(each.problem, len(each.where), first_few(each.where), each.remedy) for each in problems],
        below=("WHERE", "WHAT-TO-DO"),
    )
    data = summary.objects()[0] | {"problems": [each._asdict() for each in problems]}
    return Found(data, [summary, *([table] if problems else [])])


def _moving(admin: Admin) -> dict[TopicPartition, Reassignment]:
    """Return the partitions whose replicas move; none if the brokers are too old for the request."""
    try:
        return admin.list_reassignments()
    except KafkaError as error:
        if error.code != ErrorCode.UNSUPPORTED_VERSION:
            raise
        return {}


def _min_isr(admin: Admin, topics: list[str]) -> dict[str, int]:
    """Return `min.insync.replicas` of those topics that the cluster describes."""
    resources = [ConfigResource(ResourceType.TOPIC, name) for name in topics]
    outcomes = admin.describe_configs(resources, names=[MIN_ISR])
    return {
        resource.name: int(entry.value)
        for resource, entries in outcomes.items()
        if not isinstance(entries, KafkaError)
        for entry in entries
        if entry.name == MIN_ISR and entry.value is not None
    }


def _sorted_out(
    described: Mapping[TopicPartition, PartitionDescription],
    moving: dict[TopicPartition, Reassignment],
    min_isr: dict[str, int],
) -> _Partitions:
    found = _Partitions({}, [], [], [])
    for at, partition in sorted(described.items()):
        if partition.leader < 0:
            found.offline[at] = partition
            continue
        adding = moving[at].adding if at in moving else []
        wanted = len(set(partition.replicas) - set(adding))
        if len(partition.isr) < wanted:
            found.under_replicated.append(at)
        if len(partition.isr) < min(min_isr.get(at.topic, 1), len(partition.replicas)):
            found.under_min_isr.append(at)
        if partition.leader != partition.replicas[0]:
            found.not_preferred.append(at)
    return found


def _of_controllers(found: ClusterDescription, quorum: Quorum | None) -> Iterator[Problem]:
    if controller_of(found, quorum) is None:
        yield Problem("no controller", ["the quorum"], "start a majority of the controllers")
    silent = [] if quorum is None else [f"controller {each.id}" for each in quorum.silent_voters(SILENT_MS)]
    if silent:
        yield Problem("silent controller", silent, "start it; its log says why if it runs")


def _of_brokers(found: ClusterDescription) -> Iterator[Problem]:
    if found.fenced:
        names = [f"broker {each.id}" for each in found.fenced]
        remedy = "start it; its log says why if it runs; `barnabas cluster forget NODE` if it is gone for good"
        yield Problem("fenced broker", names, remedy)


def _of_log_dirs(outcomes: dict[int, list[LogDir] | KafkaError]) -> Iterator[Problem]:
    for broker, outcome in sorted(outcomes.items()):
        if isinstance(outcome, KafkaError):
            yield Problem(f"broker does not answer: {outcome.message}", [f"broker {broker}"], "see its log")
            continue
        failed = [f"broker {broker}: {each.path}" for each in outcome if each.error is not None]
        if failed:
            yield Problem(
                "offline log directory", failed, "see the broker's log, mend the disk, and restart the broker"
            )


def _of_partitions(partitions: _Partitions, serving: Sequence[int]) -> Iterator[Problem]:
    leaderless: dict[tuple[str, str], list[str]] = {}
    for at, partition in partitions.offline.items():
        if (why := partition.why_leaderless_among(serving)) is not None:
            leaderless.setdefault((why.reason, why.remedy), []).append(str(at))
    for (reason, remedy), where in leaderless.items():
        yield Problem(f"partition without a leader: {reason}", where, remedy)
    remedy = "`barnabas topic describe NAME` shows which replicas are not in sync: start their brokers, or wait"
    if partitions.under_min_isr:
        problem = f"partition that rejects acks=all: fewer replicas in sync than {MIN_ISR}"
        yield Problem(problem, list(map(str, partitions.under_min_isr)), remedy)
    if partitions.under_replicated:
        yield Problem("under-replicated partition", list(map(str, partitions.under_replicated)), remedy)


def _of_throttle(admin: Admin, found: ClusterDescription) -> Iterator[Problem]:
    """Yield the brokers whose replication is throttled, where no replica moves: a replica that falls behind catches up slowly."""
    brokers = [ConfigResource(ResourceType.BROKER, str(each.id)) for each in found.brokers]
    outcomes = admin.describe_configs(brokers, names=list(RATES))
    throttled = [
        f"broker {resource.name}"
        for resource, entries in outcomes.items()
        if not isinstance(entries, KafkaError)
        and any(each.name in RATES and each.value and each.source != ConfigSource.DEFAULT_CONFIG for each in entries)
    ]
    if throttled:
        remedy = "`barnabas cluster throttle off` removes it"
        yield Problem("replication is throttled, and no replica is being moved", throttled, remedy)
