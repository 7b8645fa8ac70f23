"""A place in the log of every partition, counted from its start or its end, or exact, or by time."""

from __future__ import annotations

import re
from enum import Enum
from typing import NamedTuple


class Anchor(Enum):
    """The origin of a point's number."""

    START = "start"
    END = "end"
    EXACT = "exact"
    TIME = "time"


_NUMBER = re.compile(r"([-+]?)(\d+)", re.ASCII)
_ANCHORS = {"": Anchor.EXACT, "+": Anchor.START, "-": Anchor.END}


class Point(NamedTuple):
    """A place in every partition; `number` is an offset, a distance, or epoch milliseconds."""

    anchor: Anchor
    number: int = 0

    @classmethod
    def of_number(cls, text: str) -> Point | None:
        """Return the point that `47`, `+2` or `-3` is; None for another text."""
        match = _NUMBER.fullmatch(text)
        return match and cls(_ANCHORS[match[1]], int(match[2]))

    def resolve(self, start: int, end: int, offset_of_time: int | None = None) -> int:
        """Return the offset in a partition.

        Args:
            start: the log start offset.
            end: the log end offset.
            offset_of_time: the first offset at or after the point's time; None when all records are older.

        Returns:
            An offset within the log; an exact one as it is.
        """
        match self.anchor:
            case Anchor.EXACT:
                return self.number
            case Anchor.START:
                return min(start + self.number, end)
            case Anchor.END:
                return max(end - self.number, start)
            case Anchor.TIME:
                return end if offset_of_time is None else offset_of_time
