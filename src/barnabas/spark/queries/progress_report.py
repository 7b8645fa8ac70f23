"""Spark's report after each batch of a query, as values.

A report is JSON, `StreamingQueryProgress.json`. The parts that are read here:

    {"timestamp": "2026-11-22T10:49:54.063Z", "batchDuration": 27761, "numInputRows": 7,
     "processedRowsPerSecond": 0.3, "durationMs": {"addBatch": 25098, …},
     "stateOperators": [{"numRowsDroppedByWatermark": 0, …}],
     "sources": [{"endOffset": {"t": {"0": 7}}, "latestOffset": {"t": {"0": 20}}, …}], …}

Sources that count otherwise than in offsets of partitions (files, rates) have no positions here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

__all__ = ["ProgressReport", "Reach", "parse_report"]


@dataclass(frozen=True, slots=True)
class Reach:
    """How far a query has read a partition, and where the partition ends."""

    read: int
    end: int


@dataclass(frozen=True, slots=True)
class ProgressReport:
    """One report.

    Attributes:
        timestamp_s: when the trigger began, in seconds since 1970.
        has_batch: False if the trigger found nothing to do.
        rows_per_second: None if Spark does not report a rate.
        late_rows: rows that came after the watermark had closed their window.
        reach: by (topic, partition). If several sources read a partition, that of the slowest one.
    """

    timestamp_s: float
    has_batch: bool
    batch_seconds: float
    rows: int
    rows_per_second: float | None
    late_rows: int
    reach: dict[tuple[str, int], Reach]


def parse_report(report: Mapping[str, Any]) -> ProgressReport:
    """Parse a report's JSON object."""
    reach: dict[tuple[str, int], Reach] = {}
    for source in report.get("sources") or ():
        read, ends = _position(source.get("endOffset")), _position(source.get("latestOffset"))
        for each in read.keys() & ends.keys():
            known = reach.get(each)
            if known is None or read[each] < known.read:
                reach[each] = Reach(read[each], ends[each])
    return ProgressReport(
        timestamp_s=datetime.fromisoformat(report["timestamp"]).timestamp(),
        has_batch="addBatch" in (report.get("durationMs") or {}),
        batch_seconds=report["batchDuration"] / 1000,
        rows=report["numInputRows"],
        rows_per_second=report.get("processedRowsPerSecond"),
        late_rows=sum(each.get("numRowsDroppedByWatermark", 0) for each in report.get("stateOperators") or ()),
        reach=reach,
    )


def _position(offsets: object) -> dict[tuple[str, int], int]:
    """Return the offsets of Spark's form for Kafka, `{"topic": {"0": 42}}`; nothing of another form.

    Other keys of an object begin with "~", which no topic's name has.
    """
    if not isinstance(offsets, Mapping):
        return {}
    found: dict[tuple[str, int], int] = {}
    for topic, partitions in offsets.items():
        if topic.startswith("~"):
            continue
        if not isinstance(partitions, Mapping):
            return {}
        for partition, offset in partitions.items():
            if not partition.isdecimal() or not isinstance(offset, int):
                return {}
            found[topic, int(partition)] = offset
    return found
