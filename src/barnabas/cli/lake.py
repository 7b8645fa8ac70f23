"""`barnabas lake`: tables that are written from topics.

`audit` asks whether a table has each committed record of a topic once; the exit code is 0 if so, 1 otherwise. `compact` and `vacuum` are
the upkeep of a table that a query writes for a long time; they need no cluster.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import TYPE_CHECKING

import click

from barnabas.cli.duration import Duration
from barnabas.cli.failure import Failure, Quiet
from barnabas.cli.output import Table
from barnabas.cli.session import Session, complete_topics, parse_pairs, session_options
from barnabas.client.bootstrap import format_address
from barnabas.spark import tables
from barnabas.spark.security_options import of_client
from barnabas.spark.tables.iceberg_catalog import catalog_of, open_catalog
from barnabas.words.requirements import needed_by

if TYPE_CHECKING:
    from barnabas.spark.tables.audit import PartitionAudit
    from barnabas.spark.tables.audited_part import Part

_SHOWN = 3
"""Ranges of wrong offsets that a line shows; JSON has all."""


@click.group()
def lake() -> None:
    """Tables that are written from topics: audit, compact, vacuum."""


_delta = click.option("--delta", metavar="PATH", help="The Delta table.")
_iceberg = click.option("--iceberg", metavar="TABLE", help="The Iceberg table, with its namespace.")
_catalog = click.option(
    "--catalog",
    metavar="KEY=VALUE",
    multiple=True,
    help="A property of the Iceberg table's catalogue, repeat; or its name in pyiceberg's configuration.",
)
_storage = click.option(
    "--storage", metavar="KEY=VALUE", multiple=True, help="An option of the Delta table's object store; repeat."
)


@lake.command()
@click.argument("topic", shell_complete=complete_topics)
@_delta
@_iceberg
@_catalog
@_storage
@click.option("--parquet", metavar="PATH", help="The folder of Parquet files, or of a streaming query's file sink.")
@click.option(
    "--where",
    metavar="CONDITION",
    multiple=True,
    help="Only this part, such as partition=0, timestamp>=-1h or day=2026-11-21; repeat.",
)
@click.option("--from-first", is_flag=True, help="Begin at the table's first record of each partition.")
@click.option("--to-end", is_flag=True, help="The table must reach the end of the topic.")
@session_options
def audit(
    session: Session,
    topic: str,
    delta: str | None,
    iceberg: str | None,
    catalog: tuple[str, ...],
    storage: tuple[str, ...],
    parquet: str | None,
    where: tuple[str, ...],
    from_first: bool,
    to_end: bool,
) -> None:
    """Check that a table has each committed record of TOPIC once, and no other.

    The table keeps the columns topic, partition and offset.
    """
    if [delta, iceberg, parquet].count(None) != 2:
        raise click.UsageError("Name one table: --delta PATH, --iceberg TABLE or --parquet PATH.")
    try:
        with needed_by("the audit", "lake"):
            from barnabas.spark.tables import audit as lake_audit

            part = lake_audit.parse_part(where, time.time_ns() // 1_000_000)
            table: lake_audit.Rows
            if delta is not None:
                table = lake_audit.delta_table(delta, parse_pairs(storage, "--storage"))
            elif iceberg is not None:
                table = lake_audit.iceberg_table(iceberg, catalog_of(catalog))
            else:
                table = lake_audit.parquet_files(parquet or "")
        found = list(
            lake_audit.audit(
                _with_port(session),
                topic,
                table,
                part=part,
                from_first=from_first,
                to_end=to_end,
                security=of_client(session.properties),
            )
        )
    except ValueError as error:
        raise Failure(str(error)) from None
    _report(session, topic, found, part)


@lake.command()
@_delta
@_iceberg
@_catalog
@_storage
@click.option("--target-mb", type=click.IntRange(min=1), default=128, show_default=True, help="Size of the new files.")
def compact(
    delta: str | None, iceberg: str | None, catalog: tuple[str, ...], storage: tuple[str, ...], target_mb: int
) -> None:
    """Put a table's small files together; a query may write meanwhile."""
    with _failures():
        found = tables.compact(_table(delta, iceberg, catalog, storage), target_mb << 20, datetime.now(UTC))
    click.echo(f"put {found.before} files together into {found.after}" if found.before else "no small files")


@lake.command()
@_delta
@_iceberg
@_catalog
@_storage
@click.option("--older-than", type=Duration(), default="7d", show_default=True, help="Keep what the table was since.")
def vacuum(
    delta: str | None, iceberg: str | None, catalog: tuple[str, ...], storage: tuple[str, ...], older_than: int
) -> None:
    """Delete files that a table no longer needs, those of killed tasks among them.

    The table can then no longer be read as it was before that time. A batch must not take that long.
    """
    with _failures():
        table = _table(delta, iceberg, catalog, storage)
        count = tables.vacuum(table, timedelta(milliseconds=older_than), datetime.now(UTC))
    click.echo(f"deleted {count} files")


def _table(
    delta: str | None, iceberg: str | None, catalog: tuple[str, ...], storage: tuple[str, ...]
) -> tables.Delta | tables.Iceberg:
    if (delta is None) == (iceberg is None):
        raise click.UsageError("Name one table: --delta PATH or --iceberg TABLE.")
    if delta is not None:
        return tables.Delta.at(delta, None, parse_pairs(storage, "--storage"))
    return tables.Iceberg(iceberg or "", open_catalog(catalog_of(catalog)))


@contextmanager
def _failures() -> Iterator[None]:
    try:
        with needed_by("a table's upkeep", "lake"):
            yield
    except ValueError as error:
        raise Failure(str(error)) from None


def _with_port(session: Session) -> str:
    with session.admin() as admin:
        return ",".join(format_address(*each) for each in admin.cluster.bootstrap)


def _report(session: Session, topic: str, found: list[PartitionAudit], part: Part) -> None:
    """Print the partitions, what is wrong in them, and the verdict.

    Raises:
        Quiet: something is wrong.
    """
    columns = ("PARTITION", "COMMITTED", "ROWS", "MISSING", "REPEATED", "UNCOMMITTED", "UNKNOWN", "BEHIND")
    rows = [
        (
            each.partition, None if part.unknown_to_the_log else each.committed, each.rows,
            None if part.unknown_to_the_log else each.missing.size,
            each.repeated.size, each.uncommitted.size, each.unknown.size,
            None if part.unknown_to_the_log else each.behind,
        )
        for each in found
    ]  # fmt: skip
    table = Table(columns, rows, hidden_first=("ROWS", "COMMITTED", "BEHIND"))
    is_valid = not any(each.wrong for each in found) and not is_without_rows(found, part)
    if session.output.is_json:
        wrong = [
            {"partition": each.partition, "what": what, "ranges": ranges(offsets.tolist())}
            for each in found
            for what, offsets in each.wrong.items()
        ]
        parts = {"where": str(part)} if part.conditions else {}
        session.output.show({"valid": is_valid, **parts, "partitions": table.objects(), "wrong": wrong})
    else:
        session.output.show(None, table)
        click.echo()
        for each in found:
            for what, offsets in each.wrong.items():
                click.echo(f"{topic}-{each.partition}: {what}: {in_words(offsets.tolist())}")
        click.echo(verdict(topic, found, part))
        if part.conditions:
            click.echo(not_compared(part))
    if not is_valid:
        raise Quiet


def is_without_rows(found: list[PartitionAudit], part: Part) -> bool:
    """Return whether the table has no row of a topic with records, or of the part: nothing was compared, so nothing is valid."""
    return not any(each.rows for each in found) and (bool(part.conditions) or any(each.committed for each in found))


def verdict(topic: str, found: list[PartitionAudit], part: Part) -> str:
    """Return one sentence about the table."""
    of = f"{topic} with {part}" if part.conditions else topic
    committed, rows = sum(each.committed for each in found), sum(each.rows for each in found)
    if is_without_rows(found, part):
        known = "" if part.unknown_to_the_log else f", which has {committed:,} committed records"
        return f"invalid: the table has no row of {of}{known}"
    counts: dict[str, int] = {}
    for each in found:
        for what, offsets in each.wrong.items():
            counts[what] = counts.get(what, 0) + offsets.size
    if counts:
        return "invalid: " + ", ".join(f"{count:,} {what}" for what, count in counts.items())
    if part.unknown_to_the_log:
        return f"valid: each of {rows:,} rows of {of} is a committed record, once"
    behind = sum(each.behind for each in found)
    end = f"; {behind:,} at the end are not in it yet" if behind else ""
    return f"valid: each of {committed - behind:,} committed records of {of} is in the table once{end}"


def not_compared(part: Part) -> str:
    """Return one sentence about what the audit of a part leaves open."""
    rest = "not compared: the other rows and records"
    if part.unknown_to_the_log:
        columns = " and ".join(part.unknown_to_the_log)
        rest += (
            f"; and whether records are missing from this part, because the topic does not have the column {columns}"
        )
    return rest


def ranges(offsets: list[int]) -> list[list[int]]:
    """Return sorted offsets as ranges, first and last of each."""
    if not offsets:
        return []
    gaps = [(before, after) for before, after in pairwise(offsets) if after != before + 1]
    firsts, lasts = [offsets[0], *(after for _, after in gaps)], [*(before for before, _ in gaps), offsets[-1]]
    return [[first, last] for first, last in zip(firsts, lasts, strict=True)]


def in_words(offsets: list[int]) -> str:
    """Return sorted offsets as people read them: `5 to 9, 12`."""
    found = ranges(offsets)
    words = [str(first) if first == last else f"{first} to {last}" for first, last in found[:_SHOWN]]
    more = f" and {len(found) - _SHOWN} more ranges" if len(found) > _SHOWN else ""
    return "offsets " + ", ".join(words) + more
