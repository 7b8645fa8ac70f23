"""A key or a value of a record, decoded."""

from __future__ import annotations

from typing import NamedTuple


class Decoded(NamedTuple):
    """A part of a record.

    Attributes:
        format: in which it was decoded; `null` for a part that is absent.
        data: for filters and programs, as JSON has it; of text and bytes the shown part.
        text: for people.
        size: bytes of the part, None for a null.
        is_cut: `text` and `data` have only its first bytes.
        note: why it is not in the format that was asked for; None if it is.
    """

    format: str
    data: object
    text: str
    size: int | None
    is_cut: bool = False
    note: str | None = None


NULL = Decoded("null", None, "", None)
