"""Where a search goes on, as text that fits into an address.

    2.TOPIC-ID.FOUND-HIDDEN-VALUES-KEYS-OTHERS.PARTITION-BEGIN-END-….PARTITION-…

`VALUES`, `KEYS` and `OTHERS` count the records that the filter could not be asked about. Numbers are in base 36; a negative one begins
with `M`, an absent one is `N`. The cursor has everything that was fixed when the search began and counted since, so that the next page
needs no memory of the console's: any process can go on.
"""

from __future__ import annotations

import base64
import binascii
from dataclasses import astuple
from typing import NamedTuple

from barnabas.console.search.filters import UNJUDGED_PARTS
from barnabas.console.search.query import BadQuery
from barnabas.console.search.span import PARTITIONS_MAX, UNKNOWN, PartitionSpan

_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
_VERSION = "2"
_TOPIC_ID_BYTES = 16
_DIGITS_MAX = 14
_FIELDS = 11
_TIME_AT = 6
_PARTS = len(UNJUDGED_PARTS)


class Cursor(NamedTuple):
    """A search between two pages.

    Attributes:
        topic_id: of the topic that is searched; zeros if the broker has no ids.
        found: results of the pages before.
        hidden: records of aborted transactions that were passed over.
        unjudged: records that the filter could not be asked about, in the order of `filters.UNJUDGED_PARTS`.
    """

    topic_id: bytes
    found: int
    hidden: int
    unjudged: tuple[int, ...]
    spans: list[PartitionSpan]

    def text(self) -> str:
        """Return the cursor as a parameter of an address."""
        topic_id = base64.urlsafe_b64encode(self.topic_id).decode().rstrip("=")
        counts = "-".join(map(_written, (self.found, self.hidden, *self.unjudged)))
        return ".".join((_VERSION, topic_id, counts, *("-".join(map(_written, astuple(each))) for each in self.spans)))

    @classmethod
    def of(cls, text: str) -> Cursor:
        """Return the cursor of an address.

        Raises:
            BadQuery: the text is not a cursor.
        """
        try:
            version, topic_id_text, counts, *spans = text.split(".", PARTITIONS_MAX + 3)
            topic_id = base64.b64decode(f"{topic_id_text}==", altchars=b"-_", validate=True)
            found, hidden, *unjudged = (_number(each) for each in counts.split("-"))
            read = [_span(each) for each in spans]
        except (ValueError, binascii.Error):
            raise BadQuery("The address does not say where the search goes on: begin it again.") from None
        if (
            version != _VERSION
            or len(topic_id) != _TOPIC_ID_BYTES
            or len(read) > PARTITIONS_MAX
            or len(unjudged) != _PARTS
        ):
            raise BadQuery("The address does not say where the search goes on: begin it again.")
        return cls(topic_id, found, hidden, tuple(unjudged), read)


def _span(text: str) -> PartitionSpan:
    numbers = [None if word == "N" else _number(word) for word in text.split("-")]
    if len(numbers) != _FIELDS:
        raise ValueError("other fields")
    edge_ms = numbers.pop(_TIME_AT)
    partition, begin, end, stable_end, held_back, position, *counts = (_sure(each) for each in numbers)
    records, control, removed, damaged = counts
    if begin != UNKNOWN and not 0 <= begin <= position <= end:
        raise ValueError("not in order")
    if min(partition, held_back, *counts) < 0:
        raise ValueError("negative")
    return PartitionSpan(
        partition, begin, end, stable_end, held_back, position, edge_ms, records, control, removed, damaged
    )


def _sure(number: int | None) -> int:
    if number is None:
        raise ValueError("absent")
    return number


def _written(number: int | None) -> str:
    if number is None:
        return "N"
    sign, number = ("M", -number) if number < 0 else ("", number)
    text = ""
    while True:
        number, digit = divmod(number, 36)
        text = _DIGITS[digit] + text
        if not number:
            return sign + text


def _number(text: str) -> int:
    digits = text.removeprefix("M")
    if not 1 <= len(digits) <= _DIGITS_MAX or any(each not in _DIGITS for each in digits):
        raise ValueError("not a number")
    return -int(digits, 36) if text.startswith("M") else int(digits, 36)
