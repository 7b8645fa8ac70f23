"""Reads records for `produce`: a format of `record_format`, or JSON. Lines have a module of their own, `lines`.

When reading, a field takes everything up to the text that follows it in the format; a record ends with the format. Errors name the
record or line by its number in the input.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO, NamedTuple, TypeVar

from barnabas.cli.record_format import ENCODINGS, Headers, Verb, split_format
from barnabas.words.printable import printable
from barnabas.words.times import parse_time_ms

_T = TypeVar("_T")

Pair = tuple[bytes | None, bytes | None]
"""The value and the key of a record."""


class Given(NamedTuple):
    """A record to produce, as it was read; the command line or the producer decides the fields that are None."""

    value: bytes | None
    key: bytes | None = None
    headers: Headers | None = None
    topic: str | None = None
    partition: int | None = None
    timestamp: int | None = None


class Common(NamedTuple):
    """The command line's part of every record; None says nothing.

    Attributes:
        tombstone: an empty value is null.
    """

    key: bytes | None = None
    partition: int | None = None
    headers: Headers = ()
    tombstone: bool = False

    def complete(self, records: Iterator[Given]) -> Iterator[Given]:
        """Yield the records with what is said of all of them."""
        if self == Common():
            return records
        return map(self._completed, records)

    def pairs(self, pairs: Iterator[Pair]) -> Iterator[Pair]:
        """Yield the values and keys with what is said of all of them."""
        if self.key is None and not self.tombstone:
            return pairs
        return (
            (value or None if self.tombstone else value, key if self.key is None else self.key) for value, key in pairs
        )

    def _completed(self, record: Given) -> Given:
        value, key, headers, topic, partition, timestamp = record
        return Given(
            None if self.tombstone and not value else value,
            key if self.key is None else self.key,
            [*self.headers, *(headers or ())],
            topic,
            partition if self.partition is None else self.partition,
            timestamp,
        )


_READABLE = {"t", "p", "k", "v", "h", "T"}
_SAME = {"s": "v", "d": "T"}
_SHOWN_BYTES = 40


def _quoted(data: bytes) -> str:
    """Return bytes of the input or of a delimiter as an error shows them."""
    try:
        text = data[:_SHOWN_BYTES].decode()
    except UnicodeDecodeError:
        text = data[:_SHOWN_BYTES].decode("latin-1")
    return f"'{printable(text)}'"


def reader(text: str, note: Callable[[str], None] = lambda sentence: None) -> Callable[[BinaryIO], Iterator[Given]]:
    """Compile a format into a function that reads records from a stream.

    Args:
        note: called with a sentence for the user about the first record that may not be meant so.

    Raises:
        ValueError: a verb cannot be read, or two verbs have no text between them.
    """
    if text == "json":
        return lambda stream: _read_json(stream, note)
    parts = split_format(text)
    previous: bytes | Verb = b""
    for part in parts:
        if isinstance(part, Verb):
            letter = _SAME.get(part.letter, part.letter)
            if letter not in _READABLE:
                raise ValueError(
                    f"%{printable(part.letter)} is not a field that can be read: use one of %t %p %k %v %h %T"
                )
            if isinstance(previous, Verb):
                raise ValueError(
                    f"%{previous.letter} and %{part.letter} need text between them, to tell where one ends"
                )
            if part.modifier not in ((*ENCODINGS, "iso") if letter in "kvT" else ("",)):
                raise ValueError(f"%{part.letter} does not take {{{part.modifier}}}")
        previous = part
    if not any(isinstance(part, Verb) for part in parts):
        raise ValueError("the format has no field: use %v for the value")
    return lambda stream: _read(stream, parts)


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
                fields[letter] = bytes.fromhex(_utf8(raw))
            case "k" | "v" if verb.modifier == "base64":
                fields[letter] = _base64(_utf8(raw))
            case "k" | "v":
                fields[letter] = raw
            case "t":
                fields[letter] = _utf8(raw)
            case "p":
                fields[letter] = _whole_number(raw)
            case "T":
                fields[letter] = int(raw) if raw.isdigit() else parse_time_ms(_utf8(raw), 0)
            case "h":
                fields[letter] = [parse_header(each) for each in _utf8(raw).split(",") if each]
    except _Explained as error:
        raise ValueError(f"record {number}: %{verb.letter}: {error}") from None
    except ValueError as error:
        # bytes.fromhex explains positions; the text itself says more.
        reason = f"{_quoted(raw)} is not valid hexadecimal" if verb.modifier == "hex" else str(error)
        raise ValueError(f"record {number}: %{verb.letter}: {reason}") from None


class _Explained(ValueError):
    """The message is for the user as it is."""


def _utf8(raw: bytes) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        raise _Explained(f"{_quoted(raw)} is not valid UTF-8") from None


def _base64(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):  # ValueError: a character is not ASCII
        raise _Explained(f"'{printable(text[:_SHOWN_BYTES])}' is not valid base64") from None


def _whole_number(raw: bytes) -> int:
    try:
        return int(raw)
    except ValueError:
        raise _Explained(f"{_quoted(raw)} is not a valid partition") from None


def parse_header(text: str) -> tuple[str, bytes | None]:
    """Parse `name=value`; without "=" the value is null.

    Raises:
        ValueError: the name is empty.
    """
    name, equals, value = text.partition("=")
    if not name:
        raise ValueError(f"header '{printable(text)}' has no name: write name=value")
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
            raise ValueError(f"record {number} does not begin with {_quoted(literal)}, which the format asks for")
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
            raise ValueError(f"record {number} has no {_quoted(delimiter)}, which the format asks for")
        data = bytes(self._buffer[self._pos :])
        self._pos = len(self._buffer)
        return data


def _read_json(stream: BinaryIO, note: Callable[[str], None]) -> Iterator[Given]:
    is_noted = False
    for number, line in enumerate(stream, 1):
        if not line.strip():
            continue
        found, has_value = read_json_line(number, line)
        if not (is_noted or has_value):
            is_noted = True
            note(f'line {number} has no "value": it and all such lines are tombstones; "value": null says so')
        yield found


def read_json_line(number: int, line: bytes) -> tuple[Given, bool]:
    """Return the record of a line that is not empty, and whether the line says what its value is.

    Args:
        number: of the line in its input, for errors.

    Raises:
        ValueError: the line is not a record; a sentence says why.
    """
    try:
        found = json.loads(line)
        if not isinstance(found, dict):
            raise _Explained('write an object, such as {"key": "k", "value": "v"}')
        has_value = bool(found.keys() & {"value", "value_base64"})
        if "not_read" in found and not has_value:
            raise _Explained("an export ends so that could not read all records")
        record = Given(
            _json_field(found, "value"),
            _json_field(found, "key"),
            [_json_header(each) for each in _json_typed(found, "headers", list) or ()],
            _json_typed(found, "topic", str),
            _json_typed(found, "partition", int),
            _json_typed(found, "timestamp", int),
        )
    except json.JSONDecodeError as error:
        # The character that Python's message names depends on its release, and may be the wrong one.
        raise ValueError(f"line {number} is not valid JSON from column {error.colno} on") from None
    except UnicodeDecodeError:
        raise ValueError(f"line {number} is not valid UTF-8") from None
    except UnicodeEncodeError:
        raise ValueError(f"line {number} has half of a pair of surrogates, which is not a character") from None
    except RecursionError:
        raise ValueError(f"line {number} is nested too deeply") from None
    except _Explained as error:
        raise ValueError(f"line {number} is not a record in JSON: {error}") from None
    except ValueError:
        # Python reads no number of more than 4300 digits.
        raise ValueError(f"line {number} has a number with too many digits") from None
    return record, has_value


def _json_header(found: Any) -> tuple[str, bytes | None]:
    name = _json_typed(found, "key", str) if isinstance(found, dict) else None
    if name is None:
        raise _Explained(f'header {json.dumps(found)} is not {{"key": name, "value": value}}')
    name.encode()
    return name, _json_field(found, "value")


def _json_typed(found: dict[str, Any], name: str, kind: type[_T]) -> _T | None:
    value = found.get(name)
    if value is None or type(value) is kind:  # True is an int, and not a partition
        return value
    raise _Explained(f"{name} cannot be {json.dumps(value)}")


def _json_field(found: dict[str, Any], name: str) -> bytes | None:
    encoded = _json_typed(found, f"{name}_base64", str)
    if encoded is not None:
        return _base64(encoded)
    value = found.get(name)
    if value is None:
        return None
    return value.encode() if isinstance(value, str) else json.dumps(value, ensure_ascii=False).encode()
