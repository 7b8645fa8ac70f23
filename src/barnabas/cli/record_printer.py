"""`consume --format`: a batch of consumed messages as the bytes to print.

A format is compiled once. Each of its verbs is a conversion of Python's `%` and a field of the message, so that printing a record is one
formatting of bytes; the default, a value and a literal after it, is one `join` for the whole batch. `json` prints an object per line,
the same as `record_format.to_json`, without an object in between.
"""

from __future__ import annotations

import base64
import json
import struct
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from confluent_kafka import Message

from barnabas.cli.output import printable_json
from barnabas.cli.record_format import ENCODINGS, encoded, format_headers, split_format
from barnabas.words.printable import printable
from barnabas.words.times import format_time_ms

Printer = Callable[[Sequence[Message]], bytes]
"""Returns what messages without an error look like, one after the other."""

_Column = Callable[[Sequence[Message]], Iterable[Any]]
"""Returns a field of each message."""


def _each(field: Callable[[Message], Any]) -> _Column:
    return lambda messages: map(field, messages)


def _bytes_of(field: Callable[[Message], bytes | None]) -> Callable[[Sequence[Message]], list[bytes]]:
    """Return the column of a key or a value; null is nothing."""

    def column(messages: Sequence[Message]) -> list[bytes]:
        # A map of the library's own method costs a third of a call for each message.
        found: list[Any] = list(map(field, messages))
        return [each or b"" for each in found] if None in found else found

    return column


_values = _bytes_of(Message.value)


def _timestamp(message: Message) -> int:
    kind, timestamp = message.timestamp()
    return timestamp if kind else -1


def _headers(message: Message) -> Any:
    return message.headers() or ()


def _length(data: bytes | None) -> int:
    return -1 if data is None else len(data)


def _leader_epoch(message: Message) -> int:
    epoch = message.leader_epoch()
    return -1 if epoch is None else epoch


def _encodings(field: Callable[[Message], bytes | None], plain: _Column) -> dict[str, tuple[bytes, _Column]]:
    def in_form(modifier: str) -> _Column:
        return _each(lambda message: encoded(field(message), modifier))

    return {"": (b"%b", plain)} | {name: (b"%b", in_form(name)) for name in ENCODINGS if name}


_FIELDS: dict[str, dict[str, tuple[bytes, _Column]]] = {
    "t": {"": (b"%b", _each(lambda message: str(message.topic()).encode()))},
    "p": {"": (b"%d", _each(Message.partition))},
    "o": {"": (b"%d", _each(Message.offset))},
    "k": _encodings(Message.key, _bytes_of(Message.key)),
    "s": _encodings(Message.value, _values),
    "h": {"": (b"%b", _each(lambda message: format_headers(_headers(message))))},
    "T": {
        "": (b"%d", _each(_timestamp)),
        "iso": (b"%b", _each(lambda message: format_time_ms(_timestamp(message)).encode())),
    },
    "K": {"": (b"%d", _each(lambda message: _length(message.key())))},
    "S": {"": (b"%d", _each(lambda message: _length(message.value())))},
    "R": {"": (b"%b", _each(lambda message: struct.pack(">i", _length(message.value()))))},
    "H": {"": (b"%d", _each(lambda message: len(_headers(message))))},
    "e": {"": (b"%d", _each(_leader_epoch))},
}
_FIELDS |= {"v": _FIELDS["s"], "V": _FIELDS["S"], "d": _FIELDS["T"]}

_LETTERS_SHOWN = " ".join(f"%{letter}" for letter in sorted(_FIELDS, key=lambda letter: (letter.lower(), letter)))


def printer(text: str) -> Printer:
    """Compile a format into a function that prints a batch.

    Raises:
        ValueError: a verb, modifier or escape is unknown.
    """
    if text == "json":
        return json_lines
    template = b""
    columns: list[_Column] = []
    for part in split_format(text):
        if isinstance(part, bytes):
            template += part.replace(b"%", b"%%")
            continue
        if part.letter not in _FIELDS:
            raise ValueError(f"%{printable(part.letter)} is not a valid field of a format: use one of {_LETTERS_SHOWN}")
        forms = _FIELDS[part.letter]
        if part.modifier not in forms:
            allowed = ", ".join(filter(None, forms)) or "none"
            raise ValueError(f"%{part.letter} does not take {{{part.modifier}}}, only {allowed}")
        conversion, column = forms[part.modifier]
        template += conversion
        columns.append(column)
    if columns == [_values] and template.startswith(b"%b"):
        return _values_with(template[2:] % ())
    if not columns:
        literal = template % ()
        return lambda messages: literal * len(messages)
    return lambda messages: b"".join(
        [template % row for row in zip(*[column(messages) for column in columns], strict=True)]
    )


def _values_with(end: bytes) -> Printer:
    def show(messages: Sequence[Message]) -> bytes:
        values = _values(messages)
        values.append(b"")  # so that the last record has its end, too
        return end.join(values)

    return show


_quoted = json.JSONEncoder(ensure_ascii=False).encode


def json_lines(messages: Sequence[Message]) -> bytes:
    """Return messages as lines of JSON that a terminal prints and does not obey."""
    return "".join([printable_json(_json_object(message)) + "\n" for message in messages]).encode()


def _json_object(message: Message) -> str:
    return json_object_of(message, json_field("key", message.key()), json_field("value", message.value()))


def json_object_of(message: Message, key: str, value: str) -> str:
    """Return a message as an object of JSON, with these fields for its key and its value."""
    headers = ", ".join(
        [f'{{"key": {_quoted(name)}, {json_field("value", value)}}}' for name, value in _headers(message)]
    )
    return (
        f'{{"topic": {_quoted(message.topic())}, "partition": {message.partition()}, "offset": {message.offset()},'
        f' "timestamp": {_timestamp(message)}, {key}, {value}, "headers": [{headers}]}}'
    )


def json_field(name: str, data: bytes | None) -> str:
    """Return bytes as a field of JSON: text, or base64 under another name if they are not UTF-8."""
    if data is None:
        return f'"{name}": null'
    try:
        return f'"{name}": {_quoted(data.decode())}'
    except UnicodeDecodeError:
        return f'"{name}_base64": "{base64.b64encode(data).decode()}"'
