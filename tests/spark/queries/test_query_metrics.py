"""The metrics of queries, as a scrape reads them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from barnabas.spark.queries.progress_report import ProgressReport, Reach
from barnabas.spark.queries.query_metrics import QueryMetrics
from barnabas.spark.source.skipped_ranges import SkippedRanges

PAGE = (Path(__file__).parents[3] / "docs" / "spark-operating.md").read_text()


class Scraped:
    """Metrics on a clock that a test moves."""

    def __init__(self) -> None:
        self.now_s = 1_000.0
        self.registry = CollectorRegistry()
        self.metrics = QueryMetrics(self.registry, lambda: self.now_s)

    def report(self, query: str = "q", **more: Any) -> None:
        given = {
            "timestamp_s": self.now_s,
            "has_batch": True,
            "batch_seconds": 2.0,
            "rows": 10,
            "rows_per_second": 5.0,
            "late_rows": 0,
            "reach": {},
        }
        self.metrics.progressed(query, ProgressReport(**(given | more)))

    def samples(self) -> dict[str, float]:
        found = {}
        for family in text_string_to_metric_families(generate_latest(self.registry).decode()):
            for sample in family.samples:
                labels = ",".join(value for _, value in sorted(sample.labels.items()))
                found[f"{sample.name.removeprefix('barnabas_spark_query_')} {labels}"] = sample.value
        return found


@pytest.fixture
def scraped() -> Scraped:
    return Scraped()


def test_a_query_that_has_just_started(scraped):
    scraped.metrics.started("q")
    found = scraped.samples()
    assert found["active q"] == 1
    assert found["failures_total q"] == found["input_rows_total q"] == found["late_rows_dropped_total q"] == 0


def test_batches_add_up(scraped):
    scraped.report(batch_seconds=2.0, late_rows=1)
    scraped.report(batch_seconds=0.2, rows=5, rows_per_second=25.0, late_rows=2)
    found = scraped.samples()
    assert found["input_rows_total q"] == 15
    assert found["late_rows_dropped_total q"] == 3
    assert found["batch_duration_seconds_count q"] == 2
    assert found["batch_duration_seconds_sum q"] == 2.2
    assert found["batch_duration_seconds_bucket 0.25,q"] == 1
    assert (found["last_batch_seconds q"], found["processed_rows_per_second q"]) == (0.2, 25)
    assert found["last_progress_timestamp_seconds q"] == 1_000


def test_a_trigger_without_a_batch_is_no_batch(scraped):
    scraped.report()
    scraped.report(has_batch=False, batch_seconds=0.001, rows=0, rows_per_second=None)
    found = scraped.samples()
    assert (found["batch_duration_seconds_count q"], found["last_batch_seconds q"]) == (1, 2)
    assert found["processed_rows_per_second q"] == 5


def test_lag_is_of_a_topic_and_grows_between_reports(scraped):
    scraped.report(reach={("a", 0): Reach(5, 10), ("a", 1): Reach(9, 9), ("b", 0): Reach(4, 4)})
    found = scraped.samples()
    assert (found["lag_records q,a"], found["lag_records q,b"]) == (5, 0)
    scraped.now_s += 30
    found = scraped.samples()
    assert (found["lag_seconds q,a"], found["lag_seconds q,b"]) == (30, 0)
    scraped.report(reach={("a", 0): Reach(10, 10), ("a", 1): Reach(9, 12)})
    scraped.now_s += 1
    found = scraped.samples()
    assert (found["lag_records q,a"], found["lag_seconds q,a"]) == (3, 1)
    assert "lag_records q,b" not in found, "a topic that the query no longer reads"


def test_an_end_before_the_position_is_no_lag(scraped):
    scraped.report(reach={("a", 0): Reach(10, 5), ("a", 1): Reach(1, 2)})
    assert scraped.samples()["lag_records q,a"] == 1


def test_a_query_that_ended_has_no_lag_and_keeps_its_counters(scraped):
    for name in ("q", "other"):
        scraped.metrics.started(name)
        scraped.report(name, reach={("a", 0): Reach(5, 10)})
    scraped.metrics.ended("q", failed=True)
    scraped.metrics.ended("never seen", failed=False)
    found = scraped.samples()
    assert (found["active q"], found["failures_total q"], found["input_rows_total q"]) == (0, 1, 10)
    assert "lag_records q,a" not in found
    assert "lag_seconds q,a" not in found
    assert (found["active other"], found["failures_total other"], found["lag_records other,a"]) == (1, 0, 5)
    scraped.now_s += 60
    scraped.metrics.started("q")
    scraped.report(reach={("a", 0): Reach(5, 10)})
    found = scraped.samples()
    assert (found["active q"], found["lag_seconds q,a"], found["input_rows_total q"]) == (1, 0, 20)


def test_the_page_of_the_documentation_has_every_metric(scraped):
    scraped.report(reach={("a", 0): Reach(5, 10)})
    scraped.registry.register(SkippedRanges(list, str))
    text = generate_latest(scraped.registry).decode()
    families = {line.split()[2] for line in text.splitlines() if line.startswith("# TYPE")}
    documented = set(re.findall(r"^\| `(barnabas_spark_\w+)`", PAGE, re.MULTILINE))
    assert {each for each in families if not each.endswith("_created")} == documented
