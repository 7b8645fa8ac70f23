"""`barnabas topic skew`: how evenly keys spread over a topic's partitions, which keys are hot, and what would spread them.

One pass over the records. Records and bytes of each partition are counted exactly, the keys by a sketch of fixed size for
each partition (`HeavyKeys`); what salts would give is computed from the sketches, what a composite key would give from each
record.
"""

from __future__ import annotations

import json
import time
from functools import lru_cache

import click

from barnabas.cli.failure import Failure
from barnabas.cli.offset_grammar import Span, parse_offsets
from barnabas.cli.output import Table, json_name
from barnabas.cli.progress import Measured, rate, shown
from barnabas.cli.record_format import json_bytes
from barnabas.cli.session import Session, complete_topics, session_options_of_ranges
from barnabas.cli.spans import spans_of
from barnabas.cli.wording import counted
from barnabas.client.admin import Admin, TopicPartition
from barnabas.client.key_report import Choice, CountedPartition, KeyReport, report_of
from barnabas.client.offsets import READ_UNCOMMITTED
from barnabas.client.partition_records import records_between
from barnabas.client.partitioner import LIBRARY_DEFAULTS, PARTITIONERS, partition_for
from barnabas.records.record import Record
from barnabas.words.printable import printable

_GOOD_FIT = 0.9
_REMEMBERED_KEYS = 10_000


@click.command()
@click.argument("topic", metavar="TOPIC", shell_complete=complete_topics)
@click.option("-o", "--offset", "offsets", multiple=True, metavar="OFFSET",
              help="A place to begin, or a range, as for consume.  [default: start]")  # fmt: skip
@click.option("-n", "--keys", "shown_keys", type=click.IntRange(min=1), default=10, show_default=True,
              help="Show this many keys.")  # fmt: skip
@click.option("--hot", type=click.FloatRange(min=0, min_open=True), default=25, show_default=True, metavar="PERCENT",
              help="A key is hot from this part of an even partition on.")  # fmt: skip
@click.option("--salts", default="2,4,8", show_default=True, metavar="N,…", help="Salt hot keys by these numbers.")
@click.option("--composite", metavar="FIELD", help="Also KEY:FIELD as the key, with a field of the JSON value.")
@click.option("--partitioner", help="The producers' partitioner.  [default: the best fit]")
@click.option("--counters", type=click.IntRange(min=1), default=1000, show_default=True,
              help="Keys that are counted in each partition; memory grows with it.")  # fmt: skip
@session_options_of_ranges
def skew(
    session: Session,
    topic: str,
    offsets: tuple[str, ...],
    shown_keys: int,
    hot: float,
    salts: str,
    composite: str | None,
    partitioner: str | None,
    counters: int,
) -> None:
    """Show how evenly keys spread over a topic's partitions.

    Hot keys are named, and what salts (KEY-0, KEY-1, …) would give.
    It reads every record of the range, those of aborted transactions too.

    \b
    barnabas topic skew orders
    barnabas topic skew orders -o @-1h --composite country
    """
    if partitioner is not None and partitioner not in PARTITIONERS:
        raise click.BadParameter(f"{partitioner!r} is not one of {', '.join(PARTITIONERS)}", param_hint="--partitioner")
    try:
        wanted = parse_offsets(offsets, time.time_ns() // 1_000_000)
        numbers = sorted({_salt(text) for text in salts.split(",")})
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    candidates = [partitioner] if partitioner else list(LIBRARY_DEFAULTS)
    with session.admin() as admin:
        spans = spans_of(admin, [topic], [], wanted, READ_UNCOMMITTED)
        found = [CountedPartition(counters) for _ in spans]
        moved = None if composite is None else Composite(composite, len(spans), candidates)
        _read(admin, spans, found, moved)
    if not any(each.records for each in found):
        raise Failure(f"topic {printable(topic)} has no records in this range", "-o start reads all")
    report = report_of(found, hot, numbers, candidates)
    choices = list(report.choices)
    if moved is not None:
        choices.append(Choice(f"KEY:{composite}", moved.loads[report.fit.partitioner]))
    _show(session, topic, report, choices, shown_keys)
    if moved is not None and moved.without_field:
        click.echo(
            f"{counted(moved.without_field, 'record')} without the field {printable(composite or '')} kept the key",
            err=True,
        )


def _salt(text: str) -> int:
    if not text.strip().isdecimal() or int(text) < 2:
        raise ValueError(f"'{printable(text)}' is not a number of salts: write --salts 2,4,8")
    return int(text)


class Composite:
    """The records of each partition if a field of the value were part of the key.

    A record without a key, or whose value is no JSON object with the field, stays where it is.
    """

    def __init__(self, field: str, partition_count: int, partitioners: list[str]) -> None:
        self._field = field
        self._place = lru_cache(_REMEMBERED_KEYS)(partition_for)
        self.loads = {name: [0] * partition_count for name in partitioners}
        self.without_field = 0

    def __repr__(self) -> str:
        return f"<Composite {self._field} {self.loads}>"

    def add(self, partition: int, record: Record) -> None:
        key = record.key if record.key is None else self._composed(record.key, record.value)
        if key == record.key:
            self.without_field += record.key is not None
            key = None
        for name, loads in self.loads.items():
            target = partition if key is None else self._place(key, len(loads), name)
            assert target is not None, "a composite key is never empty"
            loads[target] += 1

    def _composed(self, key: bytes, value: bytes | None) -> bytes:
        try:
            part = json.loads(value or b"")[self._field]
        except (ValueError, LookupError, TypeError):
            return key
        return key + b":" + (part if isinstance(part, str) else json.dumps(part)).encode()


def _read(
    admin: Admin, spans: dict[TopicPartition, Span], found: list[CountedPartition], moved: Composite | None
) -> None:
    began_s = time.monotonic()
    ends = {where: span.log_end if span.end is None else min(span.end, span.log_end) for where, span in spans.items()}
    total = sum(max(0, end - spans[where].begin) for where, end in ends.items())

    def measure() -> Measured:
        records = sum(each.records for each in found)
        text = rate(records, sum(each.size_bytes for each in found), time.monotonic() - began_s)
        return Measured(text, records, total)

    with shown(measure):
        for where, end in ends.items():
            count = found[where.partition]
            for record in records_between(admin.cluster, where, spans[where].begin, end):
                count.add(record.key, len(record.key or b"") + len(record.value or b""))
                if moved is not None:
                    moved.add(where.partition, record)


def _show(session: Session, topic: str, report: KeyReport, choices: list[Choice], shown_keys: int) -> None:
    keys, fit, total = report.keys[:shown_keys], report.fit, report.records
    by_partition = [
        (number, each.records, _percent(each.records, total), each.size_bytes, each.without_key, each.keys.bound)
        for number, each in enumerate(report.partitions)
    ]
    partitions = Table(
        ("PARTITION", "RECORDS", "PERCENT", "BYTES", "WITHOUT-KEY", "ERROR-RECORDS"),
        by_partition,
        hidden_first=("ERROR-RECORDS", "WITHOUT-KEY", "PERCENT"),
    )
    columns = ("KEY", "PARTITION", "AT-MOST", "AT-LEAST", "PERCENT")
    counts = [(at, key.records, key.at_least, _percent(key.records, total)) for at, key in keys]
    by_key = Table(
        columns,
        [(key.key.decode(errors="backslashreplace"), *row) for (_, key), row in zip(keys, counts, strict=True)],
    )
    loads = Table(
        ("KEYS", "HEAVIEST", "RECORDS", "TIMES-EVEN", "ERROR-RECORDS"),
        [
            (each.keys, each.records.index(max(each.records)), max(each.records), each.times_even, each.error_records)
            for each in choices
        ],
        hidden_first=("ERROR-RECORDS", "HEAVIEST"),
    )
    names = [json_name(column) for column in columns[1:]]
    data = {
        "topic": topic,
        "records": total,
        "hot_keys": report.hot_keys,
        "partitioner": fit.partitioner,
        "partitioner_share": round(fit.share, 4),
        "partitions": partitions.objects(),
        "keys": [
            json_bytes("key", key.key) | dict(zip(names, row, strict=True))
            for (_, key), row in zip(keys, counts, strict=True)
        ],
        "plans": [each._asdict() | {"times_even": each.times_even} for each in choices],
    }
    session.output.show(data, *(each for each in (partitions, by_key, loads) if each.rows))
    if keys and fit.share < _GOOD_FIT:
        click.echo(
            f"{fit.share:.0%} of the counted records are where {fit.partitioner} puts their keys: the producers use another"
            " partitioner, or the topic has grown, and salts would fall otherwise",
            err=True,
        )


def _percent(part: int, total: int) -> float:
    return round(100 * part / total, 2)
