"""`barnabas cluster drain` and `rebalance`: replicas and leaderships go to other brokers.

Both make a plan first (`client.placement`), which `--dry-run` prints. The controller and the brokers do the work; the command
starts one move after the other, and waits. If it is interrupted, the moves that have begun continue.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import NamedTuple

import click

from barnabas.cli.cluster_throttle import Rate, throttled
from barnabas.cli.done import Done
from barnabas.cli.failure import Failure, Failures, failure_of
from barnabas.cli.output import Found, Table, found_rows
from barnabas.cli.partition_weights import Weighed, by_option, weighed
from barnabas.cli.progress import Measured, shown
from barnabas.cli.session import Session, complete_brokers, session_options
from barnabas.cli.wording import counted, listed
from barnabas.client import placement
from barnabas.client.admin import Admin, PartitionDescription, TopicPartition
from barnabas.client.placement import Plan, TooFewBrokers, loads
from barnabas.client.reassignments import Cancelled, Stalled
from barnabas.client.replication_throttle import Moving
from barnabas.client.weighed_placement import rebalance_by
from barnabas.protocol.errors import KafkaError

_AT_ONCE = 20


class View(NamedTuple):
    """The cluster before anything moves: its partitions, its brokers that serve, and the racks of all its brokers.

    Attributes:
        weighed: the weights of replicas; None if they are counted.
    """

    partitions: dict[TopicPartition, PartitionDescription]
    serving: list[int]
    racks: dict[int, str | None]
    weighed: Weighed | None = None

    def replicas(self, *, without: Collection[TopicPartition] = ()) -> dict[TopicPartition, list[int]]:
        return {at: each.replicas for at, each in self.partitions.items() if at not in without}


def moving_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options of the commands that move replicas."""
    command = click.option(
        "--throttle", type=Rate(), metavar="RATE", help="At most so many bytes a second from and to each broker: 20MB."
    )(command)
    command = click.option(
        "--at-once",
        type=click.IntRange(min=1),
        default=_AT_ONCE,
        show_default=True,
        help="How many partitions move at the same time.",
    )(command)
    return click.option("-d", "--dry-run", is_flag=True, help="Only show what would be moved.")(command)


@click.command()
@click.argument("node", type=click.IntRange(min=0), metavar="NODE", shell_complete=complete_brokers)
@by_option
@moving_options
@session_options
def drain(session: Session, node: int, by: str, at_once: int, throttle: int | None, dry_run: bool) -> None:
    """Move every replica of a broker to others, and the leaderships with them, so that it can be stopped for good.

    Each goes to the broker that has least, in a rack where the partition has none if there is one. What is created afterwards may be
    placed on the broker again: stop it then. Ctrl-C begins no more moves, and says what goes on.

    \b
    barnabas cluster drain 3 --dry-run
    """
    with session.admin() as admin:
        view, plan, lost = _drain_plan(admin, node, by)
        failures = carry_out(
            session, admin, view, plan, elect=False, at_once=at_once, throttle=throttle, dry_run=dry_run
        )
    failures += of_lost(lost)
    if failures:
        raise Failures(failures)


@click.command()
@by_option
@moving_options
@session_options
def rebalance(session: Session, by: str, at_once: int, throttle: int | None, dry_run: bool) -> None:
    """Even out replicas and preferred leaders over the brokers with few moves, then elect the preferred leaders.

    A partition's replicas stay in as many racks as they are. Replicas on a broker that does not serve stay there. Ctrl-C begins no
    more moves, and says what goes on.

    \b
    barnabas cluster rebalance --dry-run
    barnabas cluster rebalance --by bytes --throttle 50MB
    """
    with session.admin() as admin:
        view, plan = _rebalance_plan(admin, by)
        failures = carry_out(
            session, admin, view, plan, elect=True, at_once=at_once, throttle=throttle, dry_run=dry_run
        )
    if failures:
        raise Failures(failures)


def drain_preview(admin: Admin, node: int) -> Done:
    """Return what draining a broker would move, as a dry run prints it.

    Raises:
        Failure: the broker cannot be drained now.
        KafkaError: no broker answers.
    """
    view, plan, lost = _drain_plan(admin, node)
    found = _found(view, plan, _elected(view, plan, elect=False), {}, dry_run=True)
    return Done(found, notes=[each.format_message() for each in of_lost(lost)])


def rebalance_preview(admin: Admin) -> Done:
    """Return what evening out the brokers would move, as a dry run prints it.

    Raises:
        Failure: replicas are being moved already.
        KafkaError: no broker answers.
    """
    view, plan = _rebalance_plan(admin)
    return Done(_found(view, plan, _elected(view, plan, elect=True), {}, dry_run=True))


def moves_in_progress(admin: Admin) -> Found:
    """Return the partitions whose replicas are being moved."""
    moving = admin.list_reassignments()
    rows = [(*at, each.replicas, each.adding, each.removing) for at, each in sorted(moving.items())]
    return found_rows(("TOPIC", "PARTITION", "REPLICAS", "ADDING", "REMOVING"), rows)


def _drain_plan(
    admin: Admin, node: int, by: str = "replicas"
) -> tuple[View, Plan, dict[TopicPartition, PartitionDescription]]:
    """Return the cluster, what moves, and the broker's partitions without a leader, which cannot move.

    Raises:
        Failure: the broker cannot be drained.
    """
    view = view_of(admin, by)
    held = {at: each for at, each in view.partitions.items() if node in each.replicas}
    if node not in view.racks and not held:
        brokers = ", ".join(map(str, sorted(view.racks)))
        raise Failure(f"broker {node} is not part of the cluster now", f"its brokers are: {brokers}")
    lost = {at: each for at, each in held.items() if each.leader < 0}
    try:
        weights = None if view.weighed is None else view.weighed.weights
        plan = placement.drain(view.replicas(without=lost), node, view.serving, view.racks, weights)
    except TooFewBrokers as error:
        others = len(set(view.serving) - {node})
        raise Failure(
            f"broker {node} cannot be drained: {error.partition} has {counted(error.replicas, 'replica')},"
            f" and {counted(others, 'other broker')} can take them",
            "start another broker first",
        ) from None
    return view, plan, lost


def _rebalance_plan(admin: Admin, by: str = "replicas") -> tuple[View, Plan]:
    view = view_of(admin, by)
    # Nobody can copy the records of a partition without a leader.
    lost = [at for at, each in view.partitions.items() if each.leader < 0]
    replicas = view.replicas(without=lost)
    if view.weighed is None:
        return view, placement.rebalance(replicas, view.serving, view.racks)
    _, weights, has_leader_weights = view.weighed
    plan = rebalance_by(weights, replicas, view.serving, view.racks, has_leader_weights=has_leader_weights)
    return view, plan


def view_of(admin: Admin, by: str = "replicas") -> View:
    """Return the cluster, and by bytes or load the weights of its replicas.

    Raises:
        Failure: replicas are being moved already; a plan made before they have arrived would be wrong.
    """
    found = admin.describe_cluster()
    if moving := admin.list_reassignments():
        raise Failure(
            f"replicas of {counted(len(moving), 'partition')} are being moved already",
            "wait until `barnabas cluster status` counts none",
        )
    racks = {node.id: node.rack for node in (*found.brokers, *found.fenced)}
    partitions = admin.describe_partitions()
    return View(partitions, [node.id for node in found.brokers], racks, weighed(admin, by, partitions))


def carry_out(
    session: Session,
    admin: Admin,
    view: View,
    plan: Plan,
    *,
    elect: bool,
    at_once: int,
    throttle: int | None,
    dry_run: bool,
) -> list[Failure]:
    """Print the plan and carry it out, unless it is a dry run; return the failures."""
    elected = _elected(view, plan, elect=elect)
    outcomes: dict[TopicPartition, KafkaError | None] = {}
    if not dry_run:
        with throttled(admin, throttle, _copies(view, plan)):
            outcomes |= move_plan(admin, plan, at_once)
        outcomes |= admin.elect_preferred_leaders([at for at in elected if outcomes.get(at) is None])
    failed = {at: error for at, error in outcomes.items() if error is not None}
    session.output.show_found(_found(view, plan, elected, failed, dry_run=dry_run))
    if not (plan or elected):
        click.echo("nothing to move", err=True)
    return [failure_of(error, f"partition {at}") for at, error in failed.items()]


def _copies(view: View, plan: Plan) -> dict[TopicPartition, Moving]:
    """Return the partitions that brokers copy, from which to which."""
    copies = {at: Moving(view.partitions[at].replicas, _added(view, at, to)) for at, to in plan.items()}
    return {at: each for at, each in copies.items() if each.targets}


def _added(view: View, at: TopicPartition, replicas: list[int]) -> list[int]:
    return [each for each in replicas if each not in view.partitions[at].replicas]


def _elected(view: View, plan: Plan, *, elect: bool) -> list[TopicPartition]:
    """Return the partitions that get another leader by an election."""
    return [
        at
        for at, each in view.partitions.items()
        if elect and _can_elect(each, plan.get(at, each.replicas), view.serving)
    ]


def _found(
    view: View,
    plan: Plan,
    elected: Collection[TopicPartition],
    failed: Collection[TopicPartition],
    *,
    dry_run: bool,
) -> Found:
    """Return what moves, or has moved, and the brokers before and afterwards."""
    after = {at: plan.get(at, each.replicas) for at, each in view.partitions.items()}
    leaders = {
        at: after[at][0] if at in elected or each.leader not in after[at] else each.leader
        for at, each in view.partitions.items()
    }
    rows = [
        (
            *at,
            view.partitions[at].replicas,
            after[at],
            view.partitions[at].leader,
            leaders[at],
            _status(view.partitions[at].replicas, after[at], dry_run=dry_run),
        )
        for at in sorted({*plan, *elected})
        if at not in failed
    ]
    columns = ("TOPIC", "PARTITION", "REPLICAS", "NEW-REPLICAS", "LEADER", "NEW-LEADER", "STATUS")
    moves = Table(columns, rows, hidden_first=("LEADER", "NEW-LEADER", "REPLICAS", "STATUS"))
    brokers = _broker_table(view, after)
    data = {"partitions": moves.objects(), "brokers": brokers.objects()}
    return Found(data, [*([moves] if rows else []), brokers])


def found_moves(view: View, plan: Plan) -> Found:
    """Return what a plan would move, as a dry run prints it."""
    return _found(view, plan, (), (), dry_run=True)


def _can_elect(partition: PartitionDescription, after: list[int], serving: Collection[int]) -> bool:
    """Return whether the preferred leader is another than the leader, and in sync, as a new replica is once it has moved."""
    preferred = after[0]
    in_sync = preferred in partition.isr or preferred not in partition.replicas
    return 0 <= partition.leader != preferred and preferred in serving and in_sync


def _status(before: list[int], after: list[int], *, dry_run: bool) -> str:
    if before == after:
        return "leader would be elected" if dry_run else "leader elected"
    verb = "moved" if set(before) != set(after) else "reordered"
    return f"would be {verb}" if dry_run else verb


def _broker_table(view: View, after: dict[TopicPartition, list[int]]) -> Table:
    """Return the replicas of brokers before and afterwards; their leaders are the preferred ones."""
    held, led = loads(view.replicas())
    new_held, new_led = loads(after)
    brokers = sorted(view.racks.keys() | held.keys() | new_held.keys())
    columns = ["BROKER", "REPLICAS", "NEW-REPLICAS", "LEADERS", "NEW-LEADERS"]
    rows: list[tuple[object, ...]] = [(each, held[each], new_held[each], led[each], new_led[each]) for each in brokers]
    if view.weighed is not None:
        column, weights, _ = view.weighed
        weights_before, _ = loads(view.replicas(), weights)
        weights_after, _ = loads(after, weights)
        columns += [column, f"NEW-{column}"]
        rows = [(*row, weights_before[each], weights_after[each]) for each, row in zip(brokers, rows, strict=True)]
    return Table(columns, rows)


def move_plan(admin: Admin, plan: Plan, at_once: int = _AT_ONCE) -> dict[TopicPartition, KafkaError | None]:
    """Carry out a plan; return None for each partition that has moved, and the errors of the others.

    Raises:
        Failure: nothing moves any longer.
    """
    done = 0

    def ended(count: int) -> None:
        nonlocal done
        done = count

    try:
        with shown(lambda: Measured(f"{done} of {counted(len(plan), 'partition')} moved", done, len(plan))):
            return admin.reassign(plan, at_once=at_once, ended=ended)
    except Stalled as stalled:
        brokers = sorted({each for waited_for in stalled.waits.values() for each in waited_for})
        raise Failure(
            f"{listed(list(stalled.waits))} cannot move until these brokers serve: {', '.join(map(str, brokers))}",
            "start them: what was begun goes on by itself",
        ) from None
    except Cancelled as cancelled:
        raise Failure(
            f"the moves of {listed(cancelled.partitions)} were cancelled: they keep the replicas that they had",
            f"of {counted(len(plan), 'partition')} {cancelled.moved} moved, and {cancelled.waiting} were not begun;"
            " the same command makes a new plan",
        ) from None
    except KeyboardInterrupt:
        click.echo(_what_goes_on(admin, plan), err=True)
        raise


def _what_goes_on(admin: Admin, plan: Plan) -> str:
    """Return a sentence about the moves that an interrupted command leaves."""
    try:
        moving = [at for at in admin.list_reassignments() if at in plan]
    except KafkaError:
        return "what was begun goes on: `barnabas cluster status` counts the partitions that move"
    if not moving:
        return "no move goes on; no other move was begun"
    return (
        f"no other move was begun; {counted(len(moving), 'move')} will end without this command:"
        " `barnabas cluster cancel --all` gives these partitions back the replicas that they had"
    )


def of_lost(lost: dict[TopicPartition, PartitionDescription]) -> list[Failure]:
    """Return a failure for each reason why partitions have no leader: without one no broker can copy their records."""
    by_remedy: dict[str, list[TopicPartition]] = {}
    for at, each in sorted(lost.items()):
        if each.why_leaderless is not None:
            by_remedy.setdefault(each.why_leaderless.remedy, []).append(at)
    return [
        Failure(f"{listed(partitions)} cannot move without a leader", remedy)
        for remedy, partitions in by_remedy.items()
    ]
