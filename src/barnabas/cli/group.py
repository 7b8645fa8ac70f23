"""`barnabas group`: list, describe, why, reset-offsets, delete."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from typing import Any

import click

from barnabas.cli.done import Done, failed
from barnabas.cli.duration import Duration
from barnabas.cli.failure import Failure, failure_of, report_failures
from barnabas.cli.group_delete_offsets import delete_offsets
from barnabas.cli.group_lag import (
    LAG,
    lag_rows,
    lag_table,
    lag_text,
    share_offsets,
    total,
    total_stable_lag,
    with_stable_share_lags,
)
from barnabas.cli.group_reset import reset_offsets
from barnabas.cli.group_verdicts import verdicts
from barnabas.cli.growth_words import held_from
from barnabas.cli.output import Found, Table, found_rows
from barnabas.cli.progress import Measured, shown
from barnabas.cli.session import Session, complete_groups, parse_words, session_options
from barnabas.cli.share_deliveries import share_reading
from barnabas.client.admin import (
    Admin,
    GroupDescription,
    GroupListing,
    GroupMember,
    GroupRebalance,
)
from barnabas.protocol.errors import ErrorCode, KafkaError, error_for
from barnabas.words.printable import printable
from barnabas.words.times import format_time_ms

_STATES = (
    "PreparingRebalance", "CompletingRebalance", "Stable", "Empty", "Dead", "Assigning", "Reconciling", "NotReady",
)  # fmt: skip
_TYPES = ("classic", "consumer", "share", "streams")
_LIST_COLUMNS = ("BROKER", "GROUP", "STATE", "TYPE", "PROTOCOL")
_LIST_HIDDEN_FIRST = ("PROTOCOL", "BROKER", "TYPE")


@click.group()
def group() -> None:
    """Groups: list, describe with lag, show why they rebalanced, reset offsets, delete."""


@group.command(name="list")
@click.option(
    "-s", "--state", "--states", "states", multiple=True, help="Only groups in this state, such as Stable; repeat."
)
@click.option(
    "--type", "types", multiple=True, help="Only groups of this type: classic, consumer, share, streams; repeat."
)
@click.option("--verdict", is_flag=True, help="Also whether each keeps up: OK, WARN, STALL, STOP, REWIND.")
@click.option(
    "--samples", type=click.IntRange(min=2), default=4, show_default=True, help="For a verdict: how many times to look."
)
@click.option(
    "--every", type=Duration(), default="5s", show_default=True, help="For a verdict: the time between looks."
)
@session_options
def list_(
    session: Session, states: tuple[str, ...], types: tuple[str, ...], verdict: bool, samples: int, every: int
) -> None:
    """List groups.

    A verdict is Burrow's, from a window of samples. It must be longer than the interval in which the consumers commit.
    """
    wanted_states, wanted_types = parse_words(states, _STATES, "--state"), parse_words(types, _TYPES, "--type")
    looks = 0

    def pause(number: int) -> None:
        nonlocal looks
        looks = number
        time.sleep(every / 1000)

    with session.admin() as admin:
        listings = admin.list_groups(states=wanted_states, types=wanted_types)
        found = {}
        if verdict:
            with shown(lambda: Measured(f"look {looks + 1} of {samples}", looks, samples)):
                found = verdicts(admin, [each.group_id for each in listings], samples, pause)
    if not verdict:
        session.output.show_found(listed_groups(listings))
        return
    judged = [
        (*_group_row(listing), each.verdict.name, each.lag, each.worst)
        for listing in listings
        if (each := found.get(listing.group_id)) is not None
    ]
    session.output.table(
        (*_LIST_COLUMNS, "VERDICT", "LAG", "PARTITIONS"),
        judged,
        hidden_first=(*_LIST_HIDDEN_FIRST, "LAG"),
        below=("PARTITIONS",),
    )


def listed_groups(listings: Iterable[GroupListing]) -> Found:
    """Return groups as a list."""
    return found_rows(_LIST_COLUMNS, map(_group_row, listings), hidden_first=_LIST_HIDDEN_FIRST)


def _group_row(listing: GroupListing) -> tuple[object, ...]:
    return (listing.coordinator, listing.group_id, listing.state, listing.type, listing.protocol_type)


def _named(
    session: Session, names: tuple[str, ...], more: tuple[str, ...], everything: bool, admin: Admin
) -> list[str]:
    if everything:
        return [listing.group_id for listing in admin.list_groups()]
    found = list(dict.fromkeys([*names, *more]))
    if not found:
        raise click.UsageError("Missing argument 'GROUP…' (or --all-groups).")
    return found


@group.command()
@click.argument("groups", nargs=-1, metavar="GROUP…", shell_complete=complete_groups)
@click.option("--group", "more", multiple=True, hidden=True)
@click.option("--all-groups", is_flag=True, help="Every group.")
@click.option("-s", "--print-summary", "--state", "summary_only", is_flag=True, help="Only the summary.")
@click.option("--members", is_flag=True, help="Members and what they read, instead of offsets.")
@session_options
def describe(
    session: Session,
    groups: tuple[str, ...],
    more: tuple[str, ...],
    all_groups: bool,
    summary_only: bool,
    members: bool,
) -> None:
    """Describe groups: state, members, how far each partition is behind, and which ones ordered growth still holds back."""
    data: list[dict[str, object]] = []
    tables: list[Table] = []
    with session.admin() as admin:
        outcomes = admin.describe_groups(_named(session, groups, more, all_groups, admin))
        for found in outcomes.values():
            if not isinstance(found, GroupDescription):
                continue
            described = described_group(
                admin,
                found,
                with_members=members and not summary_only,
                with_partitions=not (members or summary_only),
            )
            data.append(described.data)
            tables += described.tables
    if data or not outcomes:
        session.output.show(data, *tables)
    report_failures((f"group {name}", outcome) for name, outcome in outcomes.items())


def described_group(admin: Admin, found: GroupDescription, *, with_members: bool, with_partitions: bool) -> Found:
    """Return a group: its state, its lag, and which partitions ordered growth still holds back.

    Args:
        with_members: also `members_list`: members and the partitions that they read; `subtopologies` of a streams group.
        with_partitions: also `partitions`: how far the group is behind in each, to the log end and to the last stable offset; of a
            share group also `deliveries`: what became of the records that it was given.
    """
    rows = lag_rows(admin, found)
    deliveries = None
    if found.type == "share" and with_partitions:
        deliveries = share_reading(admin, found.group_id, share_offsets(rows))
        rows = with_stable_share_lags(admin, rows, deliveries.states)
    summary = _summary(found, rows)
    data = summary.objects()[0] | {
        "total_lag": total(rows, LAG),
        "partitions_without_lag": sum(row[LAG] is None for row in rows),
        "lag_to_last_stable_offset": total_stable_lag(rows),
    }
    tables = [summary]
    if with_members:
        table = _members(found)
        data["members_list"] = table.objects()
        tables += [table] if table.rows else []
        if found.subtopologies:
            parts = _subtopologies(found)
            data["subtopologies"] = parts.objects()
            tables.append(parts)
    if with_partitions:
        table = lag_table(rows)
        data["partitions"] = table.objects()
        tables += [table] if table.rows else []
    if deliveries is not None:
        data |= deliveries.data()
        tables += deliveries.tables()
    if held := held_from(admin, found):
        waiting = Table(("TOPIC", "PARTITION", "WAITS"), held, below=("WAITS",))
        tables.append(waiting)
        data["held"] = waiting.objects()
    return Found(data, tables)


def _summary(found: GroupDescription, rows: list[tuple[Any, ...]]) -> Table:
    columns: tuple[str, ...] = ("GROUP", "COORDINATOR", "STATE", "BALANCER", "MEMBERS", "TOTAL-LAG", "TYPE")
    row: tuple[object, ...] = (
        found.group_id,
        found.coordinator.id,
        found.state,
        found.assignor,
        len(found.members),
        lag_text(rows, is_share=found.type == "share"),
        found.type,
    )
    if found.epoch is not None:
        columns += ("GROUP-EPOCH", "TARGET-ASSIGNMENT-EPOCH")
        row += (found.epoch, found.assignment_epoch)
    return Table(columns, [row], vertical=True)


def _members(found: GroupDescription) -> Table:
    columns: tuple[str, ...] = ("MEMBER-ID", "INSTANCE-ID", "CLIENT-ID", "HOST", "ASSIGNMENT")
    has_epochs = any(member.epoch is not None for member in found.members)
    if has_epochs:
        columns += ("EPOCH", "TARGET-ASSIGNMENT")
    rows = [
        (
            member.member_id,
            member.instance_id,
            member.client_id,
            member.host,
            [str(each) for each in member.assignment],
            *((member.epoch, _target(member)) if has_epochs else ()),
        )
        for member in found.members
    ]
    hidden_first = ("INSTANCE-ID", "HOST", "MEMBER-ID")
    return Table(columns, rows, hidden_first=hidden_first, below=("ASSIGNMENT", *columns[6:]))


def _target(member: GroupMember) -> list[str] | None:
    """Return what a member has been given and does not have yet, or still has and must give up; None if it has its target."""
    if member.target is None or member.target == member.assignment:
        return None
    return [str(each) for each in member.target]


def _subtopologies(found: GroupDescription) -> Table:
    columns = ("SUBTOPOLOGY", "SOURCES", "REPARTITION-SOURCES", "REPARTITION-SINKS", "CHANGELOGS")
    return Table(columns, found.subtopologies, hidden_first=("CHANGELOGS",), below=columns[1:])


@group.command()
@click.argument("groups", nargs=-1, metavar="GROUP…", shell_complete=complete_groups)
@click.option("--group", "more", multiple=True, hidden=True)
@click.option("--all-groups", is_flag=True, help="Every group.")
@click.option("-d", "--dry-run", is_flag=True, help="Only show what would be deleted.")
@session_options
def delete(session: Session, groups: tuple[str, ...], more: tuple[str, ...], all_groups: bool, dry_run: bool) -> None:
    """Delete groups without members, and their offsets."""
    with session.admin() as admin:
        names = _named(session, groups, more, all_groups, admin)
        done = deleted_groups(admin, names, dry_run=dry_run)
    if not names:
        session.output.show_found(done.found)
    done.show(session.output)


def deleted_groups(admin: Admin, names: list[str], *, dry_run: bool) -> Done:
    """Delete groups without members, or check whether that is possible."""
    outcomes: dict[str, KafkaError | None] = {}
    if dry_run:
        for name, found in admin.describe_groups(names).items():
            if isinstance(found, GroupDescription) and found.members:
                outcomes[name] = error_for(ErrorCode.NON_EMPTY_GROUP, f"group {name} still has members")
            else:
                outcomes[name] = found if isinstance(found, KafkaError) else None
    else:
        outcomes = {**admin.delete_groups(names)}
    rows = [
        (name, "would be deleted" if dry_run else "deleted") for name, outcome in outcomes.items() if outcome is None
    ]
    return Done(
        found_rows(("GROUP", "STATUS"), rows),
        failed([(f"group {name}", outcome) for name, outcome in outcomes.items()]),
    )


_REBALANCE_COLUMNS = ("STARTED", "EPOCH", "TOOK-MS", "MEMBERS", "MOVED", "CLIENT-ID", "CAUSE")
_MOVED_COLUMNS = ("EPOCH", "TOPIC", "PARTITION", "FROM", "TO")


@group.command()
@click.argument("name", metavar="GROUP", shell_complete=complete_groups)
@click.option("-n", "--last", type=click.IntRange(min=1), default=10, show_default=True, help="How many rebalances.")
@click.option("--moves", is_flag=True, help="Also each partition that moved.")
@session_options
def why(session: Session, name: str, last: int, moves: bool) -> None:
    """Show why a group rebalanced: its last rebalances with cause, client, duration, and what moved.

    The group's coordinator remembers them since it became the coordinator; Apache Kafka does not.
    """
    with session.admin() as admin:
        found = found_rebalances(last_rebalances(admin, name, last), moves=moves)
    if not found.data:
        click.echo(f"group {printable(name)} has not rebalanced since this broker became its coordinator", err=True)
    session.output.show_found(found)


def last_rebalances(admin: Admin, name: str, last: int) -> list[GroupRebalance]:
    """Return the last rebalances of a group, the newest last.

    Raises:
        Failure: the group does not exist, or its coordinator does not remember rebalances.
    """
    outcome = admin.group_rebalances([name])[name]
    if isinstance(outcome, KafkaError) and outcome.code == ErrorCode.UNSUPPORTED_VERSION:
        raise Failure(
            f"the coordinator of group {name} does not remember rebalances, as one of barnabas does: when and why the group"
            " rebalanced cannot be known"
        )
    if isinstance(outcome, KafkaError):
        raise failure_of(outcome, f"group {name}")
    return outcome[-last:]


def found_rebalances(shown: Sequence[GroupRebalance], *, moves: bool = True) -> Found:
    """Return rebalances as tables.

    Args:
        moves: with a table of the partitions that moved.
    """
    tables = []
    if shown:
        rows = [_rebalance_row(each) for each in shown]
        tables.append(Table(_REBALANCE_COLUMNS, rows, hidden_first=("EPOCH", "MOVED", "MEMBERS"), below=("CAUSE",)))
    moved = [(each.epoch, *one) for each in shown for one in each.moved]
    if moves and moved:
        tables.append(Table(_MOVED_COLUMNS, moved, hidden_first=("FROM",)))
    data = [{**each._asdict(), "moved": [one._asdict() for one in each.moved]} for each in shown]
    return Found(data, tables)


def _rebalance_row(rebalance: GroupRebalance) -> tuple[object, ...]:
    took = None if rebalance.ended_ms is None else rebalance.ended_ms - rebalance.started_ms
    cause = f"{rebalance.cause} (superseded by the next)" if rebalance.superseded else rebalance.cause
    return (
        format_time_ms(rebalance.started_ms),
        rebalance.epoch,
        took,
        rebalance.members,
        len(rebalance.moved),
        rebalance.client_id,
        cause,
    )


group.add_command(reset_offsets)
group.add_command(delete_offsets)
