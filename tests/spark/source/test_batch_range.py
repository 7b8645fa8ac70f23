"""A batch's range is fixed before it is read; errors name the options as their user knows them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from barnabas.spark.source import batch_range as source
from barnabas.spark.source.batch_range import batch_range
from barnabas.spark.source.data_loss import DataLoss, LossReports
from barnabas.spark.source.offset_reader import OffsetReader
from barnabas.spark.source.offsets import Specific
from barnabas.spark.source.option_words import OptionWords
from barnabas.spark.source.options import SourceOptions, parse_batch_options
from tests.spark.fake_cluster import FakeCluster

WORDS = OptionWords("FROM", "TO", "PATIENCE", "UNCOMMITTED", "SKIPS", "GONE")


@pytest.fixture
def cluster(monkeypatch) -> FakeCluster:
    fake = FakeCluster()
    fake.create("a").partitions[0].append(*[b"x"] * 10)
    monkeypatch.setattr(source, "LossReports", lambda options: LossReports(options, connect=fake.connect))
    return fake


def found(cluster: FakeCluster, options: SourceOptions):
    pauses_s: list[float] = []
    seams = {"connect": cluster.connect, "clock": lambda: sum(pauses_s), "sleep": pauses_s.append}
    return batch_range(OffsetReader(options, **seams), options)


def options(starting: int, ending: int) -> SourceOptions:
    parsed = parse_batch_options({"kafka.bootstrap.servers": "h:9092", "subscribe": "a"}, 0)
    limits = {"starting": Specific({("a", 0): starting}), "ending": Specific({("a", 0): ending})}
    return replace(parsed, words=WORDS, **limits)


def test_both_ends_are_offsets(cluster):
    assert found(cluster, options(3, 7)) == ({("a", 0): 3}, {("a", 0): 7})


def test_a_beginning_after_the_end_names_both_options(cluster):
    with pytest.raises(ValueError, match=r"offset 9 is greater than the resolved end offset 7 .*Correct FROM or TO;"):
        found(cluster, options(9, 7))


def test_an_end_that_the_log_does_not_reach_names_the_option_and_the_way_out(cluster):
    with pytest.raises(DataLoss, match=r"\[10, 31\) for topic partition a-0: it ends before TO\. GONE$"):
        found(cluster, options(3, 31))


def test_what_is_skipped_is_logged_with_the_reason(cluster, caplog):
    assert found(cluster, replace(options(3, 31), fail_on_data_loss=False)) == ({("a", 0): 3}, {("a", 0): 10})
    assert caplog.messages[-1].endswith("it ends before TO; continuing without them, because SKIPS")
