"""The files of a log as rows: batches, records, indexes, producers. Nothing here opens or changes a file.

| suffix | content |
|---|---|
| `.log`, `.checkpoint` (a snapshot of the metadata log) | record batches |
| `.index` | relative offset and position of some batches |
| `.timeindex` | largest timestamp so far and its relative offset |
| `.txnindex` | aborted transactions |
| `.snapshot` | the state of producers |

The name of a segment is its base offset, and the name of its directory is TOPIC-PARTITION.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from barnabas.cli.decoded_record import decoded_object
from barnabas.cli.record_format import Shown, json_object
from barnabas.decoding.plain_data import plain
from barnabas.log import offset_index, time_index, transaction_index
from barnabas.log.producer_snapshot import CorruptSnapshot, decode_snapshot
from barnabas.metadata.record_codec import UnknownRecord, decode_record
from barnabas.protocol.errors import KafkaError
from barnabas.protocol.message import Struct
from barnabas.records.control import EndTransactionMarker, parse_control_record
from barnabas.records.errors import RecordError
from barnabas.records.record import Record, iter_records
from barnabas.records.record_batch import BatchHeader, check_batch, iter_batches

METADATA_TOPIC = "__cluster_metadata"
BATCH_COLUMNS = (
    "POSITION", "BASE-OFFSET", "LAST-OFFSET", "RECORDS", "LEADER-EPOCH", "PRODUCER", "PRODUCER-EPOCH", "SEQUENCE",
    "MAX-TIMESTAMP", "CODEC", "KIND", "SIZE", "STATUS",
)  # fmt: skip

_DIRECTORY = re.compile(r"(.+)-(\d+)(?:\.[0-9a-f]+-(?:delete|future|stray))?")


class Batch(NamedTuple):
    """A batch in a file.

    Attributes:
        problem: what is wrong with it; empty if it is whole and its checksum fits.
    """

    position: int
    header: BatchHeader
    problem: str

    def row(self) -> tuple[object, ...]:
        """Return what `BATCH_COLUMNS` name."""
        header = self.header
        has_producer = header.has_producer
        return (
            self.position,
            header.base_offset,
            header.last_offset,
            header.record_count,
            header.partition_leader_epoch,
            header.producer_id if has_producer else None,
            header.producer_epoch if has_producer else None,
            header.base_sequence if header.base_sequence >= 0 else None,
            header.max_timestamp if header.max_timestamp >= 0 else None,
            _codec(header),
            _kind(header),
            header.size,
            self.problem or "whole",
        )


def partition_of(path: Path) -> tuple[str, int]:
    """Return topic and partition by the name of a file's directory; the name and -1 of a directory that belongs to no partition."""
    directory = path.resolve().parent.name
    found = _DIRECTORY.fullmatch(directory)
    return (found[1], int(found[2])) if found else (directory, -1)


def batches(data: memoryview) -> Iterator[Batch | str]:
    """Yield the batches of a file, and at the end a sentence about bytes that are no whole batch."""
    end = 0
    try:
        for position, header in iter_batches(data):
            try:
                check_batch(data, position)
                problem = ""
            except KafkaError as error:
                problem = error.message
            yield Batch(position, header, problem)
            end = position + header.size
    except KafkaError as error:
        why = error.message if any(data[end:]) else "they are zeros"
        yield f"the {len(data) - end} bytes from position {end} on are no batch: {why}"
        return
    if end < len(data):
        yield f"the {len(data) - end} bytes from position {end} on are no whole batch"


def record_objects(data: memoryview, batch: Batch, topic: str, partition: int) -> Iterator[dict[str, object]]:
    """Yield the records of a whole batch as objects of JSON: decoded in the metadata log and in internal topics.

    Raises:
        RecordError: the batch's records cannot be read.
    """
    whole = bytearray(data[batch.position : batch.position + batch.header.size])
    for record in iter_records(whole):
        yield _object(record, batch.header, topic, partition)


def _object(record: Record, header: BatchHeader, topic: str, partition: int) -> dict[str, object]:
    headers = [(name, value) for name, value in record.headers]
    shown = Shown(topic, partition, record.offset, record.timestamp, record.key, record.value, headers)
    if header.is_control:
        control = parse_control_record(record)
        fields = control.value._asdict() if isinstance(control.value, EndTransactionMarker) else _plain(control.value)
        return {**_without_bytes(shown), "control": control.type.name, "fields": fields}
    if topic == METADATA_TOPIC and record.value is not None:
        try:
            message = decode_record(record.value)
        except (UnknownRecord, KafkaError) as error:
            return {**json_object(shown), "problem": str(error)}
        return {**_without_bytes(shown), "type": message.NAME, "fields": _plain(message)}
    return decoded_object(shown)


def _without_bytes(shown: Shown) -> dict[str, object]:
    return {"topic": shown.topic, "partition": shown.partition, "offset": shown.offset, "timestamp": shown.timestamp}


def _plain(value: Any) -> Any:
    if isinstance(value, Struct):
        return {name: _plain(getattr(value, name)) for name in value.FIELDS}
    if isinstance(value, list):
        return [_plain(each) for each in value]
    return plain(value)


def _codec(header: BatchHeader) -> str:
    try:
        return header.compression.name.lower()
    except RecordError as error:
        return error.message


def _kind(header: BatchHeader) -> str:
    if header.is_control:
        return "control"
    return "transactional" if header.is_transactional else "data"


class Index(NamedTuple):
    """The entries of an index, or of a snapshot of producers.

    Attributes:
        problem: what is wrong; empty if nothing is.
        room: bytes of zeros behind the entries: Apache Kafka's index of the newest segment has as many as it may grow to.
    """

    columns: tuple[str, ...]
    rows: list[tuple[object, ...]]
    problem: str = ""
    room: int = 0


def index_of(path: Path, data: bytes) -> Index | None:
    """Return the entries of an index by the file's suffix; None if it has another.

    Raises:
        ValueError: the file is not named after the base offset of a segment.
    """
    match path.suffix:
        case ".index":
            base = int(path.stem)
            return _entries(("OFFSET", "POSITION"), data, offset_index.ENTRY, lambda entry: (base + entry[0], entry[1]))
        case ".timeindex":
            base = int(path.stem)
            return _entries(("TIMESTAMP", "OFFSET"), data, time_index.ENTRY, lambda entry: (entry[0], base + entry[1]))
        case ".txnindex":
            columns = ("PRODUCER", "FIRST-OFFSET", "LAST-OFFSET", "LAST-STABLE-OFFSET")
            return _entries(columns, data, transaction_index.ENTRY, lambda entry: entry[1:])
        case ".snapshot":
            return _producers(data)
    return None


def _entries(
    columns: tuple[str, ...], data: bytes, entry: struct.Struct, row: Callable[[tuple[int, ...]], tuple[object, ...]]
) -> Index:
    left = len(data) % entry.size
    found = list(entry.iter_unpack(data[: len(data) - left]))
    entries = len(found)
    while entries > 1 and not any(found[entries - 1]):
        entries -= 1
    if entries == 1 and len(found) > 1 and not any(found[0]):
        entries = 0
    problem = f"the last {left} bytes are no whole entry" if left else ""
    return Index(columns, [row(each) for each in found[:entries]], problem, (len(found) - entries) * entry.size)


def _producers(data: bytes) -> Index:
    columns = (
        "PRODUCER", "PRODUCER-EPOCH", "COORDINATOR-EPOCH", "LAST-SEQUENCE", "LAST-OFFSET", "LAST-TIMESTAMP", "OPEN-SINCE-OFFSET",
    )  # fmt: skip
    try:
        found = decode_snapshot(data)
    except CorruptSnapshot as error:
        return Index(columns, [], str(error))
    rows: list[tuple[object, ...]] = []
    for each in found:
        last = each.batches[-1] if each.batches else None
        rows.append(
            (
                each.producer_id,
                each.producer_epoch,
                each.coordinator_epoch if each.coordinator_epoch >= 0 else None,
                None if last is None else last.last_sequence,
                None if last is None else last.last_offset,
                each.last_timestamp,
                each.txn_first_offset if each.txn_first_offset >= 0 else None,
            )
        )
    return Index(columns, rows)
