"""Exported records as lines of JSON: each as `consume -f json` prints it, and `timestampType`.

    {"topic": "orders", "partition": 0, "offset": 17, "timestamp": 1700000000000, "key": "k", "value_base64": "/w==",
     "headers": [{"key": "h", "value": null}], "timestampType": 0}

A key or value that is not UTF-8 is in base64, under `key_base64` or `value_base64`. A record without a timestamp has -1.
"""

from __future__ import annotations

import base64
import io
import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from barnabas.cli.export_files import FileFormat, Writer
from barnabas.cli.record_format import Shown, json_line, json_object
from barnabas.retries.record import Record

_BUFFER_BYTES = 1 << 18
_COLUMNS = {
    "topic": "string",
    "partition": "int32",
    "offset": "int64",
    "timestamp": "int64, milliseconds",
    "key": "string, or base64 as key_base64",
    "value": "string, or base64 as value_base64",
    "headers": "list of {key, value or value_base64}",
    "timestampType": "int32",
}


class JsonLinesWriter(Writer):
    """Writes records as lines."""

    def __init__(self, file: io.RawIOBase, max_bytes: int) -> None:
        self._file = file
        self._buffer_bytes = min(_BUFFER_BYTES, max_bytes)
        self._buffer = bytearray()

    def __repr__(self) -> str:
        return f"<JsonLinesWriter buffered={len(self._buffer)}>"

    def add(self, record: Record, timestamp_type: int) -> None:
        shown = Shown(
            record.topic,
            record.partition,
            record.offset,
            record.timestamp_ms,
            record.key,
            record.value,
            record.headers,
        )
        self._buffer += json_line({**json_object(shown), "timestampType": timestamp_type})
        if len(self._buffer) >= self._buffer_bytes:
            self.end()

    def end(self) -> None:
        if self._buffer:
            self._file.write(self._buffer)
            self._buffer = bytearray()


def count_lines(path: Path) -> int:
    """Return how many lines a file has.

    Raises:
        ValueError: the last one has no end.
    """
    count, last = 0, b"\n"
    with path.open("rb") as file:
        while piece := file.read(_BUFFER_BYTES):
            count += piece.count(b"\n")
            last = piece[-1:]
    if last != b"\n":
        raise ValueError("its last line is cut off")
    return count


def read_lines(path: Path, topic: str, skipped: int) -> Iterator[Record]:
    """Yield the records of a file, without the first `skipped`.

    Raises:
        ValueError: a line is not a record.
    """
    with path.open("rb") as file:
        for number, line in enumerate(itertools.islice(file, skipped, None), skipped + 1):
            try:
                found = json.loads(line)
                yield Record(
                    topic,
                    found["partition"],
                    found["offset"],
                    found["timestamp"],
                    _bytes(found, "key"),
                    _bytes(found, "value"),
                    tuple((each["key"], _bytes(each, "value")) for each in found["headers"]),
                )
            except (ValueError, LookupError, TypeError, AttributeError):
                raise ValueError(f"line {number} is not a record") from None


def _bytes(found: dict[str, Any], name: str) -> bytes | None:
    encoded = found.get(f"{name}_base64")
    if encoded is not None:
        return base64.b64decode(encoded, validate=True)
    text = found[name]
    return None if text is None else text.encode()


FORMAT = FileFormat(_COLUMNS, JsonLinesWriter, count_lines, read_lines)
