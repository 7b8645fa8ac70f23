"""A query's progress is a group's offsets, and two queries that share a group are told."""

from __future__ import annotations

import pytest

from barnabas.protocol.errors import ErrorCode
from barnabas.spark.source.group_progress import GroupProgress
from barnabas.spark.source.offset_reader import OffsetReader
from barnabas.spark.source.options import parse_batch_options
from tests.spark.fake_cluster import FakeCluster


@pytest.fixture
def cluster() -> FakeCluster:
    fake = FakeCluster()
    fake.create("t", partitions=2)
    return fake


def offsets(cluster: FakeCluster) -> OffsetReader:
    options = parse_batch_options({"kafka.bootstrap.servers": "h:9092", "subscribe": "t"}, 0)
    return OffsetReader(options, connect=cluster.connect)


def test_the_offsets_name_their_run_and_the_moment(cluster):
    GroupProgress("g", "run1", clock_ns=lambda: 1_763_808_594_063_000_000).show(offsets(cluster), {("t", 0): 3})
    assert cluster.commits["g"] == {("t", 0): 3}
    assert cluster.notes["g", "t", 0] == "spark by=run1 at=2025-11-22T10:49:54.063Z"


def test_a_position_is_committed_once(cluster):
    progress, reader = GroupProgress("g", "run1"), offsets(cluster)
    for _ in range(3):
        progress.show(reader, {("t", 0): 3})
    assert cluster.requests.count("OffsetCommit") == 1


def test_two_queries_that_run_and_commit_to_one_group_are_warned_of_once(cluster, caplog):
    one, two, reader = GroupProgress("g", "run1"), GroupProgress("g", "run2"), offsets(cluster)
    for offset in range(3):
        one.show(reader, {("t", 0): offset})
        two.show(reader, {("t", 0): offset})
    sentence = "another running query commits to group g too"
    assert caplog.text.count(sentence) == 2, "each of them says it"
    assert "give each query a kafka.group.id of its own" in caplog.text


def test_a_query_that_is_started_again_is_not_another(cluster, caplog):
    before, reader = GroupProgress("g", "run1"), offsets(cluster)
    before.show(reader, {("t", 0): 1})
    after = GroupProgress("g", "run2")
    for offset in range(2, 5):
        after.show(reader, {("t", 0): offset})
    assert not caplog.text


def test_queries_of_different_partitions_and_other_clients_are_no_reason_to_warn(cluster, caplog):
    one, two, reader = GroupProgress("g", "run1"), GroupProgress("g", "run2"), offsets(cluster)
    for offset in range(3):
        one.show(reader, {("t", 0): offset})
        two.show(reader, {("t", 1): offset})
    reader.commit("g", {("t", 0): 0}, "reset by hand")
    one.show(reader, {("t", 0): 9})
    assert not caplog.text


def test_a_commit_that_fails_is_logged_and_nothing_more(cluster, caplog):
    progress, reader = GroupProgress("g", "run1"), offsets(cluster)
    for error in (
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_MEMBER_ID,
    ):
        cluster.group_error = error
        progress.show(reader, {("t", 0): len(cluster.requests)})
    assert caplog.text.count("cannot commit progress to group g") == 2, "once for each time that it begins to fail"
