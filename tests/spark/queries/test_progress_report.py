"""Spark's report of a batch becomes values; sources of other kinds have no offsets."""

from __future__ import annotations

from typing import Any

from barnabas.spark.queries.progress_report import Reach, parse_report


def report(*sources: Any, **more: Any) -> dict[str, Any]:
    given = {
        "timestamp": "2026-11-22T10:49:54.063Z",
        "batchDuration": 2500,
        "numInputRows": 7,
        "processedRowsPerSecond": 2.8,
        "durationMs": {"addBatch": 2400},
        "stateOperators": [{"numRowsDroppedByWatermark": 2}, {"numRowsDroppedByWatermark": 1}],
        "sources": [{"endOffset": end, "latestOffset": latest} for end, latest in sources],
    }
    return given | more


def test_a_report_of_a_batch():
    found = parse_report(report(({"t": {"0": 7, "1": 3}}, {"t": {"0": 20, "1": 3}})))
    assert (found.timestamp_s, found.batch_seconds, found.rows, found.rows_per_second) == (1795344594.063, 2.5, 7, 2.8)
    assert found.has_batch
    assert found.late_rows == 3
    assert found.reach == {("t", 0): Reach(7, 20), ("t", 1): Reach(3, 3)}


def test_of_two_sources_on_a_topic_the_slower_one_counts():
    slow, fast = ({"t": {"0": 5}}, {"t": {"0": 20}}), ({"t": {"0": 20}}, {"t": {"0": 20}})
    assert parse_report(report(slow, fast)).reach == parse_report(report(fast, slow)).reach == {("t", 0): Reach(5, 20)}


def test_sources_that_count_otherwise():
    others = [(3, 9), ({"logOffset": 3}, None), (None, None), ({"t": {"x": 1}}, {"t": {"x": 1}}), ("3", "9")]
    assert parse_report(report(*others)).reach == {}


def test_what_is_beside_the_topics_is_left_out():
    end = {"t": {"0": 7}, "~first": {"t": {"0": 1}}, "~ids": {"t": "AAAA"}}
    assert parse_report(report((end, {"t": {"0": 7}}))).reach == {("t", 0): Reach(7, 7)}


def test_a_trigger_without_a_batch():
    found = parse_report(report(durationMs={"latestOffset": 1}, stateOperators=[], processedRowsPerSecond=None))
    assert not found.has_batch
    assert (found.late_rows, found.rows_per_second, found.reach) == (0, None, {})
