"""`barnabas spark`: the queries that commit their progress to consumer groups, and what queries left open."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import click

from barnabas.cli.duration import Duration
from barnabas.cli.failure import Failure, Failures, failure_of, report_failures
from barnabas.cli.log_bounds import Bounds, log_bounds
from barnabas.cli.output import Found, found_rows
from barnabas.cli.session import Session, complete_groups, session_options
from barnabas.cli.txn import duration_text
from barnabas.client.admin import Admin, CommittedOffset, TopicPartition
from barnabas.protocol.errors import ErrorCode, KafkaError, error_for
from barnabas.spark.plain_errors import QueryError
from barnabas.spark.sink.decisions import NO_BATCH
from barnabas.spark.sink.orphans import OpenSink, open_sinks, query_of
from barnabas.spark.sink.protocol import SinkDriver
from barnabas.spark.sink.sink_batch import SinkBatch
from barnabas.spark.source.commit_mark import parse_mark
from barnabas.words.times import format_time_ms

_COLUMNS = ("GROUP", "TOPIC", "PARTITIONS", "LAG", "LAG-SECONDS", "LAST-COMMIT")
_SINK_COLUMNS = ("SINK", "TRANSACTIONS", "TOPICS", "SINCE", "OPEN-FOR", "LAST-SIGN")
NO_QUERY = "no query commits its progress: set the source's option kafka.group.id, a group for each query"


class Unread(NamedTuple):
    """The part of a partition that a query has not read.

    Attributes:
        records: None if the partition's end is unknown.
        since_ms: the timestamp of the oldest unread record. None if the query has read every record, or if the record's
            timestamp is unknown.
    """

    records: int | None
    since_ms: int | None


@click.group()
def spark() -> None:
    """Spark queries: how far each is behind, and what dead ones left open."""


@spark.command()
@click.argument("groups", nargs=-1, metavar="GROUP…", shell_complete=complete_groups)
@session_options
def status(session: Session, groups: tuple[str, ...]) -> None:
    """Show the queries that commit progress: lag in records and in seconds, last commit.

    A query commits if its source has the option kafka.group.id. Without GROUP all groups that Spark committed to.
    """
    outcomes: dict[str, KafkaError | None] = {}
    rows: list[tuple[object, ...]] = []
    with session.admin() as admin:
        now_ms = int(time.time() * 1000)
        for name in dict.fromkeys(groups) or _candidates(admin):
            committed = admin.list_group_offsets(name)
            is_query = any(parse_mark(each.metadata) for each in committed.values())
            if groups and not committed:
                outcomes[name] = error_for(ErrorCode.GROUP_ID_NOT_FOUND, f"group {name} does not exist")
            elif groups or is_query:
                rows += _rows(admin, name, committed, now_ms)
    if rows or not outcomes:
        session.output.show_found(_queries(rows))
    if not rows and not groups:
        click.echo(NO_QUERY, err=True)
    report_failures((f"group {name}", outcome) for name, outcome in outcomes.items())


@spark.command()
@click.argument("sinks", nargs=-1, metavar="[SINK]…")
@click.option("--abort", is_flag=True, help="End the open transactions of each SINK.")
@click.option("--longer-than", type=Duration(), default="0s", help="Only sinks with a transaction open for longer: 5m.")
@session_options
def orphans(session: Session, sinks: tuple[str, ...], abort: bool, longer_than: int) -> None:
    """Show the sinks of Spark queries that have open transactions, which readers of committed records wait for.

    A sink is PREFIX/QUERY: the option transactionalIdPrefix with the id of the query, or a batch write's queryId. A query
    that is writing a batch is shown as well as one that died. LAST-SIGN tells when it last wrote anything.

    --abort commits what the query had decided and aborts the rest; if the query lives, its batch fails, nothing is lost,
    and the query must be started again.
    """
    if abort and not sinks:
        raise click.UsageError("Missing argument 'SINK…': --abort ends the transactions of the sinks that you name.")
    now_ms = int(time.time() * 1000)
    with session.admin() as admin:
        found = {each.name: each for each in open_sinks(admin.cluster, now_ms) if now_ms - each.since_ms >= longer_than}
        named = [found[name] for name in dict.fromkeys(sinks) if name in found]
        failures = [
            Failure(f"sink {name} has no such transaction") for name in dict.fromkeys(sinks) if name not in found
        ]
        if abort:
            failures += _settle(session, admin, named)
        elif shown := named if sinks else list(found.values()):
            session.output.show_found(_sinks(shown, now_ms))
        elif session.output.is_json:
            session.output.table(_SINK_COLUMNS, [])
        elif not sinks:
            click.echo("no transaction of a Spark sink is open")
    if failures:
        raise Failures(failures)


def queries_of(admin: Admin, now_ms: int) -> Found:
    """Return all queries that commit their progress, as `status` prints them.

    Raises:
        KafkaError: no broker answers.
    """
    rows: list[tuple[object, ...]] = []
    for name in _candidates(admin):
        committed = admin.list_group_offsets(name)
        if any(parse_mark(each.metadata) for each in committed.values()):
            rows += _rows(admin, name, committed, now_ms)
    return _queries(rows)


def orphans_of(admin: Admin, now_ms: int) -> Found:
    """Return the sinks with open transactions, as `orphans` prints them; errors are those of `queries_of`."""
    return _sinks(open_sinks(admin.cluster, now_ms), now_ms)


def _queries(rows: Sequence[tuple[object, ...]]) -> Found:
    return found_rows(_COLUMNS, rows, hidden_first=("PARTITIONS", "LAST-COMMIT"))


def _sinks(sinks: Sequence[OpenSink], now_ms: int) -> Found:
    return found_rows(_SINK_COLUMNS, [_sink_row(each, now_ms) for each in sinks], hidden_first=("SINCE",))


def _sink_row(sink: OpenSink, now_ms: int) -> tuple[object, ...]:
    open_for = duration_text(now_ms - sink.since_ms)
    seen = f"{duration_text(now_ms - sink.seen_ms)} ago"
    return sink.name, sink.transactions, list(sink.topics), format_time_ms(sink.since_ms), open_for, seen


def _settle(session: Session, admin: Admin, sinks: list[OpenSink]) -> list[Failure]:
    """End the transactions of sinks, and return why that failed."""
    rows: list[tuple[object, ...]] = []
    failures = []
    for each in sinks:
        batch = SinkBatch(each.name, query_of(each.name), "", NO_BATCH)
        try:
            rows.append((each.name, *SinkDriver(admin.cluster, batch, admin.cluster.timeout_ms).settle()))
        except KafkaError as error:
            failures.append(failure_of(error, f"sink {each.name}"))
        except QueryError as error:
            failures.append(Failure(f"sink {each.name}: {error}"))
    if rows:
        session.output.table(("SINK", "COMMITTED", "ABORTED"), rows)
    return failures


def _candidates(admin: Admin) -> list[str]:
    """Return the groups without members; no consumer may join the group of a query."""
    return [each.group_id for each in admin.list_groups() if each.state == "Empty" and each.type != "share"]


def _rows(
    admin: Admin, group_id: str, committed: Mapping[TopicPartition, CommittedOffset], now_ms: int
) -> list[tuple[object, ...]]:
    """Return a row for each topic that a group committed in."""
    found = _unread(admin, committed)
    rows: list[tuple[object, ...]] = []
    for topic in sorted({each.topic for each in committed}):
        mine = [each for each in committed if each.topic == topic]
        marks = [mark.committed_ms for each in mine if (mark := parse_mark(committed[each].metadata))]
        commits = [committed_ms for committed_ms in marks if committed_ms is not None]
        lags = [records for each in mine if (records := found[each].records) is not None]
        since = [since_ms for each in mine if (since_ms := found[each].since_ms) is not None]
        seconds = max(0, now_ms - min(since)) // 1000 if since else 0 if lags and not sum(lags) else None
        last_commit = format_time_ms(max(commits)) if commits else None
        rows.append((group_id, topic, len(mine), sum(lags) if lags else None, seconds, last_commit))
    return rows


def _unread(admin: Admin, committed: Mapping[TopicPartition, CommittedOffset]) -> dict[TopicPartition, Unread]:
    bounds = log_bounds(admin, committed)
    lags = {each: _lag(committed[each].offset, bounds[each]) for each in committed}
    first = {each: max(committed[each].offset, bounds[each][0] or 0) for each, lag in lags.items() if lag}
    times = admin.record_times(first)
    unread: dict[TopicPartition, Unread] = {}
    for each, lag in lags.items():
        since_ms = times.get(each)
        unread[each] = Unread(lag, None if isinstance(since_ms, KafkaError) else since_ms)
    return unread


def _lag(offset: int, bounds: Bounds) -> int | None:
    return None if bounds[1] is None else max(0, bounds[1] - offset)
