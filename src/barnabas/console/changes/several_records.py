"""Several records for a topic, a line of JSON each, as `barnabas produce -f json` takes them: all of them, or none."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing

from barnabas.cli.done import Done
from barnabas.cli.librdkafka import connection_of
from barnabas.cli.output import Found, Table
from barnabas.cli.record_format import Shown, json_object
from barnabas.cli.record_reader import Given as Record
from barnabas.cli.record_reader import read_json_line
from barnabas.cli.sending_once import explained_library, transactional_producer
from barnabas.cli.wording import counted
from barnabas.client.admin import Admin
from barnabas.console.changes.change import Planned
from barnabas.console.changes.given import INT_64_MAX, BadForm, Given
from barnabas.console.changes.records import words_of
from barnabas.console.changes.topics import described
from barnabas.console.page import Field
from barnabas.retries.forwarding import Forwarder
from barnabas.retries.record import Output
from barnabas.words.printable import printable

RECORDS_MAX = 100_000
"""So many are sent in one transaction."""
_SHOWN = 3
_ERRORS_SHOWN = 5
_NO_TIMESTAMP = -1
_NOT_WRITTEN = ("topic", "offset", "timestamp")
FIELDS = (
    Field("topic", "Topic", is_required=True),
    Field(
        "lines",
        "Records, a line of JSON each; 60 KB at most",
        kind="lines",
        hint='{"key": "k", "value": "v", "headers": [{"key": "source", "value": "shop"}]}',
        is_required=True,
        is_private=True,
    ),
)


def production(admin: Admin, given: Given, now_ms: int) -> Planned:
    """Plan records; they are written in one transaction."""
    name = given.required("topic", "the topic")
    text = given.required("lines", "the text of the records")
    records, notes = read_records(text.encode("utf-8", "surrogatepass"), "the text")
    return planned_records(admin, name, records, notes)


def planned_records(admin: Admin, name: str, records: Sequence[Record], notes: Sequence[str]) -> Planned:
    """Plan to write records to a topic in one transaction.

    Raises:
        BadForm: a record is for a partition that the topic lacks, or has no possible time.
        KafkaError: the topic does not exist.
    """
    topic = described(admin, name)
    for number, each in enumerate(records, 1):
        if each.partition is not None and not 0 <= each.partition < len(topic.partitions):
            raise BadForm(
                f"record {number} is for partition {each.partition}, and topic {printable(name)} has"
                f" {counted(len(topic.partitions), 'partition')}, from 0 on"
            )
        if each.timestamp is not None and not _NO_TIMESTAMP <= each.timestamp <= INT_64_MAX:
            raise BadForm(f"record {number} has no possible timestamp: write milliseconds since 1970")
    outputs = [
        Output(
            name,
            each.value,
            each.key,
            tuple(each.headers or ()),
            each.partition,
            None if each.timestamp == _NO_TIMESTAMP else each.timestamp,
        )
        for each in records
    ]

    def written(admin: Admin, given: Given) -> Done:
        with (
            explained_library("all of the records or none of them were written"),
            closing(transactional_producer(connection_of(admin), f"barnabas-console-{name}")) as producer,
        ):
            Forwarder(producer).send(outputs, [])
        return Done(_found(name, records, is_written=True))

    return Planned(
        f"Produce {counted(len(records), 'record')} to topic {printable(name)}",
        f"topic {name}",
        Done(_found(name, records, is_written=False), notes=[*notes, "all are written in one transaction, or none"]),
        written,
        after=("topic", {"name": name}),
    )


def read_records(data: bytes, noun: str) -> tuple[list[Record], list[str]]:
    """Return the records of some lines, and what may not be meant so.

    Args:
        noun: for the data.

    Raises:
        BadForm: lines are wrong; it names the first of them and counts the others; or there are too many records, or none.
    """
    notes: list[str] = []
    records: list[Record] = []
    errors: list[str] = []
    wrong = 0
    for number, line in enumerate(data.split(b"\n"), 1):
        if not line.strip():
            continue
        if len(records) == RECORDS_MAX:
            raise BadForm(f"{noun} has more than {RECORDS_MAX} records: `barnabas produce -f json` takes any number")
        try:
            record, has_value = read_json_line(number, line)
        except ValueError as error:
            wrong += 1
            if wrong <= _ERRORS_SHOWN:
                errors.append(str(error))
            continue
        if not (has_value or notes):
            notes.append(f'line {number} has no "value": it and all such lines are tombstones; "value": null says so')
        records.append(record)
    if wrong > _ERRORS_SHOWN:
        errors.append(
            f"{counted(wrong - _ERRORS_SHOWN, 'more line')} {'is' if wrong == _ERRORS_SHOWN + 1 else 'are'} wrong"
        )
    if errors:
        raise BadForm("; ".join(errors))
    if not records:
        raise BadForm(f"there is no record in {noun}")
    return records, notes


def _found(topic: str, records: Sequence[Record], *, is_written: bool) -> Found:
    status = "produced" if is_written else "would be produced"
    data: dict[str, object] = {"topic": topic, "records": len(records), "status": status}
    counts = Table(("TOPIC", "RECORDS", "STATUS"), [(topic, len(records), status)])
    if is_written:
        return Found([data], [counts])
    first = [
        json_object(
            Shown(topic, each.partition or 0, -1, each.timestamp or 0, each.key, each.value, each.headers or [])
        )
        for each in records[:_SHOWN]
    ]
    data["first"] = [
        {name: value for name, value in each.items() if name not in (*_NOT_WRITTEN, "partition")} for each in first
    ]
    rows = [(words_of(each.key), words_of(each.value), each.partition) for each in records[:_SHOWN]]
    return Found([data], [counts, Table(("KEY", "VALUE", "PARTITION"), rows, title=f"The first {len(rows)}")])
