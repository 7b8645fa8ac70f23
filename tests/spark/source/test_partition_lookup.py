"""A task asks about its one partition, once, and closes its connection."""

from __future__ import annotations

import pytest

from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.spark.source.offset_reader import Leader, OffsetReader
from barnabas.spark.source.options import parse_batch_options
from barnabas.spark.source.partition_lookup import LogBounds, PartitionLookup
from tests.spark.fake_cluster import PORT, FakeCluster


@pytest.fixture
def cluster() -> FakeCluster:
    fake = FakeCluster(brokers=2)
    partition = fake.create("t", partitions=2).partitions[1]
    partition.append(*[b"x"] * 20)
    partition.leader, partition.leader_epoch, partition.start, partition.stable_end = 1, 7, 4, 9
    return fake


def lookup(cluster: FakeCluster, pauses_s: list[float] | None = None, **more: str) -> PartitionLookup:
    given = {"kafka.bootstrap.servers": "h:9092", "subscribe": "t,gone", **more}

    def offset_reader(options):
        pauses = [] if pauses_s is None else pauses_s
        return OffsetReader(options, connect=cluster.connect, clock=lambda: sum(pauses), sleep=pauses.append)

    return PartitionLookup(parse_batch_options(given, 0), "t", 1, offset_reader)


def test_the_leader_and_its_epoch(cluster):
    assert lookup(cluster).leader() == Leader(cluster.topics["t"].topic_id, "h", PORT + 1, 7)


def test_a_log_ends_at_its_high_watermark_whatever_the_query_reads(cluster):
    found = lookup(cluster, **{"kafka.isolation.level": "read_committed"}).bounds()
    assert found == LogBounds(Leader(cluster.topics["t"].topic_id, "h", PORT + 1, 7), 4, 20)


def test_every_connection_is_closed(cluster):
    lookup(cluster).bounds()
    assert cluster.opened
    assert all(connection.closed for connection in cluster.opened)


def test_the_task_and_not_the_lookup_decides_how_long_to_ask(cluster):
    pauses_s: list[float] = []
    cluster.down = {0, 1}
    with pytest.raises(KafkaError, match="cannot reach"):
        lookup(cluster, pauses_s).leader()
    cluster.down = set()
    del cluster.topics["t"]
    with pytest.raises(KafkaError) as caught:
        lookup(cluster, pauses_s).leader()
    assert caught.value.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert pauses_s == []
