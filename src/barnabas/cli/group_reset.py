"""`barnabas group reset-offsets`: move a group's offsets. A dry run without `--execute`, as in Kafka's tool.

The group must have no running members: they would overwrite the new offsets. New offsets stay within the log, as in Kafka's tool:
below its start they become the start, above its end the end.
"""

from __future__ import annotations

import csv
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, TextIO

import click

from barnabas.cli.done import Done
from barnabas.cli.failure import Failure
from barnabas.cli.output import found_rows
from barnabas.cli.partitions import partitions_of
from barnabas.cli.session import Session, complete_groups, session_options
from barnabas.cli.wording import counted
from barnabas.client.admin import EARLIEST, LATEST, Admin, CommittedOffset, TopicPartition, result
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.words.durations import parse_duration_ms
from barnabas.words.nearest import did_you_mean
from barnabas.words.printable import on_one_line
from barnabas.words.times import parse_time_ms

_COLUMNS = ("GROUP", "TOPIC", "PARTITION", "CURRENT-OFFSET", "NEW-OFFSET", "STATUS")


class Place(NamedTuple):
    """The offsets of a partition."""

    start: int
    end: int
    current: int | None


class Move(NamedTuple):
    """A new offset of a group in a partition; `current` is None without one before."""

    where: TopicPartition
    current: int | None
    offset: int


@click.command(name="reset-offsets")
@click.argument("name", metavar="GROUP", required=False, shell_complete=complete_groups)
@click.option("--group", "more", hidden=True)
@click.option(
    "--topic", "topics", multiple=True, metavar="TOPIC[:N,…]", help="Only this topic, or some partitions; repeat."
)
@click.option("--all-topics", is_flag=True, help="Every topic the group committed in.")
@click.option("--to-earliest", is_flag=True, help="The start of the log.")
@click.option("--to-latest", is_flag=True, help="The end of the log.")
@click.option("--to-current", is_flag=True, help="The group's current offsets; --export saves them.")
@click.option("--to-offset", type=click.IntRange(min=0), metavar="OFFSET", help="Exactly there.")
@click.option(
    "--to-datetime", metavar="TIME", help="The first record at or after a time: 2026-11-21T10:00:00, epoch ms, -1h."
)
@click.option("--by-duration", metavar="DURATION", help="The first record of this last duration: PT1H30M, 1h30m.")
@click.option("--shift-by", type=int, metavar="N", help="Move by N; a negative N moves back.")
@click.option("--from-file", type=click.File("r"), help="Lines of topic,partition,offset, as --export prints them.")
@click.option("--dry-run", "--dry", is_flag=True, help="Only show the new offsets.  [this is the default]")
@click.option("--execute", is_flag=True, help="Commit the new offsets.")
@click.option("--new-group", is_flag=True, help="Create the group, also if another one has almost the same name.")
@click.option("--export", "--to-csv", is_flag=True, help="Print topic,partition,offset lines for --from-file.")
@session_options
def reset_offsets(
    session: Session,
    name: str | None,
    more: str | None,
    topics: tuple[str, ...],
    all_topics: bool,
    to_earliest: bool,
    to_latest: bool,
    to_current: bool,
    to_offset: int | None,
    to_datetime: str | None,
    by_duration: str | None,
    shift_by: int | None,
    from_file: TextIO | None,
    dry_run: bool,
    execute: bool,
    new_group: bool,
    export: bool,
) -> None:
    """Move a group's offsets. Shows the new offsets; --execute commits them.

    \b
    barnabas group reset-offsets billing --topic orders --by-duration 1d --execute
    """
    group_id = name or more
    if group_id is None:
        raise click.UsageError("Missing argument 'GROUP'.")
    if dry_run and execute:
        raise click.UsageError("--dry-run and --execute contradict each other.")
    choices = {
        "--to-earliest": to_earliest or None,
        "--to-latest": to_latest or None,
        "--to-current": to_current or None,
        "--to-offset": to_offset,
        "--to-datetime": to_datetime,
        "--by-duration": by_duration,
        "--shift-by": shift_by,
        "--from-file": from_file,
    }
    chosen = [(option, value) for option, value in choices.items() if value is not None]
    if len(chosen) != 1:
        raise click.UsageError(f"Choose one of {' '.join(choices)}.")
    ((how, value),) = chosen
    if how != "--from-file" and bool(topics) == all_topics:
        raise click.UsageError("Choose --topic TOPIC[:N,…] or --all-topics.")
    with session.admin() as admin:
        exists = require_inactive(admin, group_id)
        # A mistyped name makes a group without a reader. Ask for the names before it is one of them.
        meant = "" if exists or new_group else _meant(session, group_id, execute)
        try:
            moves = planned_moves(
                admin, group_id, how, value, None if all_topics else topics, time.time_ns() // 1_000_000
            )
        except ValueError as error:
            raise click.UsageError(str(error)) from None
        done = moved(admin, group_id, moves, exists=exists, execute=execute)
    if export:
        for row in done.found.data:
            click.echo(f"{row['topic']},{row['partition']},{row['new_offset']}")
        done = done._replace(found=found_rows(_COLUMNS, []))
    if not exists:
        done = done._replace(notes=[f"group {on_one_line(group_id)} is new{on_one_line(meant)}"])
    done.show(session.output)
    if not execute and not export:
        click.echo("nothing was changed: --execute commits these offsets", err=True)


def planned_moves(
    admin: Admin, group_id: str, how: str, value: Any, topics: Iterable[str] | None, now_ms: int
) -> list[Move]:
    """Return the new offset of each partition.

    Args:
        how: the option that chooses the place, such as `--to-offset`.
        value: of that option; of `--from-file` its lines.
        topics: as `--topic` names them; None for every topic in which the group committed.

    Raises:
        ValueError: a text does not parse, or a partition without an offset is to be shifted.
        Failure: there are no offsets to reset, or a topic has no such partition.
        KafkaError: a topic does not exist, or its leader does not answer.
    """
    committed = admin.list_group_offsets(group_id)
    if how == "--from-file":
        wanted = read_plan(value)
        places = _places(admin, list(wanted), committed)
        planned = {where: _clamp(wanted[where], place) for where, place in places.items()}
    else:
        partitions = sorted(committed) if topics is None else partitions_of(admin, topics)
        places = _places(admin, partitions, committed)
        planned = plan(admin, how, value, places, now_ms)
    if not planned:
        raise Failure(f"group {group_id} has no offsets to reset", "name topics with --topic")
    return [Move(where, places[where].current, offset) for where, offset in planned.items()]


def moved(admin: Admin, group_id: str, moves: Iterable[Move], *, exists: bool, execute: bool) -> Done:
    """Commit new offsets, or only show them.

    Args:
        exists: whether the group does.
    """
    wanted = {each.where: each for each in moves}
    failures = _commit(admin, group_id, wanted) if execute else {}
    rows = [
        (group_id, *where, each.current, each.offset, _status(execute, exists))
        for where, each in wanted.items()
        if where not in failures
    ]
    return Done(
        found_rows(_COLUMNS, rows, hidden_first=("GROUP", "CURRENT-OFFSET")),
        [(f"partition {where}", error) for where, error in failures.items()],
    )


def _meant(session: Session, group_id: str, execute: bool) -> str:
    """Return the name that a group which does not exist probably meant, as the rest of a sentence.

    Raises:
        Failure: the group would be created now.
    """
    meant = did_you_mean(group_id, session.names("group"))
    if meant and execute:
        raise Failure(f"group {group_id} does not exist{meant}", "--new-group creates it")
    return meant


def _status(execute: bool, exists: bool) -> str:
    return ("set" if execute else "would be set") + ("" if exists else " in a new group")


def require_inactive(admin: Admin, group_id: str) -> bool:
    """Return whether the group exists; one that does not may get offsets.

    Raises:
        Failure: its members would overwrite new offsets, or it is a share group.
        KafkaError: its coordinator does not describe it.
    """
    found = admin.describe_groups([group_id])[group_id]
    if isinstance(found, KafkaError):
        if found.code is not ErrorCode.GROUP_ID_NOT_FOUND:
            raise found
        return False
    if found.type == "share":
        raise Failure(f"group {group_id} is a share group, which commits no offsets", "use kafka-share-groups.sh")
    if found.members:
        members = counted(len(found.members), "member")
        raise Failure(
            f"group {group_id} is {found.state} with {members}, which would overwrite new offsets", "stop them first"
        )
    return True


def _places(
    admin: Admin, partitions: list[TopicPartition], committed: Mapping[TopicPartition, CommittedOffset]
) -> dict[TopicPartition, Place]:
    starts = admin.list_offsets(dict.fromkeys(partitions, EARLIEST))
    ends = admin.list_offsets(dict.fromkeys(partitions, LATEST))
    return {
        each: Place(
            result(starts[each]).offset,
            result(ends[each]).offset,
            committed[each].offset if each in committed else None,
        )
        for each in partitions
    }


def _clamp(offset: int, place: Place) -> int:
    return min(max(offset, place.start), place.end)


def plan(
    admin: Admin, how: str, value: Any, places: Mapping[TopicPartition, Place], now_ms: int
) -> dict[TopicPartition, int]:
    """Return the new offset of each partition.

    Raises:
        ValueError: a time or duration does not parse, or a partition without an offset is to be shifted.
    """
    by_place: dict[str, Callable[[Place], int]] = {
        "--to-earliest": lambda place: place.start,
        "--to-latest": lambda place: place.end,
        # A group that never committed begins at the end, as a consumer would by default.
        "--to-current": lambda place: place.end if place.current is None else place.current,
        "--to-offset": lambda place: _clamp(value, place),
    }
    if how in by_place:
        return {where: by_place[how](place) for where, place in places.items()}
    if how == "--shift-by":
        for where, place in places.items():
            if place.current is None:
                raise ValueError(f"the group has no offset in {where} to shift")
        return {where: _clamp((place.current or 0) + value, place) for where, place in places.items()}
    if how == "--by-duration":
        moment = now_ms - parse_duration_ms(value)
    else:
        moment = parse_time_ms(value, now_ms)
    return _at_time(admin, moment, places)


def _at_time(admin: Admin, moment: int, places: Mapping[TopicPartition, Place]) -> dict[TopicPartition, int]:
    found = admin.list_offsets(dict.fromkeys(places, moment))
    offsets = {where: result(each).offset for where, each in found.items()}
    # All records are older: read on at the end.
    return {where: offset if offset >= 0 else places[where].end for where, offset in offsets.items()}


def read_plan(lines: Iterable[str]) -> dict[TopicPartition, int]:
    """Parse topic,partition,offset lines.

    Raises:
        ValueError: a line does not parse; the message has its number.
    """
    wanted: dict[TopicPartition, int] = {}
    for number, row in enumerate(csv.reader(lines), 1):
        if not row or (len(row) == 1 and not row[0].strip()):
            continue
        try:
            topic, partition, offset = (cell.strip() for cell in row)
            wanted[TopicPartition(topic, int(partition))] = int(offset)
        except ValueError:
            raise ValueError(f"line {number} is not topic,partition,offset: {','.join(row)!r}") from None
    return wanted


def _commit(admin: Admin, group_id: str, wanted: Mapping[TopicPartition, Move]) -> dict[TopicPartition, KafkaError]:
    offsets = {where: CommittedOffset(each.offset, "") for where, each in wanted.items()}
    outcomes = admin.alter_group_offsets(group_id, offsets)
    return {where: error for where, error in outcomes.items() if error is not None}
