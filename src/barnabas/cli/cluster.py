"""`barnabas cluster`: info, health."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import click

from barnabas.cli.failure import Quiet
from barnabas.cli.output import Table
from barnabas.cli.session import Session, session_options
from barnabas.client.admin import Admin, ClusterDescription, LogDir, PartitionDescription, Quorum, TopicPartition
from barnabas.protocol.errors import ErrorCode, KafkaError

_NAMED_MAX = 5


@click.group()
def cluster() -> None:
    """The cluster: what it is, and whether it is healthy."""


@cluster.command()
@session_options
def info(session: Session) -> None:
    """Show the cluster's id, controller, brokers, and how much it holds.

    \b
    barnabas cluster info
    """
    with session.admin() as admin:
        found = admin.describe_cluster()
        quorum = _quorum(admin)
        topics = admin.list_topics(internal=True)
    internal = sum(topic.is_internal for topic in topics)
    columns = (
        "CLUSTER-ID", "CONTROLLER", "BROKERS", "TOPICS", "INTERNAL-TOPICS", "PARTITIONS", "VOTERS", "METADATA-OFFSET",
    )  # fmt: skip
    row = (
        found.cluster_id,
        _controller(found, quorum),
        [node.id for node in found.brokers],
        len(topics) - internal,
        internal,
        sum(len(topic.partitions) for topic in topics),
        None if quorum is None else [each.id for each in quorum.replicas if each.is_voter],
        None if quorum is None else quorum.high_watermark,
    )
    table = Table(columns, [row], vertical=True)
    session.output.show(table.objects()[0], table)


def _quorum(admin: Admin) -> Quorum | None:
    """Return the quorum; None if the brokers are too old to have one."""
    try:
        return admin.describe_quorum()
    except KafkaError as error:
        if error.code != ErrorCode.UNSUPPORTED_VERSION:
            raise
        return None


def _controller(found: ClusterDescription, quorum: Quorum | None) -> int | None:
    # Brokers of a KRaft cluster name any broker as the controller; the quorum's leader is the one.
    controller = found.controller_id if quorum is None else quorum.leader
    return controller if controller >= 0 else None


class Problem(NamedTuple):
    """Something that is not as it should be, where, and what helps."""

    problem: str
    where: list[str]
    remedy: str


@cluster.command()
@session_options
def health(session: Session) -> None:
    """Check controllers, brokers, log directories and partitions; the exit code is 1 if something is wrong.

    \b
    barnabas cluster health
    """
    with session.admin() as admin:
        found = admin.describe_cluster()
        quorum = _quorum(admin)
        log_dirs = admin.describe_log_dirs()
        partitions = admin.describe_partitions()
    problems = [
        *_of_controllers(found, quorum),
        *_of_brokers(found),
        *_of_log_dirs(log_dirs),
        *_of_partitions(partitions),
    ]
    columns = ("HEALTHY", "CONTROLLER", "BROKERS", "PARTITIONS", "PROBLEMS")
    row = (not problems, _controller(found, quorum), len(found.brokers), len(partitions), len(problems))
    summary = Table(columns, [row], vertical=True)
    table = Table(
        ("PROBLEM", "COUNT", "WHERE", "WHAT-TO-DO"),
        [(each.problem, len(each.where), _shortened(each.where), each.remedy) for each in problems],
        below=("WHERE", "WHAT-TO-DO"),
    )
    data = summary.objects()[0] | {"problems": [each._asdict() for each in problems]}
    session.output.show(data, summary, *([table] if problems else []))
    if problems:
        raise Quiet


def _shortened(where: list[str]) -> list[str]:
    more = len(where) - _NAMED_MAX
    return where if more <= 0 else [*where[:_NAMED_MAX], f"and {more} more"]


def _of_controllers(found: ClusterDescription, quorum: Quorum | None) -> Iterator[Problem]:
    if _controller(found, quorum) is None:
        yield Problem("no controller", ["the quorum"], "start a majority of the controllers")


def _of_brokers(found: ClusterDescription) -> Iterator[Problem]:
    if found.fenced:
        names = [f"broker {each}" for each in found.fenced]
        yield Problem("fenced broker", names, "start it; its log says why if it runs")


def _of_log_dirs(outcomes: dict[int, list[LogDir] | KafkaError]) -> Iterator[Problem]:
    for broker, outcome in sorted(outcomes.items()):
        if isinstance(outcome, KafkaError):
            yield Problem(f"broker does not answer: {outcome.message}", [f"broker {broker}"], "see its log")
            continue
        failed = [f"broker {broker}: {each.path}" for each in outcome if each.error is not None]
        if failed:
            yield Problem("offline log directory", failed, "see the broker's log, and mend the disk")


def _of_partitions(partitions: dict[TopicPartition, PartitionDescription]) -> Iterator[Problem]:
    leaderless: dict[tuple[str, str], list[str]] = {}
    lagging = []
    for at, partition in sorted(partitions.items()):
        why = partition.why_leaderless
        if why is not None:
            leaderless.setdefault((why.reason, why.remedy), []).append(str(at))
        elif len(partition.isr) < len(partition.replicas):
            lagging.append(str(at))
    for (reason, remedy), where in leaderless.items():
        yield Problem(f"partition without a leader: {reason}", where, remedy)
    if lagging:
        remedy = "`barnabas topic describe` shows which replicas are not in sync: start their brokers, or wait"
        yield Problem("under-replicated partition", lagging, remedy)
