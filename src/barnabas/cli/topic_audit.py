"""`barnabas topic audit`: topics and groups that may be left over."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import NamedTuple

import click

from barnabas.cli.duration import Duration
from barnabas.cli.log_bounds import log_bounds
from barnabas.cli.session import Session, session_options
from barnabas.cli.topic_owners import owners_of
from barnabas.cli.wording import counted, listed
from barnabas.client.admin import MAX_TIMESTAMP, Admin, OffsetAndTimestamp, TopicMetadata, TopicPartition
from barnabas.words.times import format_time_ms


class Finding(NamedTuple):
    """Something to look at: what it is, a topic's or group's name, and what is the matter."""

    kind: str
    name: str
    finding: str


@click.command()
@click.option("--idle", type=Duration(), default="30d", show_default=True, help="A topic is idle after this time.")
@session_options
def audit(session: Session, idle: int) -> None:
    """List topics without owner or new records, and groups without members.

    Also partitions without records in topics that have some. The exit code is 0 whatever it finds.
    """
    with session.admin() as admin:
        topics = admin.list_topics()
        owners = owners_of(admin, topics)
        idle_since = _idle_since(admin, topics, time.time_ns() // 1_000_000 - idle)
        empty = _empty_partitions(admin, topics)
        rows = []
        for each in topics:
            if each.name not in owners:
                rows.append(Finding("topic", each.name, "it has no owner"))
            if each.name in idle_since:
                rows.append(
                    Finding("topic", each.name, f"its last record is of {format_time_ms(idle_since[each.name])}")
                )
            partitions = empty[each.name]
            if len(partitions) == len(each.partitions):
                rows.append(Finding("topic", each.name, "it has no records"))
            elif partitions:
                names = listed(partitions)
                rows.append(
                    Finding("topic", each.name, f"{counted(len(partitions), 'partition')} without records: {names}")
                )
        rows += _left_groups(admin)
    session.output.table(("KIND", "NAME", "FINDING"), rows, below=("FINDING",))


def _partitions(topics: list[TopicMetadata]) -> list[TopicPartition]:
    return [TopicPartition(each.name, found.partition) for each in topics for found in each.partitions]


def _idle_since(admin: Admin, topics: list[TopicMetadata], before_ms: int) -> dict[str, int]:
    """Return the latest timestamp of each topic whose records are all older than `before_ms`."""
    latest: dict[str, int] = {}
    for where, found in admin.list_offsets(dict.fromkeys(_partitions(topics), MAX_TIMESTAMP)).items():
        # A partition that does not answer may have new records.
        timestamp_ms = found.timestamp if isinstance(found, OffsetAndTimestamp) else before_ms
        latest[where.topic] = max(latest.get(where.topic, -1), timestamp_ms)
    return {name: timestamp_ms for name, timestamp_ms in latest.items() if 0 <= timestamp_ms < before_ms}


def _empty_partitions(admin: Admin, topics: list[TopicMetadata]) -> dict[str, list[TopicPartition]]:
    empty: dict[str, list[TopicPartition]] = {each.name: [] for each in topics}
    for where, (start, end) in log_bounds(admin, _partitions(topics)).items():
        if start is not None and start == end:
            empty[where.topic].append(where)
    return empty


def _left_groups(admin: Admin) -> Iterator[Finding]:
    for each in admin.list_groups(states=["Empty"]):
        committed = 0 if each.type == "share" else len(admin.list_group_offsets(each.group_id))
        if committed:
            words = f"it has no members, and offsets of {counted(committed, 'partition')}"
            yield Finding("group", each.group_id, words)
