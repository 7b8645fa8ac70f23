"""A task reads exactly its range, whatever happens to the leader, the log and the topic meanwhile."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.client.errors import ConnectionLost
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.spark.data_loss import DataLoss
from barnabas.spark.fetcher import NoProgress, RangeFetcher
from barnabas.spark.offset_reader import Leader, OffsetReader
from barnabas.spark.options import SourceOptions, parse_batch_options
from barnabas.spark.ranges import OffsetRange
from tests.spark.fake_cluster import PORT, FakeCluster


def options(**more: str) -> SourceOptions:
    return parse_batch_options({"kafka.bootstrap.servers": "h:9092", "subscribe": "t", **more}, 0)


class Task:
    """A range of topic t, partition 0, read from a cluster on a clock that only sleeping moves."""

    def __init__(self, cluster: FakeCluster, start: int, end: int, **more: str) -> None:
        self.now = 0.0
        topic_id = cluster.topics["t"].topic_id
        self.fetcher = RangeFetcher(
            options(**more),
            OffsetRange("t", 0, start, end),
            Leader(topic_id, "h", PORT + cluster.topics["t"].partitions[0].leader),
            connect=cluster.connect,
            offset_reader=lambda o: OffsetReader(o, connect=cluster.connect, sleep=self.sleep),
            clock=lambda: self.now,
            sleep=self.sleep,
        )

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def offsets(self) -> list[int]:
        return [offset for rows in self.fetcher for offset in rows["offset"].to_pylist()]


@pytest.fixture
def cluster() -> FakeCluster:
    fake = FakeCluster(brokers=2)
    partition = fake.create("t").partitions[0]
    for i in range(10):
        partition.append(b"a%d" % i, b"b%d" % i)
    return fake


def test_exactly_the_range(cluster):
    assert Task(cluster, 3, 14).offsets() == list(range(3, 14))


@pytest.mark.parametrize("version", [4, 11, 12, 13, 17])
def test_topics_by_name_and_by_id(cluster, version):
    cluster.fetch_version = version
    assert Task(cluster, 0, 20).offsets() == list(range(20))


def test_the_next_fetch_is_sent_before_the_last_is_decoded(cluster):
    cluster.topics["t"].partitions[0].batches_per_fetch = 1
    task = Task(cluster, 0, 8)
    rows = iter(task.fetcher)
    next(rows)
    assert task.fetcher._connection is not None
    assert task.fetcher._connection.unanswered == 1
    list(rows)
    assert cluster.requests.count("Fetch") == 4


def test_nothing_is_asked_for_beyond_the_range(cluster):
    Task(cluster, 0, 5).offsets()
    assert cluster.requests == ["Fetch"]


def test_control_batches_and_aborted_transactions(cluster):
    partition = cluster.topics["t"].partitions[0]
    partition.append(b"x", b"y", producer_id=9, producer_epoch=0, base_sequence=0, transactional=True)
    partition.append(b"z")
    partition.aborted = [(9, 20)]
    committed = {"kafka.isolation.level": "read_committed"}
    assert Task(cluster, 18, 23, **committed).offsets() == [18, 19, 22]
    assert Task(cluster, 18, 23).offsets() == [18, 19, 20, 21, 22]


def test_follows_the_leader(cluster):
    partition = cluster.topics["t"].partitions[0]
    partition.batches_per_fetch = 1
    task = Task(cluster, 0, 20)
    rows = iter(task.fetcher)
    found = next(rows)["offset"].to_pylist()
    partition.leader = 1
    assert found + [o for r in rows for o in r["offset"].to_pylist()] == list(range(20))


def test_goes_on_where_it_was_when_the_connection_breaks(cluster):
    partition = cluster.topics["t"].partitions[0]
    partition.batches_per_fetch = 2
    breaks = iter([False, True, False, True, True])

    def before(name: str) -> None:
        if name == "Fetch" and next(breaks, False):
            raise ConnectionLost("broken")

    cluster.before = before
    assert Task(cluster, 1, 19).offsets() == list(range(1, 19))


def test_a_broker_that_stays_away_ends_the_task_in_time(cluster):
    cluster.down = {0, 1}
    task = Task(cluster, 0, 5, **{"kafkaConsumer.pollTimeoutMs": "5000"})
    with pytest.raises(NoProgress, match=r"Cannot read offset 0 of t-0 .* for 5000 ms"):
        task.offsets()
    assert 5 <= task.now < 30


def test_patience_is_renewed_by_progress(cluster):
    """Slow is not stuck: 18 failures of a second each, but never five seconds without records."""
    cluster.topics["t"].partitions[0].batches_per_fetch = 1
    asked = iter(range(1000))

    def before(name: str) -> None:
        if name == "Fetch" and next(asked) % 3:
            task.now += 1
            raise ConnectionLost("again")

    cluster.before = before
    task = Task(cluster, 0, 20, **{"kafkaConsumer.pollTimeoutMs": "5000"})
    assert task.offsets() == list(range(20))


def test_offsets_that_are_gone_fail_the_query(cluster):
    cluster.topics["t"].partitions[0].start = 6
    with pytest.raises(DataLoss, match=r"Offsets 0 to 5 of t-0 are gone: t-0 begins at offset 6 now.*failOnDataLoss"):
        Task(cluster, 0, 10).offsets()


def test_or_are_passed_over(cluster, caplog):
    cluster.topics["t"].partitions[0].start = 6
    assert Task(cluster, 0, 10, failOnDataLoss="false").offsets() == [6, 7, 8, 9]
    assert "Offsets 0 to 5 of t-0 are gone" in caplog.text


def test_a_range_that_is_gone_whole(cluster):
    cluster.topics["t"].partitions[0].start = 15
    assert Task(cluster, 0, 10, failOnDataLoss="false").offsets() == []


def test_a_log_that_was_cut(cluster):
    partition = cluster.topics["t"].partitions[0]
    partition.end = 4
    with pytest.raises(DataLoss, match="does not reach offset 12 any more"):
        Task(cluster, 12, 20).offsets()
    assert Task(cluster, 12, 20, failOnDataLoss="false").offsets() == []


def test_a_log_that_was_cut_to_exactly_the_offset(cluster):
    partition = cluster.topics["t"].partitions[0]
    partition.log, partition.end = b"", 12
    with pytest.raises(DataLoss, match="t-0 ends at offset 12 now"):
        Task(cluster, 12, 20).offsets()


def test_a_deleted_topic(cluster):
    task, forgiving = Task(cluster, 0, 5), Task(cluster, 0, 5, failOnDataLoss="false")
    del cluster.topics["t"]
    with pytest.raises(DataLoss, match="the topic was deleted"):
        task.offsets()
    assert forgiving.offsets() == []


def test_another_topic_of_the_same_name_is_not_read(cluster):
    task, forgiving = Task(cluster, 0, 5), Task(cluster, 0, 5, failOnDataLoss="false")
    cluster.create("t", incarnation=2).partitions[0].append(*[b"new"] * 9)
    with pytest.raises(DataLoss, match="another one has its name"):
        task.offsets()
    assert forgiving.offsets() == []


def test_an_error_for_good_is_raised(cluster):
    def before(name: str) -> None:
        if name == "Fetch":
            raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "not for you")

    cluster.before = before
    with pytest.raises(KafkaError, match="not for you"):
        Task(cluster, 0, 5).offsets()


def test_an_error_of_the_server_is_asked_about_again(cluster):
    partition = cluster.topics["t"].partitions[0]
    answer = cluster._fetch_partition
    fails = iter([True, True])

    def failing(p: Any, offset: int, request: Any, node: int, data: Any) -> None:
        if next(fails, False):
            data.error_code = ErrorCode.UNKNOWN_SERVER_ERROR
        else:
            answer(p, offset, request, node, data)

    cluster._fetch_partition = failing  # type: ignore[method-assign]
    assert partition.end == 20
    assert Task(cluster, 0, 5).offsets() == [0, 1, 2, 3, 4]


def test_the_connection_is_closed_when_the_reader_stops_early(cluster):
    cluster.topics["t"].partitions[0].batches_per_fetch = 1
    opened: list[Any] = []
    connect = cluster.connect
    cluster.connect = lambda *a, **k: opened.append(connect(*a, **k)) or opened[-1]  # type: ignore[method-assign]
    rows = iter(Task(cluster, 0, 20).fetcher)
    next(rows)
    rows.close()
    assert [c.closed for c in opened] == [True]
