"""What the latency of a trigger is computed from."""

from __future__ import annotations

import json

import pytest

pytest.importorskip("pyspark")

from bench.spark_jobs import ages


def batch(began: str, took_ms: int, ends: dict[str, int]) -> dict[str, object]:
    return {
        "timestamp": began,
        "durationMs": {"triggerExecution": took_ms},
        "sources": [{"endOffset": {"t": ends, "~ids": {"t": "x"}}}],
    }


@pytest.mark.parametrize("text", [False, True], ids=["object", "text"])
def test_a_record_is_as_old_as_the_end_of_the_first_batch_behind_it(text):
    batches = [
        batch("1970-01-01T00:00:10.000Z", 500, {"0": 5}),
        batch("1970-01-01T00:00:11.000Z", 250, {"0": 7, "1": 1}),
    ]
    if text:
        for each in batches:
            each["sources"][0]["endOffset"] = json.dumps(each["sources"][0]["endOffset"])
    sent = {(0, 4): 9.5, (0, 5): 10.0, (1, 0): 11.0, (1, 1): 11.1}
    assert ages(sent, batches, "t") == [1.0, 1.25, 0.25], "the last record is in no batch yet"
