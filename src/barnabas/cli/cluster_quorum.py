"""`barnabas cluster quorum`: the voters and observers of the metadata log."""

from __future__ import annotations

import click

from barnabas.cli.output import Found, Table
from barnabas.cli.session import Session, session_options
from barnabas.client.admin import Admin, ClusterDescription, Quorum, QuorumReplica
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.primitives import uuid_to_str
from barnabas.words.times import format_time_ms


@click.command()
@session_options
def quorum(session: Session) -> None:
    """Show who leads the metadata log, and how far its voters and observers have read.

    The times are those of the leader's clock; its own are the time of the answer.

    \b
    barnabas cluster quorum
    """
    with session.admin() as admin:
        session.output.show_found(described_quorum(admin))


def described_quorum(admin: Admin) -> Found:
    """Return the leader of the metadata log, and how far its replicas have read.

    Raises:
        KafkaError: UNSUPPORTED_VERSION from a broker without a quorum.
    """
    found = admin.describe_quorum()
    leader = found.leader if found.leader >= 0 else None
    columns = ("LEADER", "LEADER-EPOCH", "HIGH-WATERMARK")
    summary = Table(columns, [(leader, found.leader_epoch, found.high_watermark)], vertical=True)
    end = max((each.log_end_offset for each in found.replicas if each.id == found.leader), default=None)
    replicas = Table(
        ("NODE", "ROLE", "DIRECTORY", "END-OFFSET", "LAG", "LAST-FETCH", "LAST-CAUGHT-UP"),
        [_row(each, role_of(each, found), end) for each in found.replicas],
        hidden_first=("DIRECTORY", "LAST-FETCH", "END-OFFSET", "LAST-CAUGHT-UP"),
    )
    return Found(summary.objects()[0] | {"replicas": replicas.objects()}, [summary, replicas])


def role_of(replica: QuorumReplica, found: Quorum) -> str:
    """Return what a node is in the quorum, as Kafka's own tool calls it."""
    if replica.id == found.leader:
        return "leader"
    return "follower" if replica.is_voter else "observer"


def _row(replica: QuorumReplica, role: str, leader_end: int | None) -> tuple[object, ...]:
    end = replica.log_end_offset if replica.log_end_offset >= 0 else None
    directory = None if replica.directory_id is None else uuid_to_str(replica.directory_id)
    lag = None if end is None or leader_end is None else max(0, leader_end - end)
    return (replica.id, role, directory, end, lag, _time(replica.last_fetch_ms), _time(replica.last_caught_up_ms))


def _time(milliseconds: int) -> str | None:
    return format_time_ms(milliseconds) if milliseconds >= 0 else None


def quorum_of(admin: Admin) -> Quorum | None:
    """Return the quorum; None if the brokers are too old to have one."""
    try:
        return admin.describe_quorum()
    except KafkaError as error:
        if error.code != ErrorCode.UNSUPPORTED_VERSION:
            raise
        return None


def controller_of(found: ClusterDescription, quorum: Quorum | None) -> int | None:
    """Return the active controller: the quorum's leader, because brokers of a KRaft cluster name any of them."""
    controller = found.controller_id if quorum is None else quorum.leader
    return controller if controller >= 0 else None
