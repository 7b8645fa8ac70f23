"""All records of a search as a file: JSON lines, as `barnabas consume -f json` prints them, CSV for spreadsheets, or Parquet.

A file is written while the search runs, page after page; what is written is never taken back. So the last line says what is missing, if the
search could not read everything: an object with `not_read`, or a row that begins with `#`. In Parquet `not_read` is in the file's metadata.

A cell of CSV that a spreadsheet would take for a formula gets an apostrophe in front. JSON lines have the bytes as they are.

Source: RFC 4180; OWASP, "CSV Injection".
"""

from __future__ import annotations

import asyncio
import csv
import io
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import replace
from importlib import import_module
from typing import Any

from barnabas.cli.failure import failure_of
from barnabas.cli.record_format import json_line
from barnabas.client.admin import Admin
from barnabas.console.asked import Asked
from barnabas.console.records import COLUMNS, DETAILS, decoded, details_of, header_text, time_text, whole_object
from barnabas.console.search.cursor import Cursor
from barnabas.console.search.fetched import Found
from barnabas.console.search.guess import formats_of, guessed
from barnabas.console.search.query import LIMIT_MAX, BadQuery, Query
from barnabas.console.search.search import run
from barnabas.console.search.verdict import verdict_of
from barnabas.decoding.decoder import Decoder
from barnabas.protocol.errors import KafkaError
from barnabas.retries.record import Record
from barnabas.words.requirements import NotInstalled, needed_by

RECORDS_MAX = 1_000_000
_PARQUET_BYTES = 8 << 20
"""Of a group of rows, about."""
TIMESTAMP_CREATE_TIME, TIMESTAMP_LOG_APPEND_TIME = 1, 2
"""As librdkafka has them, and exports."""
_FORMULAS = ("=", "+", "-", "@", "\t", "\r")


class ExportWriter(ABC):
    """Makes one file; each method returns the next bytes of it, or none while they wait for more."""

    media_type: str

    def begin(self) -> bytes:
        """Begin the file."""
        return b""

    @abstractmethod
    def add(self, found: Found, query: Query) -> bytes:
        """Write a record."""

    @abstractmethod
    def end(self, missing: Sequence[str]) -> bytes:
        """End the file; the sentences say what is missing."""


class JsonLines(ExportWriter):
    """Writes lines of `barnabas consume -f json`."""

    media_type = "application/x-ndjson"

    def add(self, found: Found, query: Query) -> bytes:
        return json_line(whole_object(found, query))

    def end(self, missing: Sequence[str]) -> bytes:
        return json_line({"not_read": list(missing)}) if missing else b""


class Csv(ExportWriter):
    """Writes rows with the columns of the page, values whole.

    Args:
        decoder: decodes keys and values.
    """

    media_type = "text/csv; charset=utf-8"

    def __init__(self, decoder: Decoder) -> None:
        self._decoder = decoder

    def begin(self) -> bytes:
        return _csv_row([*COLUMNS, *DETAILS])

    def add(self, found: Found, query: Query) -> bytes:
        record = found.record
        key, value = decoded(found, query, self._decoder, None)
        time_ms = "" if record.timestamp < 0 else time_text(record.timestamp)
        details = ["" if each is None else str(each).lower() for each in details_of(found).values()]
        headers = header_text(record.headers) if record.headers else ""
        return _csv_row([found.partition, record.offset, time_ms, key.text, value.text, headers, *details])

    def end(self, missing: Sequence[str]) -> bytes:
        return _csv_row([f"# {' '.join(missing)}"]) if missing else b""


class Parquet(ExportWriter):
    """Writes the rows of `barnabas topic export --format parquet`.

    Raises:
        NotInstalled: pyarrow is missing.
    """

    media_type = "application/vnd.apache.parquet"

    def __init__(self) -> None:
        with needed_by("An export as Parquet", "read"):
            rows = import_module("barnabas.cli.export_parquet").ParquetRows
        self._sink = _Sink()
        self._rows = rows(self._sink, _PARQUET_BYTES)

    def add(self, found: Found, query: Query) -> bytes:
        record, batch = found.record, found.batch
        timestamp_type = TIMESTAMP_LOG_APPEND_TIME if batch.is_log_append_time else TIMESTAMP_CREATE_TIME
        key, value, headers = record.key, record.value, tuple(record.headers)
        self._rows.add(
            Record(query.topic, found.partition, record.offset, record.timestamp, key, value, headers), timestamp_type
        )
        return self._sink.taken()

    def end(self, missing: Sequence[str]) -> bytes:
        if missing:
            self._rows.note("not_read", " ".join(missing))
        self._rows.end()
        return self._sink.taken()


class _Sink(io.RawIOBase):
    """Keeps the bytes that are written until they are taken."""

    def __init__(self) -> None:
        self._waiting = bytearray()
        self._position = 0

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def write(self, data: Any, /) -> int:
        view = memoryview(data)
        self._waiting += view
        self._position += view.nbytes
        return view.nbytes

    def taken(self) -> bytes:
        """Return what was written since the last call."""
        found = bytes(self._waiting)
        self._waiting.clear()
        return found


def _csv_row(cells: Sequence[object]) -> bytes:
    out = io.StringIO()
    csv.writer(out).writerow([_harmless(each) for each in cells])
    return out.getvalue().encode("utf-8", "backslashreplace")


def _harmless(cell: object) -> object:
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(_FORMULAS) else cell


EXPORT_FORMATS: dict[str, Callable[[Decoder], ExportWriter]] = {
    "jsonl": lambda decoder: JsonLines(),
    "csv": Csv,
    "parquet": lambda decoder: Parquet(),
}
"""Make a writer; raise NotInstalled if it needs a package that is missing."""


async def exported(asked: Asked, query: Query, writer: ExportWriter) -> AsyncGenerator[bytes]:
    """Yield the file of a search, a page of records at a time."""
    query = replace(query, limit=LIMIT_MAX)
    if head := writer.begin():
        yield head
    cursor: Cursor | None = None
    missing: list[str] = []
    count = 0

    def page(admin: Admin) -> tuple[Query, Cursor | None, int, bytes, list[str]]:
        decoder = asked.cluster.decoder
        chosen = query
        # A format that could not be guessed is guessed again when the filter needs it.
        if query.filter and (cursor is None or any(cursor.unjudged)):
            chosen = guessed(admin, query, decoder, asked.now_ms).query
        outcome = run(admin, chosen, decoder, asked.now_ms, cursor)
        chosen = formats_of(chosen, decoder, outcome.found)
        data = b"".join(writer.add(each, chosen) for each in outcome.found)
        verdict = verdict_of(outcome)
        said = [] if verdict.is_complete else verdict.sentences
        # A partition that failed would be asked again and again.
        further = None if outcome.failures else outcome.cursor
        chosen = replace(chosen, since=outcome.query.since, until=outcome.query.until)
        return chosen, further, len(outcome.found), data, said

    while True:
        try:
            query, cursor, found, data, missing = await asked.cluster.search(page)
        except (BadQuery, NotInstalled) as error:
            missing = [str(error)]
            break
        except KafkaError as error:
            missing = [failure_of(error, f"topic {query.topic}").format_message()]
            break
        count += found
        if data:
            yield data
        if cursor is None or count >= RECORDS_MAX:
            break
    if data := await asyncio.to_thread(writer.end, missing):
        yield data
