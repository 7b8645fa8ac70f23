"""Positions by the names of groups and cuts: what they are, and which are errors."""

from __future__ import annotations

import pytest

from barnabas.client.cluster_metadata import TopicPartition
from barnabas.client.cuts import CUTS_TOPIC, Cut
from barnabas.protocol.primitives import uuid_to_str
from barnabas.records.builder import build_batch
from barnabas.spark.source.batch import BatchReader
from barnabas.spark.source.offset_reader import OffsetReader
from barnabas.spark.source.options import parse_batch_options
from tests.spark.fake_cluster import FakeCluster

T0, T1 = ("t", 0), ("t", 1)


@pytest.fixture
def cluster() -> FakeCluster:
    """Topic t with ten records in each partition, the first three of which are deleted."""
    fake = FakeCluster()
    for partition in fake.create("t", partitions=2).partitions.values():
        partition.append(*[b"x"] * 10)
        partition.start = 3
    fake.commits["shop"] = {T0: 7}
    return fake


def store(cluster: FakeCluster, name: str, *partitions: int, topic: str = "t") -> None:
    """Store a cut at offset 5 of some partitions."""
    ids = {topic: uuid_to_str(cluster.topics[topic].topic_id)}
    cut = Cut({TopicPartition(topic, each): 5 for each in partitions}, ids, "read_committed", 0)
    if CUTS_TOPIC not in cluster.topics:
        cluster.create(CUTS_TOPIC)
    log = cluster.topics[CUTS_TOPIC].partitions[0]
    log.log += bytes(build_batch([(0, name.encode(), cut.to_json(), [])], base_offset=log.end))
    log.end += 1


def reader(cluster: FakeCluster, **offsets: str) -> OffsetReader:
    given = {"kafka.bootstrap.servers": "h:9092", "subscribe": "t", **offsets}
    return OffsetReader(parse_batch_options(given, 1_000_000), connect=cluster.connect, sleep=lambda seconds: None)


def start(cluster: FakeCluster, text: str, **more: str) -> dict[tuple[str, int], int]:
    found = reader(cluster, startingOffsets=text, **more)
    return found.start(found.partitions())


def test_a_group_and_the_partitions_that_it_has_not_read(cluster):
    assert start(cluster, "group:shop") == {T0: 7, T1: 3}


def test_an_end_by_name_is_the_same_position(cluster):
    store(cluster, "cut", 0)
    for text in ("group:shop", "cut:cut"):
        found = reader(cluster, endingOffsets=text)
        assert found.end(found.earliest(found.partitions())) == start(cluster, text)


def test_committed_readers_wait_for_offsets_of_open_transactions(cluster):
    seen = []
    answer = cluster.answer_OffsetFetch
    cluster.answer_OffsetFetch = lambda request, node: seen.append(request.require_stable) or answer(request, node)  # type: ignore
    start(cluster, "group:shop")
    start(cluster, "group:shop", **{"kafka.isolation.level": "read_uncommitted"})
    assert seen == [True, False]


def test_a_group_without_offsets_is_an_error_with_the_nearest_name(cluster):
    with pytest.raises(
        ValueError, match=r"^group shp has no offsets in the topics of this query; did you mean shop\?$"
    ):
        start(cluster, "group:shp")
    cluster.commits["other"] = {("u", 0): 1}
    with pytest.raises(ValueError, match=r"group other has no offsets in the topics of this query$"):
        start(cluster, "group:other")


def test_a_cut_and_a_partition_that_is_newer(cluster):
    store(cluster, "release", 0)
    assert start(cluster, "cut:release") == {T0: 5, T1: 3}
    store(cluster, "release", 0, 1)
    assert start(cluster, "cut:release") == {T0: 5, T1: 5}


def test_a_cut_that_does_not_exist_is_an_error_with_the_nearest_name(cluster):
    with pytest.raises(ValueError, match=r"cut release does not exist; `barnabas cut list`"):
        start(cluster, "cut:release")
    store(cluster, "releases", 0)
    with pytest.raises(ValueError, match=r"cut release does not exist; did you mean releases\?"):
        start(cluster, "cut:release")


def test_a_cut_without_the_topic_is_an_error(cluster):
    cluster.create("u")
    store(cluster, "release", 0, topic="u")
    with pytest.raises(ValueError, match="cut release has no offsets of topic t"):
        start(cluster, "cut:release")


def test_a_topic_that_was_created_again_is_an_error(cluster):
    store(cluster, "release", 0, 1)
    cluster.create("t", partitions=2, incarnation=2)
    with pytest.raises(ValueError, match="topic t was deleted and created again after cut release"):
        start(cluster, "cut:release")


def test_an_end_that_the_log_does_not_reach_is_data_loss(cluster, monkeypatch):
    """A log that lost its end after the cut was taken: the batch cannot have what was asked for."""
    store(cluster, "release", 0, 1)
    cluster.topics["t"].partitions[1].end = 4
    given = {"kafka.bootstrap.servers": "h:9092", "subscribe": "t", "endingOffsets": "cut:release"}
    options = parse_batch_options(given, 1_000_000)
    monkeypatch.setattr(
        "barnabas.spark.source.batch.OffsetReader", lambda options: OffsetReader(options, cluster.connect)
    )
    with pytest.raises(Exception, match=r"Could not read records in offset \[4, 5\) for topic partition t-1"):
        BatchReader(options).partitions()
