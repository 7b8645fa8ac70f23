"""The metadata of the offsets that a query commits to a consumer group: that Spark committed them, and when.

    spark at=2026-11-22T10:49:54.063Z

Kafka tells no reader when an offset was committed. Readers ignore words that they do not know.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime

__all__ = ["CommitMark", "parse_mark"]

_SPARK = re.compile(r"spark(?: \S+)*")
_AT = re.compile(r" at=(\S+)")


@dataclass(frozen=True, slots=True)
class CommitMark:
    """When a query committed, in milliseconds since 1970; None if the mark does not say when."""

    committed_ms: int | None

    def __str__(self) -> str:
        if self.committed_ms is None:
            return "spark"
        moment = datetime.fromtimestamp(self.committed_ms / 1000, UTC).isoformat(timespec="milliseconds")
        return f"spark at={moment.replace('+00:00', 'Z')}"


def parse_mark(metadata: str | None) -> CommitMark | None:
    """Return the mark in an offset's metadata; None if Spark did not commit the offset."""
    if not _SPARK.fullmatch(metadata or ""):
        return None
    match = _AT.search(metadata or "")
    try:
        moment = None if match is None else datetime.fromisoformat(match[1])
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None:
        return CommitMark(None)
    return CommitMark(round(moment.timestamp() * 1000))
