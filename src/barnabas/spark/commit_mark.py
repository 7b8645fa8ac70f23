"""The metadata of the offsets that a query commits to a consumer group: that Spark committed them, and when.

    spark at=2026-11-22T10:49:54.063Z

Kafka tells no reader when an offset was committed. Readers ignore words that they do not know.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime

__all__ = ["CommitMark", "parse_mark"]

_MARK = re.compile(r"spark(?: \S+)*? at=(\S+)(?: |$)")


@dataclass(frozen=True, slots=True)
class CommitMark:
    """When a query committed, in milliseconds since 1970."""

    committed_ms: int

    def __str__(self) -> str:
        moment = datetime.fromtimestamp(self.committed_ms / 1000, UTC).isoformat(timespec="milliseconds")
        return f"spark at={moment.replace('+00:00', 'Z')}"


def parse_mark(metadata: str | None) -> CommitMark | None:
    """Return the mark in an offset's metadata; None if Spark did not commit the offset."""
    match = _MARK.match(metadata or "")
    if match is None:
        return None
    try:
        moment = datetime.fromisoformat(match[1])
    except ValueError:
        return None
    return None if moment.tzinfo is None else CommitMark(round(moment.timestamp() * 1000))
