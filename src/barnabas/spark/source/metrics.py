"""How far a query is behind its topics, as Spark's own Kafka source reports it in `sources[].metrics`.

Spark asks a Python source for no metrics. But its progress has the two offsets that they are computed from:

    for source in query.lastProgress.sources:
        print(offsets_behind_latest(source.endOffset, source.latestOffset))
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from barnabas.spark.source.offsets import from_spark

__all__ = ["OffsetsBehindLatest", "offsets_behind_latest"]


@dataclass(frozen=True, slots=True)
class OffsetsBehindLatest:
    """The offsets between a query's position and the end of a partition: least, most, and on average."""

    min: int
    max: int
    avg: float


def offsets_behind_latest(end_offset: str | None, latest_offset: str | None) -> OffsetsBehindLatest | None:
    """Return how far a query is behind, from the texts `endOffset` and `latestOffset` of its progress.

    Returns:
        None if the progress has no offsets, as before the first batch.

    Raises:
        ValueError: the offsets are of another source.
    """
    if end_offset is None or latest_offset is None:
        return None
    read, latest = from_spark(json.loads(end_offset)), from_spark(json.loads(latest_offset))
    behind = [max(0, offset - read[each]) for each, offset in latest.items() if each in read]
    return OffsetsBehindLatest(min(behind), max(behind), sum(behind) / len(behind)) if behind else None
