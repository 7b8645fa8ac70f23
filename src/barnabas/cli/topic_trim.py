"""`barnabas topic trim`: delete the oldest records of partitions. The broker's own DeleteRecords (21); KIP-107."""

from __future__ import annotations

import time
from collections.abc import Mapping

import click

from barnabas.cli.done import Done, failed
from barnabas.cli.failure import Failure
from barnabas.cli.log_bounds import Bounds, log_bounds, offsets_of
from barnabas.cli.offset_grammar import parse_offsets
from barnabas.cli.output import found_rows
from barnabas.cli.partitions import named_partitions
from barnabas.cli.session import Session, complete_topics, session_options
from barnabas.client.admin import Admin, TopicPartition
from barnabas.client.log_points import Point
from barnabas.protocol.errors import KafkaError


@click.command()
@click.argument("topics", nargs=-1, required=True, metavar="TOPIC[:N,…]…", shell_complete=complete_topics)
@click.option(
    "--before",
    "--offset",
    "before",
    required=True,
    metavar="OFFSET",
    help="Delete the records before this place: 47, end, -3 (before the end), +2 (after the start), @TIME.",
)
@click.option("-d", "--dry-run", is_flag=True, help="Only show what would be deleted.")
@session_options
def trim(session: Session, topics: tuple[str, ...], before: str, dry_run: bool) -> None:
    """Delete the oldest records of topics, or of some partitions. They cannot be brought back.

    \b
    barnabas topic trim orders --before @-7d --dry-run
    barnabas topic trim orders:0,3 --before 1000
    """
    try:
        point = place_of(before, time.time_ns() // 1_000_000)
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    with session.admin() as admin:
        bounds = log_bounds(admin, named_partitions(admin, topics))
        done = trimmed(admin, bounds, new_starts(admin, point, bounds), dry_run=dry_run)
    done.show(session.output)


def trimmed(
    admin: Admin, bounds: Mapping[TopicPartition, Bounds], wanted: Mapping[TopicPartition, int], *, dry_run: bool
) -> Done:
    """Delete the records before an offset of each partition.

    Args:
        bounds: where each log begins and ends.
        wanted: the new start of each log, from `new_starts`.
    """
    outcomes: dict[TopicPartition, int | KafkaError] = {**(wanted if dry_run else admin.delete_records(wanted))}
    rows = []
    for where, outcome in outcomes.items():
        if not isinstance(outcome, KafkaError):
            start = bounds[where][0] or 0
            rows.append((*where, start, outcome, outcome - start, _status(outcome - start, dry_run)))
    columns = ("TOPIC", "PARTITION", "LOG-START-OFFSET", "NEW-START-OFFSET", "OFFSETS", "STATUS")
    failures = failed([(f"partition {where}", outcome) for where, outcome in outcomes.items()])
    return Done(found_rows(columns, rows, hidden_first=("LOG-START-OFFSET",)), failures)


def _status(offsets: int, dry_run: bool) -> str:
    if offsets <= 0:
        return "unchanged"
    return "would be deleted" if dry_run else "deleted"


def place_of(text: str, now_ms: int) -> Point:
    """Parse the place before which records are deleted.

    Raises:
        ValueError: it is not one place.
    """
    begin, end = parse_offsets((text,), now_ms)
    if end is not None:
        raise ValueError("--before takes one place, not a range")
    return begin


def new_starts(admin: Admin, point: Point, bounds: dict[TopicPartition, Bounds]) -> dict[TopicPartition, int]:
    """Return the new start of each partition's log.

    Raises:
        Failure: a partition has no leader, or its log ends before the offset.
    """
    wanted = {}
    for where, offset in offsets_of(admin, point, bounds).items():
        start, end = bounds[where]
        if end is not None and offset > end:
            raise Failure(f"partition {where} ends at offset {end}, before {offset}", "--before end deletes all")
        wanted[where] = max(offset, start or 0)
    return wanted
