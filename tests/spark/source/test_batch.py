"""A batch is planned once, into tasks that know where to go."""

from __future__ import annotations

import json
import pickle

import pytest

import barnabas
from barnabas.spark.source import batch as source
from barnabas.spark.source import batch_range
from barnabas.spark.source.batch import BatchReader, RangePartition
from barnabas.spark.source.data_loss import DataLoss, LossReports
from barnabas.spark.source.offset_reader import OffsetReader
from barnabas.spark.source.options import parse_batch_options
from tests.spark.fake_cluster import PORT, FakeCluster
from tests.spark.session import Topics
from tests.spark.sink.sink_run import Query, random_split


@pytest.fixture
def cluster(monkeypatch) -> FakeCluster:
    fake = FakeCluster(brokers=2)
    partitions = fake.create("a", partitions=3).partitions
    partitions[0].append(*[b"x"] * 10, timestamp=1_000)
    partitions[1].append(*[b"x"] * 30, timestamp=2_000)
    partitions[1].leader = 1
    pauses_s: list[float] = []
    seams = {"connect": fake.connect, "clock": lambda: sum(pauses_s), "sleep": pauses_s.append}
    fake.clock = seams["clock"]
    monkeypatch.setattr(source, "OffsetReader", lambda options: OffsetReader(options, **seams))
    monkeypatch.setattr(batch_range, "LossReports", lambda options: LossReports(options, connect=fake.connect))
    return fake


def plan(**more: str) -> list[tuple[int, int, int, int]]:
    options = parse_batch_options({"kafka.bootstrap.servers": "h:9092", "subscribe": "a", **more}, 0)
    found = BatchReader(options).partitions()
    assert all(isinstance(task, RangePartition) for task in found)
    return [(t.wanted.partition, t.wanted.start, t.wanted.end, t.leader.port - PORT) for t in found]


def test_everything_by_default(cluster):
    assert plan() == [(0, 0, 10, 0), (1, 0, 30, 1)]


def test_between_offsets(cluster):
    assert plan(startingOffsets='{"a":{"0":3,"1":-2,"2":-2}}', endingOffsets='{"a":{"0":7,"1":-1,"2":-1}}') == [
        (0, 3, 7, 0),
        (1, 0, 30, 1),
    ]


def test_between_moments(cluster):
    assert plan(startingTimestamp="1500", startingOffsetsByTimestampStrategy="latest") == [(1, 0, 30, 1)]
    assert plan(endingTimestamp="1500") == [(0, 0, 10, 0)]


def test_a_batch_without_offsets_is_nothing(cluster):
    assert plan(startingOffsets='{"a":{"0":9,"1":9,"2":0}}', endingOffsets='{"a":{"0":9,"1":9,"2":0}}') == []


def test_a_start_beyond_the_end_is_an_error(cluster):
    with pytest.raises(ValueError, match="start offset 9 is greater than the end offset 3 for topic a partition 0"):
        plan(startingOffsets='{"a":{"0":9,"1":9,"2":0}}', endingOffsets='{"a":{"0":3,"1":9,"2":0}}')
    with pytest.raises(
        ValueError, match="start offset 99 is greater than the resolved end offset 10 for topic a partition 0"
    ):
        plan(startingOffsets='{"a":{"0":99,"1":-2,"2":-2}}', failOnDataLoss="false")
    with pytest.raises(
        ValueError, match="start offset 30 is greater than the resolved end offset 0 for topic a partition 1"
    ):
        plan(startingOffsets='{"a":{"0":0,"1":30,"2":0}}', endingTimestamp="1")


def test_an_end_beyond_the_log_is_data_loss(cluster):
    beyond = {"endingOffsets": '{"a":{"0":10,"1":31,"2":-1}}'}
    with pytest.raises(DataLoss, match=r"Could not read records in offset \[30, 31\) for topic partition a-1"):
        plan(**beyond)
    assert plan(failOnDataLoss="false", **beyond) == [(0, 0, 10, 0), (1, 0, 30, 1)]


@pytest.mark.parametrize("fail", ["true", "false"])
def test_a_log_whose_end_lags_is_waited_for(cluster, fail):
    partition = cluster.topics["a"].partitions[1]
    partition.end = 20

    def before(name: str) -> None:
        if cluster.clock() > 2:
            partition.end = 30

    cluster.before = before
    ends = '{"a":{"0":10,"1":30,"2":-1}}'
    assert plan(endingOffsets=ends, failOnDataLoss=fail) == [(0, 0, 10, 0), (1, 0, 30, 1)]


def test_what_a_batch_skips_is_recorded(cluster):
    cluster.create("losses")
    plan(failOnDataLoss="false", lossesTopic="losses", endingOffsets='{"a":{"0":10,"1":31,"2":-1}}')
    ((topic, _, (value,)),) = cluster.produced
    loss = json.loads(value)
    assert (topic, loss["topic"], loss["partition"], loss["from"], loss["to"]) == ("losses", "a", 1, 30, 31)


def test_an_end_beyond_an_open_transaction_is_waited_for_by_the_task(cluster):
    cluster.topics["a"].partitions[1].stable_end = 7
    assert plan(endingOffsets='{"a":{"0":10,"1":30,"2":-1}}') == [(0, 0, 10, 0), (1, 0, 30, 1)]


def test_a_batch_ends_before_an_open_transaction(cluster):
    cluster.topics["a"].partitions[1].stable_end = 7
    assert plan() == [(0, 0, 10, 0), (1, 0, 7, 1)]
    assert plan(**{"kafka.isolation.level": "read_uncommitted"}) == [(0, 0, 10, 0), (1, 0, 30, 1)]


@pytest.mark.parametrize("ending", [{}, {"endingOffsets": '{"a":{"0":-1,"1":-1,"2":-1}}'}, {"endingTimestamp": "9000"}])
def test_a_start_beyond_an_open_transaction_has_nothing_to_read_yet(cluster, ending):
    cluster.topics["a"].partitions[1].stable_end = 7
    assert plan(startingOffsets='{"a":{"0":0,"1":20,"2":0}}', **ending) == [(0, 0, 10, 0)]


def test_rows_that_the_sink_took_back_are_read_only_on_request():
    """Both with their defaults: an attempt of the sink whose tasks ended and that was not committed, then the batches."""
    with barnabas.Broker() as broker:
        topic = Topics(broker.bootstrap_servers).create()
        query = Query(broker.bootstrap_servers, topic, [["a", "b"], ["c"]], random_split(1), "q")
        query.begin()
        query.run_tasks(query.batch(0))
        query.run()
        assert values(broker.bootstrap_servers, topic) == ["a", "b", "c"]
        uncommitted = {"kafka.isolation.level": "read_uncommitted"}
        assert values(broker.bootstrap_servers, topic, **uncommitted) == ["a", "a", "b", "b", "c"]


def values(servers: str, topic: str, **options: str) -> list[str]:
    """Return the values that a batch reads, sorted."""
    given = {"kafka.bootstrap.servers": servers, "subscribe": topic, **options}
    reader = BatchReader(parse_batch_options(given, 0))
    rows = (rows for task in reader.partitions() for rows in reader.read(task))
    return sorted(value.decode() for each in rows for value in each["value"].to_pylist())


def test_chosen_partitions(cluster):
    options = parse_batch_options({"kafka.bootstrap.servers": "h:9092", "assign": '{"a":[1]}'}, 0)
    assert [t.wanted.partition for t in BatchReader(options).partitions()] == [1]


def test_cut_into_tasks(cluster):
    assert plan(minPartitions="4") == [(0, 0, 10, 0), (1, 0, 10, 1), (1, 10, 20, 1), (1, 20, 30, 1)]
    assert len(plan(maxRecordsPerPartition="5")) == 8


def test_tasks_and_readers_can_be_sent_to_executors(cluster):
    options = parse_batch_options({"kafka.bootstrap.servers": "h:9092", "subscribe": "a"}, 0)
    reader = BatchReader(options)
    copies = pickle.loads(pickle.dumps((reader, reader.partitions())))
    assert [repr(task) for task in copies[1]] == [repr(task) for task in reader.partitions()]


def test_a_batch_of_nothing_reads_nothing(cluster):
    from pyspark.sql.datasource import InputPartition

    options = parse_batch_options({"kafka.bootstrap.servers": "h:9092", "subscribe": "a"}, 0)
    assert list(BatchReader(options).read(InputPartition(None))) == []
