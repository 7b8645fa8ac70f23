"""A task reads exactly its range, whatever happens in the meantime to the leader, the log and the topic."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import pytest

from barnabas.client.errors import ConnectionLost
from barnabas.protocol import messages
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.spark.data_loss import DataLoss
from barnabas.spark.fetcher import NoProgress, RangeFetcher
from barnabas.spark.offset_reader import Leader, OffsetReader
from barnabas.spark.options import SourceOptions, parse_batch_options
from barnabas.spark.ranges import OffsetRange
from tests.spark.fake_cluster import PORT, FakeCluster, FakePartition

FetchPartition: TypeAlias = Callable[[FakePartition, int, Any, int, Any], None]


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
            offset_reader=lambda o: OffsetReader(o, connect=cluster.connect, clock=lambda: self.now, sleep=self.sleep),
            clock=lambda: self.now,
            sleep=self.sleep,
        )

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def sleep_a_second(self, seconds: float) -> None:
        """Round every pause up to a second, so that sums of pauses are exact."""
        assert 0 < seconds <= 1
        self.now += 1

    def offsets(self) -> list[int]:
        return [offset for rows in self.fetcher for offset in rows["offset"].to_pylist()]


@pytest.fixture
def cluster() -> FakeCluster:
    fake = FakeCluster(brokers=2)
    partition = fake.create("t").partitions[0]
    for i in range(10):
        partition.append(b"a%d" % i, b"b%d" % i)
    return fake


def test_a_task_reads_exactly_its_range(cluster):
    assert Task(cluster, 3, 14).offsets() == list(range(3, 14))


def test_a_range_is_read_over_one_connection(cluster):
    cluster.topics["t"].partitions[0].batches_per_fetch = 1
    assert Task(cluster, 0, 20).offsets() == list(range(20))
    assert len(cluster.opened) == 1
    assert len(cluster.fetches) == 10


def test_the_fetch_has_the_options_values(cluster):
    limits = {"kafka.max.partition.fetch.bytes": "4096", "kafka.fetch.max.wait.ms": "70"}
    Task(cluster, 3, 5, **limits, **{"kafka.isolation.level": "read_committed"}).offsets()
    (fetch,) = cluster.fetches
    ((partition,),) = [topic.partitions for topic in fetch.topics]
    assert (fetch.max_wait_ms, fetch.min_bytes, fetch.max_bytes, fetch.isolation_level) == (70, 1, 4096, 1)
    assert (partition.partition, partition.fetch_offset, partition.partition_max_bytes) == (0, 3, 4096)


def test_a_topic_without_an_id_is_fetched_by_its_name(cluster):
    task = Task(cluster, 0, 5)
    task.fetcher._leader = Leader(bytes(16), "h", PORT)
    assert task.offsets() == [0, 1, 2, 3, 4]
    assert [topic.topic for topic in cluster.fetches[0].topics] == ["t"]


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


def test_nothing_is_fetched_beyond_the_range(cluster):
    Task(cluster, 0, 20).offsets()
    assert len(cluster.fetches) == 1


def test_control_batches_and_aborted_transactions(cluster):
    partition = cluster.topics["t"].partitions[0]
    partition.append(b"x", b"y", producer_id=9, producer_epoch=0, base_sequence=0, transactional=True)
    partition.append(b"z")
    partition.aborted = [(9, 20)]
    committed = {"kafka.isolation.level": "read_committed"}
    assert Task(cluster, 18, 23, **committed).offsets() == [18, 19, 22]
    assert Task(cluster, 18, 23).offsets() == [18, 19, 20, 21, 22]


def test_a_task_follows_the_leader(cluster):
    partition = cluster.topics["t"].partitions[0]
    partition.batches_per_fetch = 1
    task = Task(cluster, 0, 20)
    rows = iter(task.fetcher)
    found = next(rows)["offset"].to_pylist()
    partition.leader = 1
    assert found + [o for r in rows for o in r["offset"].to_pylist()] == list(range(20))


def test_a_task_continues_at_its_offset_after_a_broken_connection(cluster):
    partition = cluster.topics["t"].partitions[0]
    partition.batches_per_fetch = 2
    breaks = iter([False, True, False, True, True])

    def before(name: str) -> None:
        if name == "Fetch" and next(breaks, False):
            raise ConnectionLost("broken")

    cluster.before = before
    assert Task(cluster, 1, 19).offsets() == list(range(1, 19))


def test_a_broker_that_stays_away_ends_the_task_at_the_deadline(cluster):
    cluster.down = {0, 1}
    task = Task(cluster, 0, 5, **{"kafkaConsumer.pollTimeoutMs": "5000"})
    with pytest.raises(NoProgress, match=r"Cannot read offset 0 of t-0 .* for 5000 ms"):
        task.offsets()
    assert 5 <= task.now < 30


@pytest.mark.parametrize(("timeout_ms", "last_attempt_s"), [("5000", 5), ("5001", 6)])
def test_the_deadline_is_exactly_the_poll_timeout(cluster, timeout_ms, last_attempt_s):
    """There is a second between attempts; the first attempt at or after the deadline is the last one."""
    cluster.down = {0, 1}
    task = Task(cluster, 0, 5, **{"kafkaConsumer.pollTimeoutMs": timeout_ms, "fetchOffset.numRetries": "0"})
    task.fetcher._sleep = task.sleep_a_second
    with pytest.raises(NoProgress):
        task.offsets()
    assert task.now == last_attempt_s


def test_the_deadline_counts_from_the_last_progress_not_from_the_start(cluster):
    cluster.topics["t"].partitions[0].batches_per_fetch = 1
    task = Task(cluster, 0, 20, **{"kafkaConsumer.pollTimeoutMs": "5000", "fetchOffset.numRetries": "0"})
    task.fetcher._sleep = task.sleep_a_second
    rows = iter(task.fetcher)
    next(rows)
    task.now = 4
    next(rows)
    cluster.down = {0, 1}
    with pytest.raises(NoProgress, match="Cannot read offset 4 of t-0"):
        list(rows)
    assert task.now == 9


def test_a_broker_that_sends_no_records_is_given_up_at_the_deadline(cluster):
    """The log ends beyond the offset, so the records exist and nothing is lost; the broker never sends them."""
    cluster._fetch_partition = no_records(log_end=20)  # type: ignore[method-assign]
    task = Task(cluster, 0, 5, failOnDataLoss="false", **{"kafkaConsumer.pollTimeoutMs": "5000"})

    def wait(name: str) -> None:
        task.now += 1

    cluster.before = wait
    with pytest.raises(NoProgress, match="no records arrived for 5000 ms"):
        task.offsets()
    assert task.now == 5


def test_a_slow_broker_loses_nothing(cluster):
    answer, empty = cluster._fetch_partition, no_records(log_end=20)
    answers = iter([empty, empty])
    cluster._fetch_partition = lambda *a: next(answers, answer)(*a)  # type: ignore[method-assign]
    assert Task(cluster, 0, 5).offsets() == [0, 1, 2, 3, 4]


def test_an_unknown_log_end_is_not_data_loss(cluster):
    answer, empty = cluster._fetch_partition, no_records(log_end=-1)
    answers = iter([empty])
    cluster._fetch_partition = lambda *a: next(answers, answer)(*a)  # type: ignore[method-assign]
    assert Task(cluster, 0, 5).offsets() == [0, 1, 2, 3, 4]


def test_progress_extends_the_deadline(cluster):
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
    with pytest.raises(DataLoss, match=r"Offsets 0 to 5 of t-0 are gone: t-0 now begins at offset 6.*failOnDataLoss"):
        Task(cluster, 0, 10).offsets()


def test_offsets_that_are_gone_are_skipped_without_fail_on_data_loss(cluster, caplog):
    cluster.topics["t"].partitions[0].start = 6
    assert Task(cluster, 0, 10, failOnDataLoss="false").offsets() == [6, 7, 8, 9]
    assert "Offsets 0 to 5 of t-0 are gone" in caplog.text


def test_a_range_of_which_everything_is_gone_is_empty(cluster):
    cluster.topics["t"].partitions[0].start = 15
    assert Task(cluster, 0, 10, failOnDataLoss="false").offsets() == []


def test_a_log_that_was_cut_is_data_loss(cluster):
    partition = cluster.topics["t"].partitions[0]
    partition.end = 4
    with pytest.raises(DataLoss, match="no longer reaches offset 12"):
        Task(cluster, 12, 20).offsets()
    assert Task(cluster, 12, 20, failOnDataLoss="false").offsets() == []


def test_a_log_that_was_emptied_is_data_loss(cluster):
    partition = cluster.topics["t"].partitions[0]
    partition.log, partition.end = b"", 0
    with pytest.raises(DataLoss, match="t-0 now ends at offset 0"):
        Task(cluster, 0, 5).offsets()


def test_committed_records_end_at_the_last_stable_offset(cluster):
    """The high watermark is beyond the offset, but no committed record is: the log was cut in between."""
    cluster._fetch_partition = no_records(log_end=20, stable_end=12)  # type: ignore[method-assign]
    with pytest.raises(DataLoss, match="t-0 now ends at offset 12"):
        Task(cluster, 12, 20, **{"kafka.isolation.level": "read_committed"}).offsets()


def test_an_offset_out_of_range_at_the_beginning_of_the_log_ends_the_range(cluster):
    """The log begins at the offset, so there is nothing to skip to: going on would ask for the same offset for ever."""
    partition = cluster.topics["t"].partitions[0]
    partition.start = 12
    cluster._fetch_partition = failing(ErrorCode.OFFSET_OUT_OF_RANGE)  # type: ignore[method-assign]
    with pytest.raises(DataLoss, match="no longer reaches offset 12"):
        Task(cluster, 12, 20).offsets()
    assert Task(cluster, 12, 20, failOnDataLoss="false").offsets() == []


def test_a_log_that_was_cut_to_exactly_the_offset_is_data_loss(cluster):
    partition = cluster.topics["t"].partitions[0]
    partition.log, partition.end = b"", 12
    with pytest.raises(DataLoss, match="t-0 now ends at offset 12"):
        Task(cluster, 12, 20).offsets()


def test_a_deleted_topic_is_data_loss(cluster):
    task, forgiving = Task(cluster, 0, 5), Task(cluster, 0, 5, failOnDataLoss="false")
    del cluster.topics["t"]
    with pytest.raises(DataLoss, match="the topic was deleted"):
        task.offsets()
    assert forgiving.offsets() == []


def test_another_topic_of_the_same_name_is_not_read(cluster):
    task, forgiving = Task(cluster, 0, 5), Task(cluster, 0, 5, failOnDataLoss="false")
    cluster.create("t", incarnation=2).partitions[0].append(*[b"new"] * 9)
    with pytest.raises(DataLoss, match="another topic has its name"):
        task.offsets()
    assert forgiving.offsets() == []


def test_a_topic_created_again_while_the_connection_is_broken_is_not_read(cluster):
    task = Task(cluster, 0, 5)
    breaks = iter([True])

    def before(name: str) -> None:
        if name == "Fetch" and next(breaks, False):
            cluster.create("t", incarnation=2).partitions[0].append(*[b"new"] * 9)
            raise ConnectionLost("broken")

    cluster.before = before
    with pytest.raises(DataLoss, match="another topic has its name"):
        task.offsets()


@pytest.mark.parametrize(
    "code", [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.INCONSISTENT_TOPIC_ID]
)
def test_a_broker_that_has_not_loaded_the_topic_yet_is_retried(cluster, code):
    answer, not_yet = cluster._fetch_partition, failing(code)
    answers = iter([not_yet, not_yet])
    cluster._fetch_partition = lambda *a: next(answers, answer)(*a)  # type: ignore[method-assign]
    task = Task(cluster, 0, 5)
    assert task.offsets() == [0, 1, 2, 3, 4]
    assert task.now == pytest.approx(0.2), "a pause after each failure"
    assert cluster.requests.count("Metadata") == 2, "the leader it has just found is not looked up again"


def test_a_retriable_metadata_error_after_an_unknown_topic_is_retried(cluster):
    answer, unknown = cluster._fetch_partition, failing(ErrorCode.UNKNOWN_TOPIC_ID)
    answers = iter([unknown])
    cluster._fetch_partition = lambda *a: next(answers, answer)(*a)  # type: ignore[method-assign]
    failures = iter([KafkaError(ErrorCode.NETWORK_EXCEPTION, "moving")])

    def before(name: str) -> None:
        if name == "Metadata" and (error := next(failures, None)):
            raise error

    cluster.before = before
    assert Task(cluster, 0, 5, **{"fetchOffset.numRetries": "0"}).offsets() == [0, 1, 2, 3, 4]


def test_a_metadata_error_that_is_not_retriable_ends_the_task_after_an_unknown_topic(cluster):
    cluster._fetch_partition = failing(ErrorCode.UNKNOWN_TOPIC_ID)  # type: ignore[method-assign]
    refuse_metadata(cluster)
    with pytest.raises(KafkaError, match="not for you"):
        Task(cluster, 0, 5).offsets()


def test_a_metadata_error_that_is_not_retriable_ends_the_task_after_a_moved_leader(cluster):
    cluster.down = {1}
    cluster._fetch_partition = failing(ErrorCode.NOT_LEADER_OR_FOLLOWER)  # type: ignore[method-assign]
    refuse_metadata(cluster)
    with pytest.raises(KafkaError, match="not for you"):
        Task(cluster, 0, 5).offsets()


def test_an_error_that_is_not_retriable_is_raised(cluster):
    def before(name: str) -> None:
        if name == "Fetch":
            raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "not for you")

    cluster.before = before
    with pytest.raises(KafkaError, match="not for you"):
        Task(cluster, 0, 5).offsets()


def test_an_error_code_that_is_not_retriable_is_raised_at_once(cluster):
    cluster._fetch_partition = failing(ErrorCode.TOPIC_AUTHORIZATION_FAILED)  # type: ignore[method-assign]
    task = Task(cluster, 0, 5)
    with pytest.raises(KafkaError, match="TOPIC_AUTHORIZATION_FAILED"):
        task.offsets()
    assert (len(cluster.fetches), task.now) == (1, 0)


def test_an_error_of_the_server_is_retried_after_a_pause(cluster):
    answer, broken = cluster._fetch_partition, failing(ErrorCode.UNKNOWN_SERVER_ERROR)
    answers = iter([broken, broken])
    cluster._fetch_partition = lambda *a: next(answers, answer)(*a)  # type: ignore[method-assign]
    task = Task(cluster, 0, 5)
    assert task.offsets() == [0, 1, 2, 3, 4]
    assert task.now == pytest.approx(0.2)


def test_an_error_of_the_whole_response_is_retried(cluster):
    answer = cluster._Fetch
    fails = iter([True])

    def fetch(request: Any, node: int) -> Any:
        if next(fails, False):
            return messages.FetchResponse(error_code=ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        return answer(request, node)

    cluster._Fetch = fetch  # type: ignore[method-assign]
    assert Task(cluster, 0, 5).offsets() == [0, 1, 2, 3, 4]


def test_a_fetch_that_cannot_be_sent_ahead_is_sent_again_over_a_new_connection(cluster):
    cluster.topics["t"].partitions[0].batches_per_fetch = 1
    breaks = iter([False, True])

    def before_send(name: str) -> None:
        if name == "Fetch" and next(breaks, False):
            raise ConnectionLost("broken")

    cluster.before_send = before_send
    task = Task(cluster, 0, 6)
    assert task.offsets() == [0, 1, 2, 3, 4, 5]
    assert [c.closed for c in cluster.opened] == [True, True]
    assert task.now == 0, "nothing failed that needs a pause"


def test_every_connection_is_closed_after_data_loss_and_after_a_leader_moved(cluster):
    partition = cluster.topics["t"].partitions[0]
    partition.start = 6
    task = Task(cluster, 0, 10, failOnDataLoss="false")
    partition.leader = 1
    assert task.offsets() == [6, 7, 8, 9]
    assert len(cluster.opened) >= 4
    assert all(c.closed for c in cluster.opened)


def test_the_connection_is_closed_when_the_reader_stops_early(cluster):
    cluster.topics["t"].partitions[0].batches_per_fetch = 1
    rows = iter(Task(cluster, 0, 20).fetcher)
    next(rows)
    rows.close()
    assert [c.closed for c in cluster.opened] == [True]


def failing(code: ErrorCode) -> FetchPartition:
    def answer(p: FakePartition, offset: int, request: Any, node: int, data: Any) -> None:
        data.error_code = code

    return answer


def no_records(log_end: int, stable_end: int | None = None) -> FetchPartition:
    def answer(p: FakePartition, offset: int, request: Any, node: int, data: Any) -> None:
        data.high_watermark = log_end
        data.last_stable_offset = log_end if stable_end is None else stable_end

    return answer


def refuse_metadata(cluster: FakeCluster) -> None:
    def before(name: str) -> None:
        if name == "Metadata":
            raise KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "not for you")

    cluster.before = before
