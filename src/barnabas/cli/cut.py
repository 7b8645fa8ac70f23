"""`barnabas cut`: create, list, show, diff, delete. A cut is a named vector of offsets; `client.cuts` says what it promises."""

from __future__ import annotations

import time
from collections.abc import Mapping

import click

from barnabas.cli.failure import Failure, Failures
from barnabas.cli.output import Table
from barnabas.cli.session import Session, complete_cuts, complete_topics, session_options
from barnabas.client.admin import EARLIEST, Admin, Cut, TopicPartition, results
from barnabas.client.cuts import is_valid_cut_name
from barnabas.words.nearest import did_you_mean
from barnabas.words.printable import printable
from barnabas.words.times import format_time_ms, parse_time_ms

_ISOLATION_LEVELS = ("read_committed", "read_uncommitted")


@click.group()
def cut() -> None:
    """Cuts: named offsets of topics; create, list, show, diff, delete."""


@cut.command()
@click.argument("name")
@click.argument("topics", nargs=-1, required=True, metavar="TOPIC…", shell_complete=complete_topics)
@click.option(
    "--at", metavar="TIME", help="Before the first record at or after a time: 2026-11-21T10:00:00, epoch ms, -1h."
)
@click.option(
    "--isolation-level",
    type=click.Choice(_ISOLATION_LEVELS),
    default=_ISOLATION_LEVELS[0],
    show_default=True,
    help="The end is the last stable offset, or the high watermark.",
)
@click.option("-d", "--dry-run", is_flag=True, help="Only show the offsets.")
@session_options
def create(
    session: Session, name: str, topics: tuple[str, ...], at: str | None, isolation_level: str, dry_run: bool
) -> None:
    """Keep the ends of all partitions of TOPICs under a name.

    A topic that is made of another one comes before it: `cut create release invoices orders`.
    """
    now_ms = _now_ms()
    if not is_valid_cut_name(name):
        raise click.UsageError(
            f"'{printable(name)}' is not a valid name of a cut: use letters, digits, '.', '_' and '-', at most 249 of them"
        )
    try:
        at_ms = None if at is None else parse_time_ms(at, now_ms)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--at") from None
    with session.admin() as admin:
        if name in _stored(admin):
            raise Failure(f"cut {name} exists", f"`barnabas cut delete {name}` makes room for a new one")
        taken = admin.take_cut(list(dict.fromkeys(topics)), now_ms=now_ms, at_ms=at_ms, isolation=isolation_level)
        if not dry_run:
            admin.store_cut(name, taken)
    _show(session, name, taken)
    if dry_run:
        click.echo("nothing was stored: leave out --dry-run to keep this cut", err=True)


@cut.command(name="list")
@session_options
def list_(session: Session) -> None:
    """List cuts."""
    with session.admin() as admin:
        stored = _stored(admin)
    rows = [(*_summary(name, each), len(each.offsets), each.topics) for name, each in stored.items()]
    session.output.table(
        ("NAME", "CREATED", "AT", "ISOLATION-LEVEL", "PARTITIONS", "TOPICS"),
        rows,
        hidden_first=("ISOLATION-LEVEL", "AT", "PARTITIONS"),
        below=("TOPICS",),
    )


@cut.command()
@click.argument("name", shell_complete=complete_cuts)
@click.option(
    "--export", is_flag=True, help="Print topic,partition,offset lines for `group reset-offsets --from-file`."
)
@session_options
def show(session: Session, name: str, export: bool) -> None:
    """Show the offsets of a cut.

    \b
    barnabas cut show release --export > cut.csv
    barnabas group reset-offsets billing --from-file cut.csv --execute
    """
    with session.admin() as admin:
        found = _named(_stored(admin), name)
    if export:
        for at, offset in found.offsets.items():
            click.echo(f"{at.topic},{at.partition},{offset}")
    else:
        _show(session, name, found)


@cut.command()
@click.argument("name", shell_complete=complete_cuts)
@click.argument("other", required=False, shell_complete=complete_cuts)
@session_options
def diff(session: Session, name: str, other: str | None) -> None:
    """Show how far it is from a cut to another one, or to the ends of its topics now.

    A distance counts offsets. Records may be fewer: markers of transactions and what compaction removed have offsets too.
    """
    with session.admin() as admin:
        stored = _stored(admin)
        before = _named(stored, name)
        after = _named(stored, other) if other is not None else _now(admin, before)
        starts = _log_starts(admin, before, after) if other is None else None
    rows = []
    for at in sorted({**before.offsets, **after.offsets}):
        begin, end = before.offsets.get(at), after.offsets.get(at)
        distance = None
        if begin is not None and end is not None and before.topic_ids[at.topic] == after.topic_ids[at.topic]:
            distance = end - begin
        rows.append((*at, begin, end, distance, _status(at, before, after, starts)))
    session.output.table(
        ("TOPIC", "PARTITION", "FROM", "TO", "DISTANCE", "STATUS"), rows, hidden_first=("FROM", "TO"), below=("STATUS",)
    )


@cut.command()
@click.argument("names", nargs=-1, required=True, metavar="NAME…", shell_complete=complete_cuts)
@click.option("-d", "--dry-run", is_flag=True, help="Only show what would be deleted.")
@session_options
def delete(session: Session, names: tuple[str, ...], dry_run: bool) -> None:
    """Delete cuts. The records that they point to stay."""
    with session.admin() as admin:
        stored = _stored(admin)
        there = [name for name in dict.fromkeys(names) if name in stored]
        if not dry_run:
            admin.delete_cuts(there, now_ms=_now_ms())
    if there:
        session.output.table(
            ("CUT", "STATUS"), [(name, "would be deleted" if dry_run else "deleted") for name in there]
        )
    missing = [_missing(stored, name) for name in dict.fromkeys(names) if name not in stored]
    if missing:
        raise Failures(missing)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _stored(admin: Admin) -> dict[str, Cut]:
    try:
        return admin.list_cuts()
    except ValueError as error:
        raise Failure(str(error)) from None


def _named(stored: Mapping[str, Cut], name: str) -> Cut:
    if name not in stored:
        raise _missing(stored, name)
    return stored[name]


def _missing(stored: Mapping[str, Cut], name: str) -> Failure:
    return Failure(f"cut {name} does not exist{did_you_mean(name, stored)}", "`barnabas cut list` shows which exist")


def _summary(name: str, found: Cut) -> tuple[str, str, str | None, str]:
    at = None if found.at_ms is None else format_time_ms(found.at_ms)
    return name, format_time_ms(found.created_ms), at, found.isolation


def _show(session: Session, name: str, found: Cut) -> None:
    summary = Table(("NAME", "CREATED", "AT", "ISOLATION-LEVEL"), [_summary(name, found)], vertical=True)
    offsets = Table(("TOPIC", "PARTITION", "OFFSET"), [(*at, offset) for at, offset in found.offsets.items()])
    session.output.show({**summary.objects()[0], "offsets": offsets.objects()}, summary, offsets)


def _now(admin: Admin, before: Cut) -> Cut:
    """Return the ends of a cut's topics now, of those that exist."""
    existing = [name for name, topic_id in admin.current_topic_ids(before).items() if topic_id is not None]
    return admin.take_cut(existing, now_ms=_now_ms(), isolation=before.isolation)


def _log_starts(admin: Admin, before: Cut, after: Cut) -> dict[TopicPartition, int]:
    positions = dict.fromkeys((at for at in before.offsets if at in after.offsets), EARLIEST)
    return {at: found.offset for at, found in results(admin.list_offsets(positions)).items()}


def _status(at: TopicPartition, before: Cut, after: Cut, starts: Mapping[TopicPartition, int] | None) -> str | None:
    """Return the words for offsets without records between two offsets of a partition; None if there are none.

    Args:
        starts: where the logs begin, if the second cut is now; None otherwise.
    """
    ids = (before.topic_ids.get(at.topic), after.topic_ids.get(at.topic))
    if ids[1] is None:
        return "only in the first" if starts is None else "topic does not exist"
    if ids[0] is None:
        return "only in the second"
    if ids[0] != ids[1]:
        return "another topic of this name"
    if at not in before.offsets:
        return "new partition"
    if at not in after.offsets:
        return "only in the first"
    start = (starts or {}).get(at, 0)
    return f"records before {start} are deleted" if start > before.offsets[at] else None
