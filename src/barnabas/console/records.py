"""Records for people and for programs: cells of a table, and objects with the field names of `barnabas consume -f json`."""

from __future__ import annotations

from collections.abc import Sequence

from barnabas.cli.record_format import Headers, Shown, json_bytes, json_object
from barnabas.console.asked import Asked
from barnabas.console.page import Cell, Grid
from barnabas.console.search.fetched import Found
from barnabas.console.search.query import Query
from barnabas.decoding.decoded import Decoded
from barnabas.decoding.decoder import SHOWN_BYTES, Decoder
from barnabas.records.control import ControlRecordType, control_type
from barnabas.records.errors import RecordError
from barnabas.words.printable import printable
from barnabas.words.times import format_time_ms

CELL_CHARACTERS = 500
"""A table shows the beginning of a value; the record's own page has the rest."""
COLUMNS = ("PARTITION", "OFFSET", "TIME", "KEY", "VALUE", "HEADERS")
DETAILS = ("STATE", "TRANSACTIONAL", "PRODUCER-ID", "EPOCH", "SEQUENCE", "CODEC", "LEADER-EPOCH")


def decoded(found: Found, query: Query, decoder: Decoder, most: int | None = SHOWN_BYTES) -> tuple[Decoded, Decoded]:
    """Return a record's key and value; those of a control record say what it is."""
    record = found.record
    if found.batch.is_control:
        name = marker_of(found)
        return Decoded("control", name, name, len(record.key or b"")), decoder.value(
            "", None, record.value, "hex", most
        )
    key_as, value_as = decoder.masks.formats(query.topic, query.key_as, query.value_as)
    key = decoder.key(query.topic, record.key, key_as, most)
    return key, decoder.value(query.topic, record.key, record.value, value_as, most)


def marker_of(found: Found) -> str:
    """Return the type of a control record."""
    try:
        kind = control_type(found.record.key)
    except RecordError:
        kind = ControlRecordType.UNKNOWN
    return f"control record: {kind.name.lower()}"


def sequence_of(found: Found) -> int | None:
    """Return the sequence number that the producer gave a record; None without one."""
    batch = found.batch
    if batch.base_sequence < 0:
        return None
    return (batch.base_sequence + found.record.offset - batch.base_offset) & 0x7FFFFFFF


def details_of(found: Found) -> dict[str, object]:
    """Return what a record's batch says of it."""
    batch = found.batch
    return {
        "state": found.state.value,
        "transactional": batch.is_transactional,
        "producer_id": batch.producer_id if batch.has_producer else None,
        "epoch": batch.producer_epoch if batch.has_producer else None,
        "sequence": sequence_of(found),
        "codec": batch.compression.codec_name,
        "leader_epoch": batch.partition_leader_epoch,
    }


def object_of(found: Found, query: Query, decoder: Decoder) -> dict[str, object]:
    """Return a record for programs: the fields of `barnabas consume`, its details, and what key and value say.

    A part of more than 64 KB is cut, and `key_bytes` or `value_bytes` has its size.
    """
    record = found.record
    key, value = decoded(found, query, decoder)
    cut = {}
    for name, part in (("key", record.key), ("value", record.value)):
        if part is not None and len(part) > SHOWN_BYTES:
            cut[f"{name}_bytes"] = len(part)
    headers = [(name, None if each is None else each[:SHOWN_BYTES]) for name, each in record.headers]
    base = json_object(
        Shown(
            query.topic,
            found.partition,
            record.offset,
            record.timestamp,
            _beginning(record.key),
            _beginning(record.value),
            headers,
        )
    )
    says: dict[str, object] = {"key_format": key.format, "value_format": value.format}
    for name, shown in (("key", key), ("value", value)):
        if shown.format not in ("text", "hex", "base64", "null", "control"):
            says[f"{name}_data"] = shown.data
        if shown.note is not None:
            says[f"{name}_note"] = shown.note
    return {**base, **details_of(found), **says, **cut}


def whole_object(found: Found, query: Query) -> dict[str, object]:
    """Return a record exactly as `barnabas consume -f json` prints it."""
    record = found.record
    return json_object(
        Shown(query.topic, found.partition, record.offset, record.timestamp, record.key, record.value, record.headers)
    )


def _beginning(data: bytes | None) -> bytes | None:
    if data is None or len(data) <= SHOWN_BYTES:
        return data
    try:
        data.decode()
    except UnicodeDecodeError:
        return data[:SHOWN_BYTES]
    # A character that the cut divides is left out.
    return data[:SHOWN_BYTES].decode("utf-8", "ignore").encode()


def grid_of(asked: Asked, found: Sequence[Found], query: Query, *, details: bool) -> Grid:
    """Return records as a table."""
    columns = (*COLUMNS, *(DETAILS if details else ()))
    return Grid("Records", columns, [_row(asked, each, query, details=details) for each in found], False)


def _row(asked: Asked, found: Found, query: Query, *, details: bool) -> list[Cell]:
    record = found.record
    key, value = decoded(found, query, asked.cluster.decoder)
    time_ms = None if record.timestamp < 0 else time_text(record.timestamp)
    cells = [
        Cell(str(found.partition), is_number=True),
        Cell(str(record.offset), record_link(asked, found, query), is_number=True),
        Cell(time_ms or "-", is_time=time_ms is not None),
        Cell(shown_text(key)),
        Cell(shown_text(value)),
        Cell(header_text(record.headers)),
    ]
    if details:
        for value_of_detail in details_of(found).values():
            words = "-" if value_of_detail is None else str(value_of_detail).lower()
            cells.append(
                Cell(words, is_number=isinstance(value_of_detail, int) and not isinstance(value_of_detail, bool))
            )
    return cells


def record_link(asked: Asked, found: Found, query: Query, **more: object) -> str:
    """Return the address of a record's page."""
    return asked.link(
        "record",
        topic=query.topic,
        partition=found.partition,
        offset=found.record.offset,
        key_as=query.key_as or None,
        value_as=query.value_as or None,
        **more,
    )


def time_text(timestamp: int) -> str:
    """Return a record's time; a producer may write any number."""
    try:
        return format_time_ms(timestamp)
    except (ValueError, OverflowError, OSError):
        return f"{timestamp} ms"


def shown_text(part: Decoded) -> str:
    """Return the beginning of a part as a cell has it."""
    if part.format == "null":
        return "null"
    text = printable(part.text[:CELL_CHARACTERS])
    return f"{text}… ({part.size} bytes)" if part.is_cut or len(part.text) > CELL_CHARACTERS else text


def header_text(headers: Headers) -> str:
    """Return headers as a cell has them."""
    words = []
    for name, value in headers:
        shown = "null" if value is None else next(iter(json_bytes("value", value[:CELL_CHARACTERS]).values())) or ""
        words.append(f"{name}={shown}")
    text = printable(", ".join(words)[: CELL_CHARACTERS + 1])
    return f"{text[:CELL_CHARACTERS]}…" if len(text) > CELL_CHARACTERS else text or "-"
