"""`barnabas log` has one command, `dump`: what is in the files of a log. `kafka-dump-log` does the same with a JVM."""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from barnabas.cli.failure import Failure, Failures, explained
from barnabas.cli.output import Output, Table
from barnabas.cli.output_options import output_options
from barnabas.cli.record_format import json_line
from barnabas.cli.wording import counted
from barnabas.dump.log_files import BATCH_COLUMNS, Batch, batches, index_of, partition_of, record_objects
from barnabas.records.errors import RecordError
from barnabas.words.printable import printable

_BATCHES = (".log", ".checkpoint")


@click.group()
def log() -> None:
    """The files of logs, without a broker: dump."""


@log.command()
@click.argument(
    "files", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False, path_type=Path), metavar="FILE…"
)
@click.option(
    "--records", is_flag=True, help="The records, as lines of JSON; decoded in the metadata log and internal topics."
)
@output_options
def dump(files: tuple[Path, ...], records: bool, output: Output) -> None:
    """Show the batches of segments, or the entries of indexes and of snapshots of producers.

    The files are only read, also those of a broker that runs. Every checksum is checked; the exit code is 1 if something is damaged.

    \b
    barnabas log dump data/orders-0/00000000000000000000.log
    """
    if records and (others := [each for each in files if each.suffix not in _BATCHES]):
        raise click.UsageError(
            f"{printable(str(others[0]))} has no records: --records is for .log and .checkpoint files."
        )
    failures: list[Failure] = []
    for number, path in enumerate(files):
        if len(files) > 1 and not output.is_json and not records:
            click.echo(f"{'' if number == 0 else chr(10)}{printable(str(path))}")
        with _opened(path) as data:
            if path.suffix in _BATCHES:
                problems = _dump_batches(path, data, None if records else output)
            else:
                problems = _dump_index(path, bytes(data), output)
        failures += [Failure(f"{printable(str(path))}: {each}") for each in problems]
    if failures:
        with explained():
            raise Failures(failures)


@contextmanager
def _opened(path: Path) -> Iterator[memoryview]:
    """Map a file; an empty one cannot be mapped."""
    with path.open("rb") as file:
        if not file.seek(0, 2):
            yield memoryview(b"")
            return
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped, memoryview(mapped) as data:
            yield data


def _dump_batches(path: Path, data: memoryview, printer: Output | None) -> list[str]:
    """Print batches, or with None their records; return what is wrong."""
    topic, partition = partition_of(path)
    problems: list[str] = []
    rows = []
    count = seen = 0
    for found in batches(data):
        if not isinstance(found, Batch):
            problems.append(found)
            continue
        count += 1
        seen += found.header.record_count
        if found.problem:
            problems.append(f"the batch at position {found.position} is damaged: {found.problem}")
        elif printer is None:
            try:
                for each in record_objects(data, found, topic, partition):
                    click.echo(json_line(each), nl=False)
            except RecordError as error:
                problems.append(f"the records at position {found.position} cannot be read: {error.message}")
        if printer is not None:
            rows.append(found.row())
    if printer is not None:
        hidden = ("PRODUCER-EPOCH", "SEQUENCE", "MAX-TIMESTAMP", "LEADER-EPOCH", "PRODUCER", "CODEC", "KIND")
        table = Table(BATCH_COLUMNS, rows, hidden_first=hidden)
        printer.show(table.objects(), table)
    click.echo(f"{count} batch{'' if count == 1 else 'es'}, {counted(seen, 'record')}, {len(data)} bytes", err=True)
    return problems


def _dump_index(path: Path, data: bytes, printer: Output) -> list[str]:
    try:
        found = index_of(path, data)
    except ValueError:
        return ["its name is not the base offset of a segment"]
    if found is None:
        return ["no file of a log: .log, .index, .timeindex, .txnindex, .snapshot or .checkpoint"]
    printer.table(found.columns, found.rows)
    room = f", and room for more: {found.room} bytes of zeros" if found.room else ""
    click.echo(f"{len(found.rows)} entr{'y' if len(found.rows) == 1 else 'ies'}{room}", err=True)
    return [found.problem] if found.problem else []
