"""A task reads exactly its range, whatever happens in the meantime to the leader, the log and the topic."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, TypeAlias

import pytest

from barnabas.client.errors import ConnectionLost
from barnabas.protocol import messages
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.spark.source.data_loss import DataLoss
from barnabas.spark.source.fetcher import NoProgress, RangeFetcher
from barnabas.spark.source.offset_reader import Leader, OffsetReader
from barnabas.spark.source.options import SourceOptions, parse_batch_options
from barnabas.spark.source.ranges import OffsetRange
from tests.spark.fake_cluster import PORT, FakeCluster, FakePartition

FetchPartition: TypeAlias = Callable[[FakePartition, int, Any, int, Any], None]

HASTY = {"kafkaConsumer.pollTimeoutMs": "2000"}


def options(**more: str) -> SourceOptions:
    return parse_batch_options({"kafka.bootstrap.servers": "h:9092", "subscribe": "t", **more}, 0)


class Task:
    """A range of topic t, partition 0, read from a cluster on a clock that only sleeping moves."""

    def __init__(
        self,
        cluster: FakeCluster,
        start: int,
        end: int,
        *,
        leader: Leader | None = None,
        in_seconds: bool = False,
        **more: str,
    ) -> None:
        self.now = 0.0
        topic_id = cluster.topics["t"].topic_id
        self.fetcher = RangeFetcher(
            options(**more),
            OffsetRange("t", 0, start, end),
            leader or Leader(topic_id, "h", PORT + cluster.topics["t"].partitions[0].leader, epoch=0),
            connect=cluster.connect,
            offset_reader=lambda o: OffsetReader(o, connect=cluster.connect, clock=lambda: self.now, sleep=self.sleep),
            clock=lambda: self.now,
            sleep=self.sleep_a_second if in_seconds else self.sleep,
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
    task = Task(cluster, 0, 5, leader=Leader(bytes(16), "h", PORT))
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
    assert cluster.opened[-1].unanswered == 1
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
    uncommitted = {"kafka.isolation.level": "read_uncommitted"}
    assert Task(cluster, 18, 23).offsets() == [18, 19, 22]
    assert Task(cluster, 18, 23, **uncommitted).offsets() == [18, 19, 20, 21, 22]


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
    task = Task(
        cluster, 0, 5, **{"kafkaConsumer.pollTimeoutMs": timeout_ms, "fetchOffset.numRetries": "0"}, in_seconds=True
    )
    with pytest.raises(NoProgress):
        task.offsets()
    assert task.now == last_attempt_s


def test_the_deadline_counts_from_the_last_progress_not_from_the_start(cluster):
    cluster.topics["t"].partitions[0].batches_per_fetch = 1
    task = Task(
        cluster, 0, 20, **{"kafkaConsumer.pollTimeoutMs": "5000", "fetchOffset.numRetries": "0"}, in_seconds=True
    )
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
    cluster.fetch_partition = no_records(log_end=20)  # type: ignore[method-assign]
    task = Task(cluster, 0, 5, failOnDataLoss="false", **{"kafkaConsumer.pollTimeoutMs": "5000"})

    with pytest.raises(NoProgress, match="no records arrived for 5000 ms"):
        task.offsets()
    assert 5 <= task.now < 5.2


def test_a_slow_broker_loses_nothing(cluster):
    answer, empty = cluster.fetch_partition, no_records(log_end=20)
    answers = iter([empty, empty])
    cluster.fetch_partition = lambda *a: next(answers, answer)(*a)  # type: ignore[method-assign]
    assert Task(cluster, 0, 5).offsets() == [0, 1, 2, 3, 4]


def test_an_unknown_log_end_is_not_data_loss(cluster):
    answer, empty = cluster.fetch_partition, no_records(log_end=-1)
    answers = iter([empty])
    cluster.fetch_partition = lambda *a: next(answers, answer)(*a)  # type: ignore[method-assign]
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


def test_what_a_task_skips_is_recorded(cluster):
    cluster.create("losses")
    cluster.topics["t"].partitions[0].start = 6
    assert Task(cluster, 0, 10, failOnDataLoss="false", lossesTopic="losses").offsets() == [6, 7, 8, 9]
    ((topic, _, (value,)),) = cluster.produced
    loss = json.loads(value)
    assert (topic, loss["topic"], loss["partition"], loss["from"], loss["to"]) == ("losses", "t", 0, 0, 6)
    assert loss["reason"] == "t-0 now begins at offset 6"


def test_a_range_of_which_everything_is_gone_is_empty(cluster):
    cluster.topics["t"].partitions[0].start = 15
    assert Task(cluster, 0, 10, failOnDataLoss="false").offsets() == []


def test_a_log_that_was_cut_is_data_loss(cluster):
    partition = cluster.topics["t"].partitions[0]
    partition.end = 4
    with pytest.raises(DataLoss, match="no longer reaches offset 12"):
        Task(cluster, 12, 20).offsets()
    assert Task(cluster, 12, 20, failOnDataLoss="false").offsets() == []


@pytest.mark.parametrize("end", [0, 12])
def test_a_log_that_was_cut_to_the_offset_is_data_loss_when_the_patience_is_spent(cluster, end):
    partition = cluster.topics["t"].partitions[0]
    partition.log, partition.end = b"", end
    task = Task(cluster, end, 20, **HASTY)
    with pytest.raises(DataLoss, match=f"Offsets {end} to 19 of t-0 are gone: t-0 now ends at offset {end}"):
        task.offsets()
    assert task.now == pytest.approx(2)
    assert Task(cluster, end, 20, failOnDataLoss="false", **HASTY).offsets() == []


@pytest.mark.parametrize("fail", ["true", "false"])
def test_a_new_leader_whose_high_watermark_lags_is_waited_for(cluster, fail):
    """For a moment after an election the high watermark is lower than the old leader's was (KIP-207)."""
    lag(cluster, answers=15, high_watermark=10)
    assert Task(cluster, 0, 20, failOnDataLoss=fail).offsets() == list(range(20))
    lag(cluster, answers=15, high_watermark=4)
    assert Task(cluster, 0, 20, failOnDataLoss=fail).offsets() == list(range(20))


@pytest.mark.parametrize("fail", ["true", "false"])
def test_a_leader_that_changes_while_the_task_waits_proves_no_loss(cluster, fail):
    partition = cluster.topics["t"].partitions[0]
    partition.log, partition.end = b"", 12
    task = Task(cluster, 12, 20, failOnDataLoss=fail, **HASTY)

    def before(name: str) -> None:
        partition.leader_epoch = int(task.now)

    cluster.before = before
    with pytest.raises(NoProgress, match="Cannot read offset 12 of t-0"):
        task.offsets()


@pytest.mark.parametrize("fail", ["true", "false"])
def test_a_leader_that_cannot_say_where_its_log_ends_proves_no_loss(cluster, fail):
    partition = cluster.topics["t"].partitions[0]
    partition.log, partition.end = b"", 12

    def before(name: str) -> None:
        if name == "ListOffsets":
            raise KafkaError(ErrorCode.OFFSET_NOT_AVAILABLE, "not yet")

    cluster.before = before
    with pytest.raises(NoProgress, match=r"no records arrived \(.*not yet.*\) for 2000 ms"):
        Task(cluster, 12, 20, failOnDataLoss=fail, **HASTY, **{"kafka.request.timeout.ms": "10"}).offsets()


@pytest.mark.parametrize("fail", ["true", "false"])
def test_records_of_an_open_transaction_are_not_gone(cluster, fail):
    """The end of a batch may be beyond an open transaction: its records exist, and may be committed in a moment."""
    committed = {"failOnDataLoss": fail, **HASTY}
    cluster.fetch_partition = no_records(log_end=20, stable_end=12)  # type: ignore[method-assign]
    with pytest.raises(
        NoProgress, match=r"offset 12 of t-0 .* still open for 2000 ms .*; `barnabas txn doctor` says whose"
    ):
        Task(cluster, 12, 20, **committed).offsets()


@pytest.mark.parametrize("fail", ["true", "false"])
def test_a_leader_that_was_deposed_and_does_not_know_it_proves_no_loss(cluster, fail):
    """Its log is shorter, so the offset is out of its range. It rejects the epoch, which it does not know."""
    partition = cluster.topics["t"].partitions[0]
    partition.leader_epoch = 3
    leader = Leader(cluster.topics["t"].topic_id, "h", PORT, epoch=3)
    task = Task(cluster, 12, 20, leader=leader, failOnDataLoss=fail)
    partition.leader_epoch, partition.end = 2, 10

    def before(name: str) -> None:
        if task.now > 1:
            partition.leader_epoch, partition.end = 3, 20

    cluster.before = before
    assert task.offsets() == list(range(12, 20))


@pytest.mark.parametrize("fail", ["true", "false"])
def test_an_offset_that_is_in_the_log_is_never_skipped(cluster, fail):
    """A leader that contradicts itself proves nothing, and the task does not ask it for ever."""
    cluster.topics["t"].partitions[0].start = 12
    cluster.fetch_partition = failing(ErrorCode.OFFSET_OUT_OF_RANGE)  # type: ignore[method-assign]
    with pytest.raises(NoProgress, match=r"Cannot read offset 12 of t-0 .*OFFSET_OUT_OF_RANGE"):
        Task(cluster, 12, 20, failOnDataLoss=fail, **HASTY).offsets()


@pytest.mark.parametrize("fail", ["true", "false"])
def test_an_offset_out_of_range_whose_bounds_cannot_be_read_is_retried(cluster, fail):
    answer, gone = cluster.fetch_partition, failing(ErrorCode.OFFSET_OUT_OF_RANGE)
    answers = iter([gone])
    cluster.fetch_partition = lambda *a: next(answers, answer)(*a)  # type: ignore[method-assign]
    failures = iter([KafkaError(ErrorCode.NETWORK_EXCEPTION, "moving")])

    def before(name: str) -> None:
        if name == "Metadata" and (error := next(failures, None)):
            raise error

    cluster.before = before
    assert Task(cluster, 0, 5, failOnDataLoss=fail).offsets() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("fail", ["true", "false"])
def test_another_topic_of_the_query_may_be_gone(cluster, fail):
    """Its broker does not know t for a moment, and u was deleted: t is asked about, and u is not taken for it."""
    answer, not_yet = cluster.fetch_partition, failing(ErrorCode.UNKNOWN_TOPIC_ID)
    answers = iter([not_yet])
    cluster.fetch_partition = lambda *a: next(answers, answer)(*a)  # type: ignore[method-assign]
    asked: list[list[str]] = []
    metadata = cluster.answer_Metadata
    cluster.answer_Metadata = lambda request, node: (  # type: ignore[method-assign]
        asked.append([topic.name for topic in request.topics]) or metadata(request, node)
    )
    assert Task(cluster, 0, 20, subscribe="t,u", failOnDataLoss=fail).offsets() == list(range(20))
    assert asked == [["t"]]


@pytest.mark.parametrize("fail", ["true", "false"])
def test_metadata_that_is_stale_for_a_moment_proves_no_loss(cluster, fail):
    """A broker that has just started knows neither the topic nor, for a while, its new id."""
    topic = cluster.topics["t"]
    task = Task(cluster, 0, 20, leader=Leader(topic.topic_id, "h", PORT, epoch=0), failOnDataLoss=fail)

    def before(name: str) -> None:
        cluster.topics.pop("t", None)
        if 1 < task.now < 3:
            cluster.create("t", incarnation=0)
        elif task.now >= 3:
            cluster.topics["t"] = topic

    cluster.before = before
    assert task.offsets() == list(range(20))


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
    answer, not_yet = cluster.fetch_partition, failing(code)
    answers = iter([not_yet, not_yet])
    cluster.fetch_partition = lambda *a: next(answers, answer)(*a)  # type: ignore[method-assign]
    task = Task(cluster, 0, 5)
    assert task.offsets() == [0, 1, 2, 3, 4]
    assert task.now == pytest.approx(0.2), "a pause after each failure"
    assert cluster.requests.count("Metadata") == 2, "the leader it has just found is not looked up again"


def test_a_retriable_metadata_error_after_an_unknown_topic_is_retried(cluster):
    answer, unknown = cluster.fetch_partition, failing(ErrorCode.UNKNOWN_TOPIC_ID)
    answers = iter([unknown])
    cluster.fetch_partition = lambda *a: next(answers, answer)(*a)  # type: ignore[method-assign]
    failures = iter([KafkaError(ErrorCode.NETWORK_EXCEPTION, "moving")])

    def before(name: str) -> None:
        if name == "Metadata" and (error := next(failures, None)):
            raise error

    cluster.before = before
    assert Task(cluster, 0, 5, **{"fetchOffset.numRetries": "0"}).offsets() == [0, 1, 2, 3, 4]


def test_a_metadata_error_that_is_not_retriable_ends_the_task_after_an_unknown_topic(cluster):
    cluster.fetch_partition = failing(ErrorCode.UNKNOWN_TOPIC_ID)  # type: ignore[method-assign]
    refuse_metadata(cluster)
    with pytest.raises(KafkaError, match="not for you"):
        Task(cluster, 0, 5).offsets()


def test_a_metadata_error_that_is_not_retriable_ends_the_task_after_a_moved_leader(cluster):
    cluster.down = {1}
    cluster.fetch_partition = failing(ErrorCode.NOT_LEADER_OR_FOLLOWER)  # type: ignore[method-assign]
    refuse_metadata(cluster)
    with pytest.raises(KafkaError, match="not for you"):
        Task(cluster, 0, 5).offsets()


def test_an_error_that_is_not_retriable_is_raised(cluster):
    def before(name: str) -> None:
        if name == "Fetch":
            raise KafkaError(ErrorCode.INVALID_REQUEST, "not for you")

    cluster.before = before
    with pytest.raises(KafkaError, match="not for you"):
        Task(cluster, 0, 5).offsets()


def test_a_topic_that_this_user_may_not_read(cluster):
    cluster.fetch_partition = failing(ErrorCode.TOPIC_AUTHORIZATION_FAILED)  # type: ignore[method-assign]
    with pytest.raises(KafkaError, match="this user needs Read on topic t: an administrator allows it with"):
        Task(cluster, 0, 5).offsets()


def test_an_error_code_that_is_not_retriable_is_raised_at_once(cluster):
    cluster.fetch_partition = failing(ErrorCode.TOPIC_AUTHORIZATION_FAILED)  # type: ignore[method-assign]
    task = Task(cluster, 0, 5)
    with pytest.raises(KafkaError, match="TOPIC_AUTHORIZATION_FAILED"):
        task.offsets()
    assert (len(cluster.fetches), task.now) == (1, 0)


def test_an_error_of_the_server_is_retried_after_a_pause(cluster):
    answer, broken = cluster.fetch_partition, failing(ErrorCode.UNKNOWN_SERVER_ERROR)
    answers = iter([broken, broken])
    cluster.fetch_partition = lambda *a: next(answers, answer)(*a)  # type: ignore[method-assign]
    task = Task(cluster, 0, 5)
    assert task.offsets() == [0, 1, 2, 3, 4]
    assert task.now == pytest.approx(0.2)


def test_an_error_of_the_whole_response_is_retried(cluster):
    answer = cluster.answer_Fetch
    fails = iter([True])

    def fetch(request: Any, node: int) -> Any:
        if next(fails, False):
            return messages.FetchResponse(error_code=ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        return answer(request, node)

    cluster.answer_Fetch = fetch  # type: ignore[method-assign]
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


def lag(cluster: FakeCluster, answers: int, high_watermark: int) -> None:
    """Answer the next fetches as if the log ended at a high watermark."""
    answer, left = FakeCluster.fetch_partition.__get__(cluster), iter(range(answers))

    def fetch(p: FakePartition, offset: int, request: Any, node: int, data: Any) -> None:
        answer(p, offset, request, node, data)
        if next(left, None) is not None and not data.error_code:
            data.high_watermark = data.last_stable_offset = high_watermark
            data.records = p.log[: p.log.index(p.read(high_watermark))] if offset < high_watermark else b""

    cluster.fetch_partition = fetch  # type: ignore[method-assign]


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
