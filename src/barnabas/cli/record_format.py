"""`--format`: how a record is printed and read, in kcat's letters and rpk's.

| verb        | printed by consume                  | read by produce       |
|-------------|-------------------------------------|-----------------------|
| `%t`        | topic                               | topic                 |
| `%p`        | partition                           | partition             |
| `%o`        | offset                              |                       |
| `%k`        | key                                 | key                   |
| `%s` `%v`   | value                               | value                 |
| `%h`        | headers, `name=value,name=value`    | headers, the same way |
| `%T` `%d`   | timestamp, epoch milliseconds       | timestamp             |
| `%K`        | bytes of the key, -1 for null       |                       |
| `%S` `%V`   | bytes of the value, -1 for null     |                       |
| `%R`        | bytes of the value, 4 bytes binary  |                       |
| `%H`        | number of headers                   |                       |
| `%e`        | leader epoch                        |                       |
| `%%`        | a percent sign                      | a percent sign        |

`%k{hex}`, `%k{base64}` and `%T{iso}` print (and read) a field otherwise. `\\n \\t \\r \\0 \\\\ \\xHH` are escapes. A null
key or value prints nothing. When reading, a verb takes everything up to the text that follows it in the format; a record
ends with the format (`record_reader`).

`json` prints one JSON object per line and reads the same: topic, partition, offset, timestamp, key, value, headers.
Bytes that are not UTF-8 stand in base64 under `key_base64`, `value_base64`.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Sequence
from typing import NamedTuple

from barnabas.cli.output import printable_json
from barnabas.words.printable import printable

Headers = Sequence[tuple[str, bytes | None]]

_TOKEN = re.compile(
    r"%(?P<verb>.)(?:\{(?P<modifier>[a-z0-9]*)\})?|\\x(?P<hex>[0-9a-fA-F]{2})|\\(?P<escape>.)", re.DOTALL
)
ENCODINGS = ("", "hex", "base64")
"""The ways to write a key or a value."""
_ESCAPES = {"n": b"\n", "t": b"\t", "r": b"\r", "0": b"\0", "\\": b"\\", "'": b"'", '"': b'"'}
_ESCAPES_SHOWN = " ".join(f"\\{letter}" for letter in "ntr0") + " \\\\ \\xHH"


class Shown(NamedTuple):
    """A consumed record as it is printed.

    Attributes:
        timestamp: milliseconds since 1970, -1 if it has none.
        leader_epoch: -1 if it is not known.
    """

    topic: str
    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Headers
    leader_epoch: int = -1


class Verb(NamedTuple):
    """A field of a format."""

    letter: str
    modifier: str


def unescape(text: str) -> bytes:
    """Return a delimiter with its escapes resolved.

    Raises:
        ValueError: an escape is unknown.
    """
    parts = split_format(text.replace("%", "%%"))
    return b"".join(part for part in parts if isinstance(part, bytes))


def split_format(text: str) -> list[bytes | Verb]:
    """Split a format into literal bytes and verbs; join neighbouring literals."""
    parts: list[bytes | Verb] = []
    literal = b""
    pos = 0
    for match in _TOKEN.finditer(text):
        literal += text[pos : match.start()].encode()
        pos = match.end()
        if match["hex"]:
            literal += bytes.fromhex(match["hex"])
        elif match["escape"] is not None:
            if match["escape"] not in _ESCAPES:
                raise ValueError(f"\\{printable(match['escape'])} is not a valid escape: use one of {_ESCAPES_SHOWN}")
            literal += _ESCAPES[match["escape"]]
        elif match["verb"] == "%":
            literal += b"%" + (f"{{{match['modifier']}}}".encode() if match["modifier"] is not None else b"")
        else:
            if literal:
                parts.append(literal)
                literal = b""
            parts.append(Verb(match["verb"], match["modifier"] or ""))
    rest = text[pos:]
    if rest.endswith(("%", "\\")):
        raise ValueError(f"a single {rest[-1]} at the end is not valid: write {rest[-1] * 2} for the character itself")
    literal += rest.encode()
    if literal:
        parts.append(literal)
    return parts


def encoded(data: bytes | None, modifier: str) -> bytes:
    """Return a key or a value in one of `ENCODINGS`; null is nothing."""
    if data is None:
        return b""
    if modifier == "hex":
        return data.hex().encode()
    if modifier == "base64":
        return base64.b64encode(data)
    return data


def format_headers(headers: Headers) -> bytes:
    """Return headers as kcat prints them; a null value is `NULL`."""
    return b",".join(name.encode() + b"=" + (b"NULL" if value is None else value) for name, value in headers)


def json_bytes(name: str, data: bytes | None) -> dict[str, str | None]:
    """Return the field of a key or a value; bytes that are not UTF-8 are in base64, in a field of another name."""
    if data is None:
        return {name: None}
    try:
        return {name: data.decode()}
    except UnicodeDecodeError:
        return {f"{name}_base64": base64.b64encode(data).decode()}


def to_json(record: Shown) -> bytes:
    """Return a record as one line of JSON."""
    return json_line(json_object(record))


def json_line(found: dict[str, object]) -> bytes:
    """Return an object as one line of JSON that a terminal prints and does not obey."""
    return printable_json(json.dumps(found, ensure_ascii=False)).encode() + b"\n"


def json_object(record: Shown) -> dict[str, object]:
    """Return the fields of a record's line of JSON."""
    return {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "timestamp": record.timestamp,
        **json_bytes("key", record.key),
        **json_bytes("value", record.value),
        "headers": [{"key": name, **json_bytes("value", value)} for name, value in record.headers],
    }
