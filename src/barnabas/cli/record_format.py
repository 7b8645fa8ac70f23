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
ends with the format.

`json` prints one JSON object per line and reads the same: topic, partition, offset, timestamp, key, value, headers.
Bytes that are not UTF-8 stand in base64 under `key_base64`, `value_base64`.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
import struct
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO, NamedTuple, TypeVar

from barnabas.cli.output import printable_json
from barnabas.cli.times import format_time_ms, parse_time_ms

Headers = list[tuple[str, bytes | None]]
_T = TypeVar("_T")

_TOKEN = re.compile(
    r"%(?P<verb>.)(?:\{(?P<modifier>[a-z0-9]*)\})?|\\x(?P<hex>[0-9a-fA-F]{2})|\\(?P<escape>.)", re.DOTALL
)
_ESCAPES = {"n": b"\n", "t": b"\t", "r": b"\r", "0": b"\0", "\\": b"\\", "'": b"'", '"': b'"'}
_BINARY = ("", "hex", "base64")


class Shown(NamedTuple):
    """A consumed record as it is printed."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Headers
    leader_epoch: int


class Given(NamedTuple):
    """A record to produce, as it was read; the command line or the producer decides the fields that are None."""

    value: bytes | None
    key: bytes | None = None
    headers: Headers | None = None
    topic: str | None = None
    partition: int | None = None
    timestamp: int | None = None


class Verb(NamedTuple):
    """A field of a format."""

    letter: str
    modifier: str


def unescape(text: str) -> bytes:
    """Return a delimiter with its escapes resolved.

    Raises:
        ValueError: an escape is unknown.
    """
    parts = _split(text.replace("%", "%%"))
    return b"".join(part for part in parts if isinstance(part, bytes))


def _split(text: str) -> list[bytes | Verb]:
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
                raise ValueError(f"unknown escape \\{match['escape']} in format {text!r}")
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
        raise ValueError(f"format {text!r} ends inside {rest[-1]!r}")
    literal += rest.encode()
    if literal:
        parts.append(literal)
    return parts


# Printing
def _encoded(data: bytes | None, modifier: str) -> bytes:
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


def _length(data: bytes | None) -> int:
    return -1 if data is None else len(data)


_PRINTERS: dict[str, tuple[tuple[str, ...], Callable[[Shown, str], bytes]]] = {
    "t": (("",), lambda record, _: record.topic.encode()),
    "p": (("",), lambda record, _: b"%d" % record.partition),
    "o": (("",), lambda record, _: b"%d" % record.offset),
    "k": (_BINARY, lambda record, modifier: _encoded(record.key, modifier)),
    "s": (_BINARY, lambda record, modifier: _encoded(record.value, modifier)),
    "h": (("",), lambda record, _: format_headers(record.headers)),
    "T": (
        ("", "iso"),
        lambda record, modifier: format_time_ms(record.timestamp).encode() if modifier else b"%d" % record.timestamp,
    ),
    "K": (("",), lambda record, _: b"%d" % _length(record.key)),
    "S": (("",), lambda record, _: b"%d" % _length(record.value)),
    "R": (("",), lambda record, _: struct.pack(">i", _length(record.value))),
    "H": (("",), lambda record, _: b"%d" % len(record.headers)),
    "e": (("",), lambda record, _: b"%d" % record.leader_epoch),
}
_PRINTERS |= {"v": _PRINTERS["s"], "V": _PRINTERS["S"], "d": _PRINTERS["T"]}


def printer(text: str) -> Callable[[Shown], bytes]:
    """Compile a format into a function that prints a record.

    Raises:
        ValueError: a verb, modifier or escape is unknown.
    """
    if text == "json":
        return to_json
    steps: list[Callable[[Shown], bytes]] = []
    for part in _split(text):
        if isinstance(part, bytes):
            steps.append(_constant(part))
            continue
        if part.letter not in _PRINTERS:
            raise ValueError(f"unknown verb %{part.letter} in format {text!r}: use one of {''.join(sorted(_PRINTERS))}")
        modifiers, step = _PRINTERS[part.letter]
        if part.modifier not in modifiers:
            allowed = ", ".join(filter(None, modifiers)) or "none"
            raise ValueError(f"%{part.letter} does not take {{{part.modifier}}}, only: {allowed}")
        steps.append(_field(step, part.modifier))
    return lambda record: b"".join(step(record) for step in steps)


def _constant(literal: bytes) -> Callable[[Shown], bytes]:
    return lambda record: literal


def _field(step: Callable[[Shown, str], bytes], modifier: str) -> Callable[[Shown], bytes]:
    return lambda record: step(record, modifier)


def _json_bytes(name: str, data: bytes | None) -> dict[str, str | None]:
    if data is None:
        return {name: None}
    try:
        return {name: data.decode()}
    except UnicodeDecodeError:
        return {f"{name}_base64": base64.b64encode(data).decode()}


def to_json(record: Shown) -> bytes:
    """Return a record as one line of JSON."""
    found: dict[str, object] = {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "timestamp": record.timestamp,
        **_json_bytes("key", record.key),
        **_json_bytes("value", record.value),
        "headers": [{"key": name, **_json_bytes("value", value)} for name, value in record.headers],
    }
    return printable_json(json.dumps(found, ensure_ascii=False)).encode() + b"\n"


# Reading
_READABLE = {"t", "p", "k", "v", "h", "T"}
_SAME = {"s": "v", "d": "T"}


def reader(text: str) -> Callable[[BinaryIO], Iterator[Given]]:
    """Compile a format into a function that reads records from a stream.

    Raises:
        ValueError: a verb cannot be read, or two verbs have no text between them.
    """
    if text == "json":
        return _read_json
    parts = _split(text)
    previous: bytes | Verb = b""
    for part in parts:
        if isinstance(part, Verb):
            letter = _SAME.get(part.letter, part.letter)
            if letter not in _READABLE:
                raise ValueError(f"%{part.letter} cannot be read: use %t %p %k %v %h %T")
            if isinstance(previous, Verb):
                raise ValueError(
                    f"%{previous.letter} and %{part.letter} need text between them, to tell where one ends"
                )
            if part.modifier not in ((*_BINARY, "iso") if letter in "kvT" else ("",)):
                raise ValueError(f"%{part.letter} does not take {{{part.modifier}}}")
        previous = part
    if not any(isinstance(part, Verb) for part in parts):
        raise ValueError(f"format {text!r} has no field: use %v for the value")
    return lambda stream: _read(stream, parts)


def line_reader(delimiter: bytes, key_delimiter: bytes | None) -> Callable[[BinaryIO], Iterator[Given]]:
    """Return a reader of records that end with `delimiter`; a record has a key if it contains `key_delimiter` (as in kcat)."""
    if not delimiter or key_delimiter == b"":
        raise ValueError("a delimiter needs at least one character")

    def read(stream: BinaryIO) -> Iterator[Given]:
        source = _Delimited(stream)
        number = 0
        while not source.at_end():
            number += 1
            line = source.until(delimiter, may_end=True, number=number)
            key, found, value = line.partition(key_delimiter) if key_delimiter else (b"", b"", line)
            yield Given(value, key) if found else Given(line)

    return read


def _read(stream: BinaryIO, parts: list[bytes | Verb]) -> Iterator[Given]:
    source = _Delimited(stream)
    number = 0
    while not source.at_end():
        number += 1
        fields: dict[str, Any] = {}
        for index, part in enumerate(parts):
            if isinstance(part, bytes):
                if index and isinstance(parts[index - 1], Verb):
                    continue  # consumed as the delimiter of the field before
                source.expect(part, number)
                continue
            following = parts[index + 1] if index + 1 < len(parts) else None
            delimiter = following if isinstance(following, bytes) else None
            last = index + 2 >= len(parts)
            raw = source.until(delimiter, may_end=last, number=number)
            _put(fields, part, raw, number)
        yield Given(
            fields.get("v"), fields.get("k"), fields.get("h"), fields.get("t"), fields.get("p"), fields.get("T")
        )


def _put(fields: dict[str, Any], verb: Verb, raw: bytes, number: int) -> None:
    letter = _SAME.get(verb.letter, verb.letter)
    try:
        match letter:
            case "k" | "v" if verb.modifier == "hex":
                fields[letter] = bytes.fromhex(raw.decode())
            case "k" | "v" if verb.modifier == "base64":
                fields[letter] = base64.b64decode(raw, validate=True)
            case "k" | "v":
                fields[letter] = raw
            case "t":
                fields[letter] = raw.decode()
            case "p":
                fields[letter] = int(raw)
            case "T":
                fields[letter] = int(raw) if raw.isdigit() else parse_time_ms(raw.decode(), 0)
            case "h":
                fields[letter] = [parse_header(each) for each in raw.decode().split(",") if each]
    except (ValueError, binascii.Error) as error:
        shown = raw[:40].decode(errors="replace")
        raise ValueError(f"record {number}: %{verb.letter} cannot be {shown!r}: {error}") from None


def parse_header(text: str) -> tuple[str, bytes | None]:
    """Parse `name=value`; without "=" the value is null.

    Raises:
        ValueError: the name is empty.
    """
    name, equals, value = text.partition("=")
    if not name:
        raise ValueError(f"header {text!r} has no name: write name=value")
    return name, value.encode() if equals else None


class _Delimited:
    """A stream read field by field."""

    _CHUNK_BYTES = 1 << 16

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._buffer = bytearray()
        self._pos = 0
        self._ended = False

    def _more(self) -> bool:
        if self._ended:
            return False
        del self._buffer[: self._pos]
        self._pos = 0
        read = getattr(self._stream, "read1", self._stream.read)
        chunk = read(self._CHUNK_BYTES)
        self._ended = not chunk
        self._buffer += chunk
        return bool(chunk)

    def at_end(self) -> bool:
        return self._pos >= len(self._buffer) and not self._more()

    def expect(self, literal: bytes, number: int) -> None:
        while len(self._buffer) - self._pos < len(literal) and self._more():
            pass
        if not self._buffer.startswith(literal, self._pos):
            raise ValueError(f"record {number} does not begin with {literal!r}")
        self._pos += len(literal)

    def until(self, delimiter: bytes | None, *, may_end: bool, number: int) -> bytes:
        searched = 0
        while True:
            found = -1 if delimiter is None else self._buffer.find(delimiter, self._pos + searched)
            if found >= 0:
                assert delimiter is not None
                data = bytes(self._buffer[self._pos : found])
                self._pos = found + len(delimiter)
                return data
            searched = max(0, len(self._buffer) - self._pos - len(delimiter or b"") + 1)
            if not self._more():
                break
        if delimiter is not None and not may_end:
            raise ValueError(f"record {number} ends before {delimiter!r}")
        data = bytes(self._buffer[self._pos :])
        self._pos = len(self._buffer)
        return data


def _read_json(stream: BinaryIO) -> Iterator[Given]:
    for number, line in enumerate(stream, 1):
        if not line.strip():
            continue
        try:
            found = json.loads(line)
            if not isinstance(found, dict):
                raise ValueError("not an object")
            given = Given(
                _json_field(found, "value"),
                _json_field(found, "key"),
                [_json_header(each) for each in _json_typed(found, "headers", list) or ()],
                _json_typed(found, "topic", str),
                _json_typed(found, "partition", int),
                _json_typed(found, "timestamp", int),
            )
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            raise ValueError(f"line {number} is not a record in JSON: {error}") from None
        yield given


def _json_header(found: Any) -> tuple[str, bytes | None]:
    name = _json_typed(found, "key", str) if isinstance(found, dict) else None
    if not name:
        raise ValueError(f'header {json.dumps(found)} is not {{"key": name, "value": value}}')
    return name, _json_field(found, "value")


def _json_typed(found: dict[str, Any], name: str, kind: type[_T]) -> _T | None:
    value = found.get(name)
    if value is None or type(value) is kind:  # True is an int, and no partition
        return value
    raise ValueError(f"{name} cannot be {json.dumps(value)}")


def _json_field(found: dict[str, Any], name: str) -> bytes | None:
    encoded = found.get(f"{name}_base64")
    if encoded is not None:
        return base64.b64decode(encoded, validate=True)
    value = found.get(name)
    if value is None:
        return None
    return value.encode() if isinstance(value, str) else json.dumps(value, ensure_ascii=False).encode()
