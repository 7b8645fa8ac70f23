"""`barnabas dlq`: list, show, redrive, purge."""

from __future__ import annotations

import heapq
import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import NamedTuple

import click

from barnabas.cli.dead_letters import FILTER_HELP, error_name, error_text, find_topics, opened, parse_filter
from barnabas.cli.dlq_purge import purge
from barnabas.cli.dlq_redrive import redrive
from barnabas.cli.output import Found, Table
from barnabas.cli.record_format import Shown, to_json
from barnabas.cli.session import Session, complete_topics, session_options
from barnabas.retries.headers import FailureHeaders
from barnabas.retries.redrive import DeadLetter
from barnabas.words.printable import printable
from barnabas.words.times import format_time_ms

_ERRORS_SHOWN = 3
_LIST_COLUMNS = ("TOPIC", "RECORDS", "NOT-REDRIVEN", "OLDEST", "ERRORS")
_SHOW_COLUMNS = (
    "PARTITION", "OFFSET", "SOURCE", "KEY", "ATTEMPTS", "FIRST-FAILURE", "LAST-FAILURE", "GROUP", "REDRIVEN", "ERROR",
)  # fmt: skip
_SHOW_HIDDEN_FIRST = ("GROUP", "FIRST-FAILURE", "KEY", "LAST-FAILURE", "REDRIVEN", "ATTEMPTS")


@click.group()
def dlq() -> None:
    """Dead letters: list and show them, send them back to their topics, purge them."""


dlq.add_command(redrive)
dlq.add_command(purge)


@dlq.command(name="list")
@click.argument("topics", nargs=-1, metavar="[TOPIC…]", shell_complete=complete_topics)
@click.option("-t", "--topic", "more", multiple=True, metavar="TOPIC", help="This topic, whatever its name; repeat.")
@session_options
def list_(session: Session, topics: tuple[str, ...], more: tuple[str, ...]) -> None:
    """List dead-letter topics, how many records they have, and the most frequent errors.

    Without a name these are the topics called NAME.dlq, NAME-dlq, NAME-dlt and dlq.NAME.
    """
    with session.admin() as admin:
        found = find_topics(admin, [*topics, *more])
        with opened(session, admin) as reader:
            summaries = [summary_of(each.name, reader.read(each, reader.redriven(each))) for each in found]
    session.output.show_found(listed_topics(summaries))


class Summary(NamedTuple):
    """The dead letters of a topic, counted.

    Attributes:
        oldest: a time; None if no record has one.
        errors: how many each error has, the most frequent first.
    """

    topic: str
    records: int
    not_redriven: int
    oldest: str | None
    errors: dict[str, int]


def summary_of(topic: str, dead_letters: Iterable[DeadLetter]) -> Summary:
    """Count dead letters."""
    records = left = 0
    times: list[int] = []
    errors: Counter[str] = Counter()
    for each in dead_letters:
        records += 1
        left += not each.is_redriven
        errors[error_name(each.failure)] += 1
        if each.record.timestamp_ms >= 0:
            times = [min([each.record.timestamp_ms, *times])]
    return Summary(topic, records, left, format_time_ms(times[0]) if times else None, dict(errors.most_common()))


def listed_topics(summaries: Sequence[Summary]) -> Found:
    """Return what the command prints of topics of dead letters."""
    shown = [
        (*each[:4], [f"{error} {count}" for error, count in list(each.errors.items())[:_ERRORS_SHOWN]])
        for each in summaries
    ]
    table = Table(_LIST_COLUMNS, shown, hidden_first=("OLDEST", "RECORDS"), below=("ERRORS",))
    return Found([each._asdict() for each in summaries], [table])


@dlq.command()
@click.argument("topic", metavar="TOPIC", shell_complete=complete_topics)
@click.option("-f", "--filter", "filters", multiple=True, metavar="NAME=VALUE", help=FILTER_HELP)
@click.option("-n", "--limit", type=click.IntRange(min=1), default=20, show_default=True, help="At most this many.")
@session_options
def show(session: Session, topic: str, filters: tuple[str, ...], limit: int) -> None:
    """Show the oldest dead letters of a topic, and why they failed. JSON has their values and all headers.

    \b
    barnabas dlq show orders.dlq --filter error=TimeoutError
    """
    chosen = parse_filter(filters)
    with session.admin() as admin:
        (found,) = find_topics(admin, [topic])
        with opened(session, admin) as reader:
            dead_letters = reader.read(found, reader.redriven(found))
            wanted = oldest(filter(chosen, dead_letters), limit)
    session.output.show_found(shown_letters(wanted))
    if wanted and all(each.failure == FailureHeaders() for each in wanted):
        click.echo(f"these records have no dead-letter headers: {printable(topic)} may be an ordinary topic", err=True)


def oldest(dead_letters: Iterable[DeadLetter], count: int) -> list[DeadLetter]:
    """Return the oldest dead letters, the oldest first."""
    return heapq.nsmallest(count, dead_letters, key=_age)


def shown_letters(dead_letters: Sequence[DeadLetter]) -> Found:
    """Return what the command prints of dead letters."""
    rows = [_row(each) for each in dead_letters]
    table = Table(_SHOW_COLUMNS, rows, hidden_first=_SHOW_HIDDEN_FIRST, below=("ERROR",))
    return Found([_object(each) for each in dead_letters], [table])


def _age(each: DeadLetter) -> tuple[int, int, int]:
    return each.record.timestamp_ms, each.record.partition, each.record.offset


def _row(each: DeadLetter) -> tuple[object, ...]:
    failure = each.failure
    source = None if failure.topic is None else f"{failure.topic}-{failure.partition}@{failure.offset}"
    return (
        each.record.partition,
        each.record.offset,
        source,
        None if each.record.key is None else each.record.key.decode(errors="replace"),
        failure.attempts,
        _time(failure.first_failure_ms),
        _time(failure.last_failure_ms),
        failure.group,
        each.is_redriven,
        error_text(failure),
    )


def _time(milliseconds: int | None) -> str | None:
    return None if milliseconds is None else format_time_ms(milliseconds)


def _object(each: DeadLetter) -> dict[str, object]:
    at = each.record
    shown = Shown(at.topic, at.partition, at.offset, at.timestamp_ms, at.key, at.value, at.headers)
    return {**json.loads(to_json(shown)), "failure": asdict(each.failure), "redriven": each.is_redriven}
