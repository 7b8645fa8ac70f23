"""`barnabas dlq`: list, show, redrive, purge."""

from __future__ import annotations

import heapq
import json
from collections import Counter
from dataclasses import asdict

import click

from barnabas.cli.dead_letters import FILTER_HELP, error_name, error_text, find_topics, opened, parse_filter
from barnabas.cli.dlq_purge import purge
from barnabas.cli.dlq_redrive import redrive
from barnabas.cli.output import Table
from barnabas.cli.record_format import Shown, to_json
from barnabas.cli.session import Session, complete_topics, session_options
from barnabas.retries.headers import FailureHeaders
from barnabas.retries.redrive import DeadLetter, DeadLetterReader, DeadLetterTopic
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
            rows = [_summary(reader, topic) for topic in found]
    data = [dict(zip(("topic", "records", "not_redriven", "oldest", "errors"), row, strict=True)) for row in rows]
    shown = [(*row[:4], [f"{error} {count}" for error, count in list(row[4].items())[:_ERRORS_SHOWN]]) for row in rows]
    session.output.show(data, Table(_LIST_COLUMNS, shown, hidden_first=("OLDEST", "RECORDS"), below=("ERRORS",)))


def _summary(reader: DeadLetterReader, topic: DeadLetterTopic) -> tuple[str, int, int, str | None, dict[str, int]]:
    records = left = 0
    oldest_ms: int | None = None
    errors: Counter[str] = Counter()
    for each in reader.read(topic, reader.redriven(topic)):
        records += 1
        left += not each.is_redriven
        errors[error_name(each.failure)] += 1
        if each.record.timestamp_ms >= 0:
            oldest_ms = min(each.record.timestamp_ms, each.record.timestamp_ms if oldest_ms is None else oldest_ms)
    return (
        topic.name,
        records,
        left,
        None if oldest_ms is None else format_time_ms(oldest_ms),
        dict(errors.most_common()),
    )


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
            wanted = heapq.nsmallest(limit, filter(chosen, dead_letters), key=_age)
    rows = [_row(each) for each in wanted]
    table = Table(_SHOW_COLUMNS, rows, hidden_first=_SHOW_HIDDEN_FIRST, below=("ERROR",))
    session.output.show([_object(each) for each in wanted], table)
    if wanted and all(each.failure == FailureHeaders() for each in wanted):
        click.echo(f"these records have no dead-letter headers: {printable(topic)} may be an ordinary topic", err=True)


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
