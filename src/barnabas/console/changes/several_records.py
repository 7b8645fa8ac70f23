"""Several records for a topic, a line of JSON each, as `barnabas produce -f json` takes them: all of them, or none."""

from __future__ import annotations

from contextlib import closing
from io import BytesIO

from barnabas.cli.done import Done
from barnabas.cli.librdkafka import connection_of
from barnabas.cli.output import Found, Table
from barnabas.cli.record_format import Shown, json_object
from barnabas.cli.record_reader import Given as Record
from barnabas.cli.record_reader import reader
from barnabas.cli.sending_once import explained_library, transactional_producer
from barnabas.cli.wording import counted
from barnabas.client.admin import Admin
from barnabas.console.changes.change import Planned
from barnabas.console.changes.given import BadForm, Given
from barnabas.console.changes.records import words_of
from barnabas.console.changes.topics import described
from barnabas.console.page import Field
from barnabas.retries.forwarding import Forwarder
from barnabas.retries.record import Output
from barnabas.words.printable import printable

_SHOWN = 3
_ERRORS_SHOWN = 5
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
    records, notes = read_records(given.required("lines", "the text of the records"))
    topic = described(admin, name)
    for number, each in enumerate(records, 1):
        if each.partition is not None and not 0 <= each.partition < len(topic.partitions):
            raise BadForm(
                f"record {number} is for partition {each.partition}, and topic {printable(name)} has"
                f" {counted(len(topic.partitions), 'partition')}, from 0 on"
            )
    outputs = [
        Output(name, each.value, each.key, tuple(each.headers or ()), each.partition, each.timestamp)
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


def read_records(text: str) -> tuple[list[Record], list[str]]:
    """Return the records of some lines, and what may not be meant so.

    Raises:
        BadForm: lines are wrong; it names the first of them, or there is no record.
    """
    notes: list[str] = []
    records: list[Record] = []
    errors: list[str] = []
    read = reader("json", notes.append)
    lines = text.split("\n")
    begin = 0
    while begin < len(lines) and len(errors) < _ERRORS_SHOWN:
        # The empty lines keep the numbers of those that follow.
        stream = BytesIO("\n".join([*[""] * begin, *lines[begin:]]).encode())
        try:
            records.extend(read(stream))
        except ValueError as error:
            errors.append(str(error))
            # The stream was read to the end of the line that is wrong.
            begin = stream.getvalue()[: stream.tell()].count(b"\n") or len(lines)
            begin = begin if stream.tell() < len(stream.getvalue()) else len(lines)
        else:
            break
    if errors:
        raise BadForm("; ".join(errors))
    if not records:
        raise BadForm("there is no record in the text")
    return records, notes


def _found(topic: str, records: list[Record], *, is_written: bool) -> Found:
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
