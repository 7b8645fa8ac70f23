"""The variables that an expression has of a record: its parts decoded, and where it is.

A record is decoded only as far as the expression asks.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from barnabas.decoding.decoded import Decoded
from barnabas.decoding.decoder import Decoder
from barnabas.decoding.expression import Unjudged
from barnabas.decoding.internal_topics import INTERNAL_TOPICS

_TEXTS = ("text", "hex", "base64")


class UndecodedRecord(NamedTuple):
    """A record as a consumer gets it.

    Attributes:
        timestamp: epoch milliseconds, -1 if it has none.
        state: `committed`, `aborted` or `held_back`.
    """

    topic: str
    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[str, bytes | None]]
    state: str = "committed"


class RecordVariables:
    """The variables of expressions over records that are decoded in the same way.

    Args:
        key_as, value_as: formats of `Decoder`; an empty one is that of an internal topic, or not known.
    """

    def __init__(self, decoder: Decoder, key_as: str, value_as: str) -> None:
        self._decoder = decoder
        self._key_as = key_as
        self._value_as = value_as

    def __repr__(self) -> str:
        return f"<RecordVariables key={self._key_as} value={self._value_as}>"

    def undecoded(self, topic: str) -> frozenset[str]:
        """Return the parts, `key` and `value`, of which an expression sees text, and no fields whatever a record has."""
        texts = _TEXTS if topic in INTERNAL_TOPICS else ("", *_TEXTS)
        formats = {"key": self._key_as, "value": self._value_as}
        return frozenset(part for part, format in formats.items() if format in texts)

    def of(self, record: UndecodedRecord, name: str) -> object:
        """Return a variable, one of `expression.VARIABLES`.

        Raises:
            Unjudged: that part of the record cannot be decoded.
        """
        match name:
            case "value":
                return _judged(name, self._decoder.value(record.topic, record.key, record.value, self._value_as))
            case "key":
                return _judged(name, self._decoder.key(record.topic, record.key, self._key_as))
            case "headers":
                return {header: _header_text(value) for header, value in record.headers}
            case "time":
                return _time(record.timestamp)
        found: object = getattr(record, name)
        return found


def _judged(part: str, found: Decoded) -> object:
    if found.note is not None:
        raise Unjudged(f"the {part}: {found.note}", part)
    if found.is_cut and found.format in _TEXTS:
        raise Unjudged(f"the {part} has {found.size} bytes, which are too many", part)
    return found.data


def _time(timestamp: int) -> datetime | None:
    try:
        return datetime.fromtimestamp(timestamp / 1000, UTC)
    except (ValueError, OverflowError, OSError):
        return None


def _header_text(value: bytes | None) -> object:
    if value is None:
        return None
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value
