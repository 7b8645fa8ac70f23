"""What a follower asks for, and what it does with each kind of answer."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import FetchRequest, FetchResponse, ListOffsetsResponse
from barnabas.replication import replica_fetcher
from barnabas.replication.partition import Partition
from barnabas.replication.replica_fetcher import THROTTLED_MS, FetcherConfig, ReplicaFetcher
from barnabas.replication.replica_quota import UNBOUNDED, ReplicaQuota
from tests.replication.following import Node, over_the_wire, registration
from tests.replication.hosting import topic_id

ID = topic_id(1)
CONFIG = FetcherConfig(2, fetch_max_bytes=1000, response_max_bytes=9000, min_bytes=3, wait_max_ms=70, backoff_ms=50)


class Pair:
    """Broker 1 leads, broker 2 follows."""

    def __init__(self, partitions: int = 1, quota: ReplicaQuota = UNBOUNDED) -> None:
        self.leader, self.follower = Node(1, partitions), Node(2, partitions)
        self.moved: list[Partition] = []
        self.fetcher = ReplicaFetcher(CONFIG, lambda: 102, self.moved.append, quota)
        self.now_ms = 1000
        for index in range(partitions):
            self.elect(1, 0, index)

    def elect(self, leader: int, epoch: int, index: int = 0) -> None:
        for node in (self.leader, self.follower):
            node.lead(registration(leader, epoch), index)
        if leader != 2:
            self.fetcher.add(self.follower.replica(index))

    def request(self) -> FetchRequest:
        for state in self.fetcher.states_to_begin(self.now_ms):
            self.fetcher.begin(state, self.now_ms)
        request = self.fetcher.request(self.now_ms)
        assert request is not None
        return request

    def take(self, response: FetchResponse) -> None:
        for answer in self.fetcher.accept(over_the_wire(response)) or ():
            self.fetcher.process(answer, self.now_ms)

    def fetch(self) -> FetchRequest:
        """Send a request and take its answer; returns the request."""
        request = self.request()
        self.take(self.leader.fetch(request))
        return request

    def answer(self, request: FetchRequest, **fields: Any) -> None:
        """Take an answer for partition 0 that the test makes up."""
        data = FetchResponse.PartitionData(**{"high_watermark": -1, "records": b"", **fields})
        topic = FetchResponse.FetchableTopicResponse(topic_id=ID, partitions=[data])
        self.take(FetchResponse(session_id=request.session_id or 9, responses=[topic]))

    def offsets(self, offset: int, *, error_code: int = 0) -> ListOffsetsResponse:
        found = ListOffsetsResponse.ListOffsetsPartitionResponse(offset=offset, error_code=error_code)
        return ListOffsetsResponse(
            topics=[ListOffsetsResponse.ListOffsetsTopicResponse(name="orders", partitions=[found])]
        )

    @property
    def state(self) -> Any:
        return self.fetcher.partitions[ID, 0]


def named(request: FetchRequest) -> list[tuple[int, int, int, int]]:
    return [
        (each.partition, each.current_leader_epoch, each.fetch_offset, each.last_fetched_epoch)
        for topic in request.topics
        for each in topic.partitions
    ]


@pytest.fixture
def pair() -> Pair:
    return Pair()


def test_what_a_request_says(pair: Pair) -> None:
    request = pair.request()
    assert (request.replica_state.replica_id, request.replica_state.replica_epoch) == (2, 102)
    assert (request.max_wait_ms, request.min_bytes, request.max_bytes, request.session_id, request.session_epoch) == (
        (70, 3, 9000, 0, 0)
    )
    (topic,) = request.topics
    (asked,) = topic.partitions
    assert (topic.topic_id, asked.partition_max_bytes, asked.log_start_offset) == (ID, 1000, 0)
    assert named(request) == [(0, 0, 0, -1)]


def test_a_follower_appends_and_follows_the_high_watermark(pair: Pair) -> None:
    pair.leader.append(b"a", b"b")
    assert pair.state.lag is None
    pair.fetch()
    log = pair.follower.log()
    assert (pair.follower.batches(), log.high_watermark, log.latest_epoch) == (pair.leader.batches(), 0, 0)
    assert pair.moved == [pair.follower.replica()]
    request = pair.request()
    assert (named(request), request.session_epoch) == ([(0, 0, 2, 0)], 1)
    pair.answer(request, high_watermark=7)
    assert (log.high_watermark, pair.state.lag) == (2, 5), "not above the log's end"
    request = pair.request()
    assert (named(request), request.session_epoch) == ([], 2), "nothing has changed"
    pair.answer(request, high_watermark=1)
    assert log.high_watermark == 2, "what was committed stays so"


def test_the_log_start_follows_too(pair: Pair) -> None:
    pair.leader.append(b"a")
    pair.fetch()
    request = pair.fetch()
    pair.answer(pair.request(), high_watermark=1, log_start_offset=1)
    assert pair.follower.log().log_start_offset == 1
    request = pair.request()
    assert [each.log_start_offset for topic in request.topics for each in topic.partitions] == [1]


def test_the_last_epoch_is_kept_after_an_answer_without_records(pair: Pair) -> None:
    pair.leader.append(b"a")
    pair.fetch()
    pair.fetch()
    pair.elect(1, 1)
    request = pair.request()
    assert (named(request), request.session_epoch) == ([(0, 1, 1, 0)], 0)


def test_a_diverging_log_is_truncated_and_nothing_else_happens(pair: Pair, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    pair.leader.append(b"a")
    pair.fetch()
    pair.leader.append(b"b")
    pair.elect(2, 1)
    pair.fetcher.remove((ID, 0))
    pair.follower.append(b"lost")
    pair.elect(1, 2)
    pair.leader.append(b"c")
    assert named(pair.fetch()) == [(0, 2, 2, 1)]
    log = pair.follower.log()
    assert (log.log_end_offset, log.high_watermark) == (1, 0)
    assert "as the leader's log" in caplog.text
    for _ in range(2):
        pair.fetch()
    assert pair.follower.batches() == pair.leader.batches()


def test_a_truncation_below_the_high_watermark_is_a_warning(pair: Pair, caplog: pytest.LogCaptureFixture) -> None:
    pair.leader.append(b"a")
    pair.leader.append(b"b")
    pair.fetch()
    pair.answer(pair.request(), high_watermark=2)
    pair.answer(pair.request(), diverging_epoch=FetchResponse.EpochEndOffset(epoch=0, end_offset=1), high_watermark=9)
    log = pair.follower.log()
    assert (log.log_end_offset, log.high_watermark) == (1, 1)
    assert [each.levelname for each in caplog.records] == ["WARNING"]
    assert "truncated from offset 2 to 1, below the high watermark 2" in caplog.text


REWRITTEN_WITH_FAULT = pytest.mark.parametrize("is_checked", [True, False])


@REWRITTEN_WITH_FAULT
def test_batches_above_the_epoch_are_left_out(is_checked: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The answer's records are read after the leader has truncated its log and written those of a newer one."""
    pair, third = Pair(), Node(3)
    third.lead(registration(1, 0))
    from_third = ReplicaFetcher(FetcherConfig(1), lambda: 101, lambda partition: None)
    pair.leader.append(b"old")
    pair.fetch()
    pair.leader.append(b"old")
    response = pair.leader.fetch(pair.request())
    third.lead(registration(3, 1))
    third.append(b"new")
    third.append(b"new")
    from_third.add(pair.leader.lead(registration(3, 1)))
    for state in from_third.states_to_begin(0):
        from_third.begin(state, 0)
    for _ in range(4):
        request = from_third.request(0)
        assert request is not None
        for answer in from_third.accept(over_the_wire(third.fetch(request))) or ():
            from_third.process(answer, 0)
    assert pair.leader.batches() == third.batches()
    if not is_checked:
        append = type(pair.follower.log()).append_as_follower
        monkeypatch.setattr(
            type(pair.follower.log()), "append_as_follower", lambda self, records, epoch: append(self, records, 99)
        )
    pair.take(response)
    assert (pair.follower.log().log_end_offset == 1) is is_checked, "a batch behind one that the new leader lacks"


def test_an_answer_for_a_removed_partition_is_dropped(pair: Pair) -> None:
    pair.leader.append(b"a")
    response = pair.leader.fetch(pair.request())
    pair.fetcher.remove((ID, 0))
    pair.take(response)
    assert pair.follower.log().log_end_offset == 0


@pytest.mark.parametrize("is_told", [True, False])
def test_an_answer_of_an_old_epoch_is_dropped(pair: Pair, is_told: bool) -> None:
    """Also if the partition knows the new epoch and the fetcher does not yet."""
    pair.leader.append(b"a")
    response = pair.leader.fetch(pair.request())
    partition = pair.follower.lead(registration(3, 1))
    if is_told:
        pair.fetcher.add(partition)
    pair.take(response)
    assert pair.follower.log().log_end_offset == 0


def test_adding_a_partition_again_changes_nothing(pair: Pair) -> None:
    before = pair.state
    pair.fetcher.add(pair.follower.replica())
    assert pair.state is before


@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.CORRUPT_MESSAGE,
        ErrorCode.KAFKA_STORAGE_ERROR,
    ],
)
def test_an_error_delays_the_partition(pair: Pair, code: ErrorCode) -> None:
    pair.answer(pair.request(), error_code=int(code))
    assert pair.fetcher.request(1049) is None
    assert pair.fetcher.next_delay_end_ms() == 1050
    request = pair.fetcher.request(1050)
    assert request is not None
    assert named(request) == [(0, 0, 0, -1)]


@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ],
)
def test_a_leader_that_does_not_know_yet_that_it_leads_is_asked_again_soon(pair: Pair, code: ErrorCode) -> None:
    """Each time after twice as long, up to replica.fetch.backoff.ms."""
    for delay_ms in (20, 40, 50, 50):
        pair.answer(pair.request(), error_code=int(code))
        due_ms = pair.now_ms + delay_ms
        assert pair.fetcher.next_delay_end_ms() == due_ms
        assert pair.fetcher.request(due_ms - 1) is None
        pair.now_ms = due_ms
    pair.fetch()
    pair.answer(pair.request(), error_code=int(code))
    assert pair.fetcher.next_delay_end_ms() == pair.now_ms + 20


def test_the_leader_of_others_waits_no_longer_than_a_delay() -> None:
    pair = Pair(partitions=2)
    pair.fetch()
    pair.answer(pair.request(), error_code=int(ErrorCode.UNKNOWN_LEADER_EPOCH))
    assert pair.request().max_wait_ms == 20


def test_newer_metadata_ends_the_delay(pair: Pair) -> None:
    pair.answer(pair.request(), error_code=int(ErrorCode.FENCED_LEADER_EPOCH))
    pair.elect(1, 1)
    assert named(pair.request()) == [(0, 1, 0, -1)]


def test_a_delayed_partition_leaves_the_session_of_the_others() -> None:
    pair = Pair(partitions=2)
    pair.fetch()
    pair.answer(pair.request(), error_code=int(ErrorCode.UNKNOWN_LEADER_EPOCH))
    pair.now_ms += 50
    request = pair.request()
    assert [(topic.topic_id, topic.partitions) for topic in request.forgotten_topics_data] == [(ID, [0])]
    assert (named(request), request.max_wait_ms) == ([], 0), (
        "the leader forgets what it has sent, and takes it again at once"
    )
    pair.take(FetchResponse(session_id=request.session_id))
    assert named(pair.request()) == [(0, 0, 0, -1)]


def test_records_that_are_not_valid_delay_the_partition(pair: Pair, caplog: pytest.LogCaptureFixture) -> None:
    pair.leader.append(b"a")
    records = bytearray(pair.leader.batches()[0])
    records[-1] ^= 1
    pair.answer(pair.request(), records=bytes(records), high_watermark=1)
    log = pair.follower.log()
    assert (log.log_end_offset, log.high_watermark, pair.fetcher.next_delay_end_ms()) == (0, 0, 1050)
    assert "orders-0: following the leader at offset 0 failed, trying again in 50 ms" in caplog.text
    assert pair.follower.disk_failures == [], "nothing is wrong with the disk"


def test_a_failing_disk_is_told_to_the_broker_which_stops_or_tries_again(pair: Pair) -> None:
    pair.leader.append(b"a")
    request = pair.request()
    pair.follower.disk.capacity = 0
    pair.take(pair.leader.fetch(request))
    pair.follower.disk.capacity = None
    assert pair.follower.disk_failures == [pair.follower.replica()]
    assert pair.fetcher.next_delay_end_ms() == 1050
    pair.now_ms = 1050
    pair.fetch()
    assert pair.follower.batches() == pair.leader.batches()


class TestOutOfRange:
    def begin(self, pair: Pair) -> list[Any]:
        for _ in range(3):
            pair.leader.append(b"a")
        pair.fetch()
        pair.answer(pair.request(), error_code=int(ErrorCode.OFFSET_OUT_OF_RANGE))
        assert pair.fetcher.request(pair.now_ms) is None, "the leader's range comes first"
        return pair.fetcher.states_out_of_range(pair.now_ms)

    def test_a_longer_log_is_truncated_to_the_leaders_end(self, pair: Pair) -> None:
        states = self.begin(pair)
        request = pair.fetcher.ends_request(states)
        (topic,) = request.topics
        (asked,) = topic.partitions
        assert (request.replica_id, topic.name, asked.timestamp, asked.current_leader_epoch) == (2, "orders", -1, 0)
        assert pair.fetcher.take_ends(states, pair.offsets(2), pair.now_ms) == []
        assert named(pair.request()) == [(0, 0, 2, 0)]

    def test_a_log_below_the_leaders_start_starts_there(self, pair: Pair) -> None:
        states = self.begin(pair)
        assert pair.fetcher.take_ends(states, pair.offsets(9), pair.now_ms) == states
        assert pair.fetcher.starts_request(states).topics[0].partitions[0].timestamp == -2
        pair.fetcher.take_starts(states, pair.offsets(7), pair.now_ms)
        log = pair.follower.log()
        assert (log.log_start_offset, log.log_end_offset, log.high_watermark) == (7, 7, 7)
        assert named(pair.request()) == [(0, 0, 7, -1)]

    def test_a_log_that_is_in_range_by_now_is_fetched_after_a_delay(self, pair: Pair) -> None:
        states = self.begin(pair)
        pair.fetcher.take_ends(states, pair.offsets(9), pair.now_ms)
        pair.fetcher.take_starts(states, pair.offsets(0), pair.now_ms)
        assert pair.fetcher.next_delay_end_ms() == 1050
        pair.now_ms = 1050
        assert named(pair.request()) == [(0, 0, 3, 0)]

    def test_an_error_delays_the_question(self, pair: Pair) -> None:
        states = self.begin(pair)
        fenced = pair.offsets(-1, error_code=int(ErrorCode.FENCED_LEADER_EPOCH))
        assert pair.fetcher.take_ends(states, fenced, pair.now_ms) == []
        assert pair.fetcher.states_out_of_range(1049) == []
        assert pair.fetcher.states_out_of_range(1050) == states
        pair.fetcher.offsets_failed(states, 1050)
        assert pair.fetcher.states_out_of_range(1099) == []

    def test_an_answer_of_an_old_epoch_is_dropped(self, pair: Pair) -> None:
        states = self.begin(pair)
        pair.elect(1, 1)
        assert pair.fetcher.take_ends(states, pair.offsets(2), pair.now_ms) == []
        assert pair.follower.log().log_end_offset == 3


def test_a_lost_session_and_a_lost_answer_make_the_next_request_a_full_one(pair: Pair) -> None:
    pair.fetch()
    pair.request()
    pair.take(FetchResponse(error_code=int(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)))
    request = pair.fetch()
    assert (request.session_id, request.session_epoch, named(request)) == (0, 0, [(0, 0, 0, -1)])
    request = pair.request()
    pair.fetcher.request_failed()
    again = pair.request()
    assert (again.session_id, again.session_epoch, named(again)) == (request.session_id, 0, [(0, 0, 0, -1)])


def test_without_a_session_each_request_names_all(pair: Pair) -> None:
    for _ in range(3):
        request = pair.request()
        assert (request.session_epoch, named(request)) == (0, [(0, 0, 0, -1)])
        response = pair.leader.fetch(request)
        response.session_id = 0
        pair.take(response)


def test_many_partitions_are_named_in_several_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replica_fetcher, "PARTITIONS_PER_REQUEST", 2)
    pair = Pair(partitions=5)
    requests = [pair.fetch() for _ in range(4)]
    assert [len(named(request)) for request in requests] == [2, 2, 1, 0]
    assert [request.max_wait_ms for request in requests] == [0, 0, 70, 70]


def test_many_logs_are_opened_over_several_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replica_fetcher, "LOGS_PER_REQUEST", 2)
    pair = Pair(partitions=5)
    requests = [pair.fetch() for _ in range(4)]
    assert [len(named(request)) for request in requests] == [2, 2, 1, 0]
    assert [request.max_wait_ms for request in requests] == [0, 0, 70, 70]


def test_the_log_start_of_the_leader_may_be_within_a_batch(pair: Pair) -> None:
    pair.leader.append(b"a", b"b", b"c")
    pair.follower.log().truncate_fully_and_start_at(1)
    pair.answer(pair.request(), records=pair.leader.batches()[0], high_watermark=3, log_start_offset=1)
    log = pair.follower.log()
    assert (log.log_start_offset, log.log_end_offset, pair.follower.batches()) == (1, 3, pair.leader.batches())


def test_so_it_may_if_the_follower_has_only_deleted_records(pair: Pair) -> None:
    pair.leader.append(b"old")
    pair.fetch()
    other = Node(3)
    other.lead(registration(3))
    other.append(b"a", b"b", b"c")
    (records,) = other.batches().values()
    pair.answer(pair.request(), records=records, high_watermark=3, log_start_offset=1)
    log = pair.follower.log()
    assert (log.log_start_offset, log.high_watermark, pair.follower.batches()) == (1, 3, {0: records})


def test_a_deleted_replica_is_not_opened_again(pair: Pair) -> None:
    pair.follower.replica().is_deleted = True
    for state in pair.fetcher.states_to_begin(pair.now_ms):
        pair.fetcher.begin(state, pair.now_ms)
    assert (pair.fetcher.request(pair.now_ms), pair.follower.disk.paths()) == (None, [])


class Quota:
    """Throttles partition 0."""

    def __init__(self) -> None:
        self.is_over = False
        self.bytes = 0

    def is_throttled(self, topic: str, index: int) -> bool:
        return (topic, index) == ("orders", 0)

    def is_exceeded(self) -> bool:
        return self.is_over

    def record(self, size: int) -> None:
        self.bytes += size


def test_a_throttled_partition_is_forgotten_until_the_quota_allows_it() -> None:
    quota = Quota()
    pair = Pair(2, quota)
    for index in (0, 1):
        pair.leader.append(b"a", index=index)
    pair.fetch()
    assert quota.bytes == pair.follower.log(0).size_in_bytes, "partition 1 does not count"
    quota.is_over = True
    pair.state.lag = 5
    request = pair.fetch()
    assert [index for index, *_ in named(request)] == [1]
    assert [topic.partitions for topic in request.forgotten_topics_data] == [[0]], "in the same request"
    pair.now_ms += THROTTLED_MS
    assert named(pair.fetch()) == [], "it is still exceeded"
    quota.is_over = False
    pair.now_ms += THROTTLED_MS
    assert [index for index, *_ in named(pair.fetch())] == [0]


def test_an_in_sync_replica_is_not_throttled() -> None:
    quota = Quota()
    pair = Pair(1, quota)
    pair.fetch()
    assert pair.state.is_in_sync
    quota.is_over = True
    pair.leader.append(b"a")
    assert not pair.fetch().forgotten_topics_data
    assert pair.follower.log().log_end_offset == 1


def test_a_request_forgets_partitions_in_the_order_in_which_they_went() -> None:
    """Not in an order that differs between processes: a simulated run is played again in another one."""
    pair = Pair(partitions=12)
    pair.fetch()
    gone = [7, 2, 9, 4, 11, 0, 5, 8, 1]
    for index in gone:
        pair.fetcher.remove((ID, index))
    request = pair.request()
    assert [index for topic in request.forgotten_topics_data for index in topic.partitions] == gone
