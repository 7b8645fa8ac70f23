"""`barnabas spark`: the queries that commit their progress to consumer groups."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import NamedTuple

import click

from barnabas.cli.failure import report_failures
from barnabas.cli.log_bounds import Bounds, log_bounds
from barnabas.cli.session import Session, complete_groups, session_options
from barnabas.cli.times import format_time_ms
from barnabas.client.admin import Admin, CommittedOffset, TopicPartition
from barnabas.protocol.errors import ErrorCode, KafkaError, error_for
from barnabas.spark.source.commit_mark import parse_mark

_COLUMNS = ("GROUP", "TOPIC", "PARTITIONS", "LAG", "LAG-SECONDS", "LAST-COMMIT")
_NO_QUERY = "no query commits its progress: set the source's option kafka.group.id, a group for each query"


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
    """Spark queries: how far each is behind."""


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
        session.output.table(_COLUMNS, rows, hidden_first=("PARTITIONS", "LAST-COMMIT"))
    if not rows and not groups:
        click.echo(_NO_QUERY, err=True)
    report_failures((f"group {name}", outcome) for name, outcome in outcomes.items())


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
