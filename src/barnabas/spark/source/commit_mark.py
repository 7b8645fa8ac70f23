"""The metadata of the offsets that a query commits to a consumer group: that Spark committed them, which run, and when.

    spark by=5f2c01ab9d3e at=2026-11-22T10:49:54.063Z

Kafka tells no reader when an offset was committed. Readers ignore words that they do not know.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime

__all__ = ["CommitMark", "parse_mark"]

_SPARK = re.compile(r"spark(?: \S+)*")
_AT = re.compile(r" at=(\S+)")
_BY = re.compile(r" by=(\S+)")


@dataclass(frozen=True, slots=True)
class CommitMark:
    """When a query committed, in milliseconds since 1970, and which run of it; None if the mark does not say so."""

    committed_ms: int | None
    run_id: str | None = None

    def __str__(self) -> str:
        run = "" if self.run_id is None else f" by={self.run_id}"
        if self.committed_ms is None:
            return f"spark{run}"
        moment = datetime.fromtimestamp(self.committed_ms / 1000, UTC).isoformat(timespec="milliseconds")
        return f"spark{run} at={moment.replace('+00:00', 'Z')}"


def parse_mark(metadata: str | None) -> CommitMark | None:
    """Return the mark in an offset's metadata; None if Spark did not commit the offset."""
    if not _SPARK.fullmatch(metadata or ""):
        return None
    match, by = _AT.search(metadata or ""), _BY.search(metadata or "")
    run_id = None if by is None else by[1]
    try:
        moment = None if match is None else datetime.fromisoformat(match[1])
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None:
        return CommitMark(None, run_id)
    return CommitMark(round(moment.timestamp() * 1000), run_id)
