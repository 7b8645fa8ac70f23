"""`barnabas cluster voter`: controllers join the quorum's voters, and leave them. KIP-853.

A controller that starts with `--no-initial-controllers` only reads the metadata log. `add` makes it a voter, `remove` the contrary.
"""

from __future__ import annotations

from collections.abc import Collection

import click

from barnabas.cli.cluster_quorum import role_of
from barnabas.cli.failure import Failure, failure_of
from barnabas.cli.session import Session, session_options
from barnabas.cli.wording import listed
from barnabas.client.admin import Admin, Quorum, QuorumReplica
from barnabas.client.bootstrap import parse_bootstrap
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.primitives import Uuid

_NODE = click.argument("node", type=click.IntRange(min=0), metavar="NODE")
_DRY_RUN = click.option("-d", "--dry-run", is_flag=True, help="Only check, and show what would be done.")


@click.group()
def voter() -> None:
    """Voters of the metadata log: add a controller, remove one."""


@voter.command()
@_NODE
@click.option("--at", required=True, metavar="HOST:PORT", help="Where the other controllers reach it.")
@click.option("--listener", metavar="NAME", help="The name of its listener, if it is not that of the other voters.")
@_DRY_RUN
@session_options
def add(session: Session, node: int, at: str, listener: str | None, dry_run: bool) -> None:
    """Let a controller that only reads the metadata log vote.

    Start the controller first: format its directory with --no-initial-controllers. The quorum's leader dials its address and waits
    until it has read the log.

    \b
    barnabas cluster voter add 4 --at four.example:9093
    """
    host, port = _address(at)
    with session.admin() as admin:
        found = admin.describe_quorum()
        directory_id = directory_of(_may_join(found, node))
        name = listener or found.listener
        if name is None:
            raise Failure("the brokers do not say how the voters' listeners are called", "name it with --listener")
        error = None if dry_run else admin.add_voter(node, directory_id, name, host, port)
        _finish(session, admin, node, error, "would vote" if dry_run else None)


@voter.command()
@_NODE
@_DRY_RUN
@session_options
def remove(session: Session, node: int, dry_run: bool) -> None:
    """Let a voter only read the metadata log, so that it can be stopped for good.

    The others must have a majority without it. If it leads the quorum, another voter takes over.

    \b
    barnabas cluster voter remove 1 --dry-run
    """
    with session.admin() as admin:
        found = admin.describe_quorum()
        directory_id = directory_of(_may_leave(found, node))
        error = None if dry_run else admin.remove_voter(node, directory_id)
        _finish(session, admin, node, error, "would only read" if dry_run else None)


def _address(text: str) -> tuple[str, int]:
    # The default port is that of brokers: a controller's must be given.
    given, _, port = text.rpartition(":")
    try:
        if given and port.isdigit():
            ((host, number),) = parse_bootstrap(text)
            return host, number
    except ValueError:
        pass
    raise click.BadParameter(f"{text!r} is not HOST:PORT", param_hint="--at")


def _may_join(found: Quorum, node: int) -> QuorumReplica:
    """Return an observer.

    Raises:
        Failure: it votes already, or it does not read the metadata log.
    """
    replica = next((each for each in found.replicas if each.id == node), None)
    if replica is None:
        raise Failure(
            f"node {node} does not read the metadata log",
            "start it with process.roles=controller, in a directory that was formatted with --no-initial-controllers",
        )
    if replica.is_voter:
        raise Failure(f"node {node} votes already", "`barnabas cluster quorum` shows the voters")
    return replica


def _may_leave(found: Quorum, node: int) -> QuorumReplica:
    """Return a voter.

    Raises:
        Failure: it does not vote, or the quorum would have no majority without it.
    """
    replica = next((each for each in found.voters if each.id == node), None)
    if replica is None:
        voters = ", ".join(str(each.id) for each in found.voters)
        raise Failure(f"node {node} does not vote", f"the voters are: {voters}")
    others = [each for each in found.voters if each.id != node]
    if not others:
        raise Failure(
            f"node {node} is the only voter", "add another one first: `barnabas cluster voter add NODE --at HOST:PORT`"
        )
    _check_majority(found, [node])
    return replica


def check_may_leave_together(found: Quorum, nodes: Collection[int]) -> None:
    """Check that the voters among some nodes can leave the quorum, one after the other.

    Raises:
        Failure: the voters cannot change, or the others would have no majority.
    """
    voters = [each for each in found.voters if each.id in nodes]
    if not voters:
        return
    names = listed([each.id for each in voters])
    if len(voters) == len(found.voters):
        raise Failure(f"node {names} has all votes", "keep a node that votes")
    if any(each.directory_id is None for each in voters):
        fixed = _fixed()
        raise Failure(f"node {names} votes, and {fixed.message}", fixed.hint)
    _check_majority(found, nodes)


def _check_majority(found: Quorum, leaving: Collection[int]) -> None:
    others = [each for each in found.voters if each.id not in leaving]
    silent = [each.id for each in found.silent_voters(_SILENT_MS) if each.id not in leaving]
    if (len(others) - len(silent)) * 2 <= len(others):
        raise Failure(
            f"of the other {len(others)} voters {listed(silent)} {'does' if len(silent) == 1 else 'do'} not read the metadata log",
            "start it first: without a majority the cluster has no controller",
        )


_SILENT_MS = 10_000
"""A voter that has not read for so long does not count; voters read twice a second."""


def directory_of(replica: QuorumReplica) -> Uuid:
    """Return the directory of a voter.

    Raises:
        Failure: the quorum does not know it, so its voters cannot change.
    """
    if replica.directory_id is None:
        raise _fixed()
    return replica.directory_id


def _fixed() -> Failure:
    return Failure(
        "the voters of this quorum are fixed: controller.quorum.voters lists them (kraft.version 0)",
        "`kafka-features.sh upgrade --feature kraft.version=1` lets them change",
    )


def _finish(session: Session, admin: Admin, node: int, error: KafkaError | None, would: str | None) -> None:
    """Print the quorum after the change, or the plan.

    Raises:
        Failure: the change failed.
    """
    if error is not None and error.code is ErrorCode.UNSUPPORTED_VERSION:
        raise _fixed()
    if error is not None:
        raise failure_of(error, f"node {node}")
    found = admin.describe_quorum()
    rows = [(each.id, (would if each.id == node else None) or role_of(each, found)) for each in found.replicas]
    session.output.table(("NODE", "ROLE"), rows)
