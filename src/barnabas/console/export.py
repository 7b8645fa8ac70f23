"""All records of a search as a file: JSON lines, as `barnabas consume -f json` prints them, or CSV for spreadsheets.

A file is written while the search runs, page after page; what is written is never taken back. So the last line says what is missing, if the
search could not read everything: an object with `not_read`, or a row that begins with `#`.

A cell of CSV that a spreadsheet would take for a formula gets an apostrophe in front. JSON lines have the bytes as they are.

Source: RFC 4180; OWASP, "CSV Injection".
"""

from __future__ import annotations

import csv
import io
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

from barnabas.cli.failure import failure_of
from barnabas.cli.record_format import json_line
from barnabas.client.admin import Admin
from barnabas.console.asked import Asked
from barnabas.console.records import COLUMNS, DETAILS, decoded, details_of, header_text, time_text, whole_object
from barnabas.console.search.cursor import Cursor
from barnabas.console.search.fetched import Found
from barnabas.console.search.guess import formats_of, with_formats
from barnabas.console.search.query import LIMIT_MAX, BadQuery, Query
from barnabas.console.search.search import run
from barnabas.console.search.verdict import verdict_of
from barnabas.protocol.errors import KafkaError
from barnabas.words.requirements import NotInstalled

RECORDS_MAX = 1_000_000
_FORMULAS = ("=", "+", "-", "@", "\t", "\r")


class ExportFormat(NamedTuple):
    """A kind of file.

    Attributes:
        head: before the first record.
        record: a record's bytes.
        end: of the sentences that say what is missing.
    """

    media_type: str
    head: bytes
    record: Callable[[Asked, Found, Query], bytes]
    end: Callable[[Sequence[str]], bytes]


def _json_record(asked: Asked, found: Found, query: Query) -> bytes:
    return json_line(whole_object(found, query))


def _json_end(sentences: Sequence[str]) -> bytes:
    return json_line({"not_read": list(sentences)})


def _csv_record(asked: Asked, found: Found, query: Query) -> bytes:
    record = found.record
    key, value = decoded(found, query, asked.cluster.decoder, None)
    time_ms = "" if record.timestamp < 0 else time_text(record.timestamp)
    details = ["" if each is None else str(each).lower() for each in details_of(found).values()]
    headers = header_text(record.headers) if record.headers else ""
    return _csv_row([found.partition, record.offset, time_ms, key.text, value.text, headers, *details])


def _csv_row(cells: Sequence[object]) -> bytes:
    out = io.StringIO()
    csv.writer(out).writerow([_harmless(each) for each in cells])
    return out.getvalue().encode("utf-8", "backslashreplace")


def _harmless(cell: object) -> object:
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(_FORMULAS) else cell


EXPORT_FORMATS = {
    "jsonl": ExportFormat("application/x-ndjson", b"", _json_record, _json_end),
    "csv": ExportFormat(
        "text/csv; charset=utf-8",
        _csv_row([*COLUMNS, *DETAILS]),
        _csv_record,
        lambda sentences: _csv_row([f"# {' '.join(sentences)}"]),
    ),
}


async def exported(asked: Asked, query: Query, format: ExportFormat) -> AsyncGenerator[bytes]:
    """Yield the file of a search, a page of records at a time."""
    query = replace(query, limit=LIMIT_MAX)
    if format.head:
        yield format.head
    cursor: Cursor | None = None
    missing: list[str] = []
    count = 0

    def page(admin: Admin) -> tuple[Query, Cursor | None, int, bytes, list[str]]:
        decoder = asked.cluster.decoder
        chosen = with_formats(admin, query, decoder, asked.now_ms) if query.filter and cursor is None else query
        outcome = run(admin, chosen, decoder, asked.now_ms, cursor)
        chosen = formats_of(chosen, decoder, outcome.found)
        data = b"".join(format.record(asked, each, chosen) for each in outcome.found)
        verdict = verdict_of(outcome)
        said = [] if verdict.is_complete else verdict.sentences
        # A partition that failed would be asked again and again.
        further = None if outcome.failures else outcome.cursor
        return (
            replace(chosen, since=outcome.query.since, until=outcome.query.until),
            further,
            len(outcome.found),
            data,
            said,
        )

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
    if missing:
        yield format.end(missing)
