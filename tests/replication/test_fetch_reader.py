"""What a pass over the partitions of a Fetch request reads: up to where, how much, and which errors."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from barnabas.log.partition_log import AppendOrigin
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.primitives import ZERO_UUID
from barnabas.records.builder import build_batch
from barnabas.records.control import build_end_transaction_marker
from barnabas.records.record import iter_records
from barnabas.records.record_batch import iter_batches
from barnabas.replication.fetch_reader import FetchParams, PartitionLookup, Reading
from barnabas.replication.fetch_session import FetchPartition, FetchSession
from barnabas.replication.partition import Partition
from barnabas.steps import start
from barnabas.turns import TURN
from tests.at_once import at_once
from tests.replication.hosting import NODE, Hosting, batch, topic_id
from tests.short_turns import set_turn

COMMITTED = 1


class Pass(Reading):
    """A pass that notes the idle partitions."""

    def __init__(self, params: FetchParams, lookup: PartitionLookup, *, are_others_idle: bool) -> None:
        super().__init__(params, lookup, are_others_idle=are_others_idle)
        self.idle: list[FetchPartition] = []

    def read(self, wanted: FetchPartition) -> bool:
        is_idle = super().read(wanted)
        if is_idle:
            self.idle.append(wanted)
        return is_idle


def wants(
    offset: int = 0,
    *,
    topic: str | None = "t",
    index: int = 0,
    max_bytes: int = 1 << 20,
    id_: Any = ZERO_UUID,
    **epochs: int,
) -> FetchPartition:
    return FetchPartition(topic, id_, index, offset, max_bytes, **epochs)


def read(hosting: Hosting, *wanted: FetchPartition, idle: bool = False, **fields: Any) -> Pass:
    consumer = FetchParams(17, replica_id=-1, max_wait_ms=0, min_bytes=1, max_bytes=1 << 20, isolation_level=0)
    return read_partitions(consumer._replace(**fields), wanted, hosting.replicas, are_others_idle=idle)


def read_partitions(
    params: FetchParams, wanted: Iterable[FetchPartition], lookup: PartitionLookup, *, are_others_idle: bool = False
) -> Pass:
    """Read each partition in one pass."""
    reading = Pass(params, lookup, are_others_idle=are_others_idle)
    for each in wanted:
        reading.read(each)
    return reading


def only(found: Reading) -> Any:
    ((_, data),) = found.results
    return data


def offsets(data: Any) -> list[int]:
    chunk = data.records if isinstance(data.records, bytes) else data.records.read()
    return [
        record.offset
        for position, header in iter_batches(memoryview(chunk))
        for record in iter_records(chunk[position : position + header.size])
    ]


def append_transaction(hosting: Hosting, *, commit: bool | None, producer_id: int = 5) -> None:
    """Append one record in a transaction, and end it unless `commit` is None."""
    hosting.replicas.append(
        "t",
        0,
        batch(b"v", transactional=True, producer_id=producer_id, producer_epoch=0, base_sequence=0),
        1,
        AppendOrigin.COORDINATOR,
    )
    if commit is not None:
        end_transaction(hosting, commit=commit, producer_id=producer_id)


def end_transaction(hosting: Hosting, *, commit: bool, producer_id: int = 5) -> None:
    marker = build_end_transaction_marker(
        commit=commit, producer_id=producer_id, producer_epoch=0, coordinator_epoch=0, timestamp=hosting.now_ms()
    )
    hosting.replicas.append("t", 0, memoryview(marker), -1, AppendOrigin.COORDINATOR)


def open_session(hosting: Hosting, params: FetchParams) -> FetchSession:
    """Open a follower's session, in which its second request fetches from offset 1."""
    follower: dict[str, Any] = {"uses_topic_ids": False, "is_follower": True, "now_ms": 0}
    first = at_once(hosting.sessions.context(0, 0, [wants()], (), **follower))
    response = at_once(first.respond(read_partitions(params, first.partitions, hosting.replicas), 0))
    second = at_once(hosting.sessions.context(response.session_id, 1, [wants(1)], (), **follower))
    assert second.session is not None
    return second.session


class TestHowFar:
    def test_a_consumer_reads_what_is_committed_and_a_follower_reads_all(self, hosting: Hosting) -> None:
        hosting.create_topic("t", replicas=(NODE, 2))
        hosting.append("t", b"a")
        hosting.append("t", b"b")
        data = only(read(hosting, wants(0)))
        assert (data.high_watermark, data.log_start_offset, offsets(data)) == (0, 0, [])
        assert (data.current_leader.leader_id, data.snapshot_id.epoch, data.diverging_epoch.epoch) == (-1, -1, -1)
        data = only(read(hosting, wants(0), replica_id=2))
        assert (data.high_watermark, offsets(data)) == (0, [0, 1])
        read(hosting, wants(1), replica_id=2)  # so it has the first one
        data = only(read(hosting, wants(0)))
        assert (data.high_watermark, data.last_stable_offset, offsets(data)) == (1, 1, [0])

    def test_a_followers_fetch_wakes_the_producers_that_wait_for_it(self, hosting: Hosting) -> None:
        hosting.create_topic("t", replicas=(NODE, 2))
        committed = hosting.replicas.append_internal("t", 0, build_batch([(hosting.now_ms(), b"k", b"v", [])]))
        read(hosting, wants(0), replica_id=2)
        assert not committed.done()
        read(hosting, wants(1), replica_id=2)
        assert committed.result() == 0

    def test_node_0_may_be_a_follower(self, hosting: Hosting) -> None:
        hosting.create_topic("t", replicas=(NODE, 0))
        hosting.append("t", b"a")
        assert offsets(only(read(hosting, wants(0), replica_id=0))) == [0]

    def test_read_committed_ends_before_an_open_transaction(self, hosting: Hosting) -> None:
        hosting.create_topic("t")
        hosting.append("t", b"a")
        append_transaction(hosting, commit=None)
        hosting.append("t", b"b")
        data = only(read(hosting, wants(0), isolation_level=COMMITTED))
        assert (data.high_watermark, data.last_stable_offset, offsets(data)) == (3, 1, [0])
        data = only(read(hosting, wants(1), isolation_level=COMMITTED))
        assert (data.error_code, offsets(data), data.aborted_transactions) == (0, [], [])
        data = only(read(hosting, wants(0)))
        assert (offsets(data), data.aborted_transactions) == ([0, 1, 2], None)
        data = only(read(hosting, wants(3)))
        assert (offsets(data), data.aborted_transactions) == ([], None)

    def test_read_committed_names_the_aborted_transactions(self, hosting: Hosting) -> None:
        hosting.create_topic("t")
        append_transaction(hosting, commit=True)
        append_transaction(hosting, commit=False, producer_id=6)
        data = only(read(hosting, wants(0), isolation_level=COMMITTED))
        assert [(a.producer_id, a.first_offset) for a in data.aborted_transactions] == [(6, 2)]
        assert data.last_stable_offset == 4
        assert only(read(hosting, wants(0))).aborted_transactions is None

    def test_between_the_high_watermark_and_the_end_there_is_nothing_yet(self, hosting: Hosting) -> None:
        hosting.create_topic("t", replicas=(NODE, 2))
        hosting.append("t", b"a")
        found = read(hosting, wants(1))
        assert (only(found).error_code, only(found).high_watermark, offsets(only(found))) == (0, 0, [])
        assert not found.must_respond

    @pytest.mark.parametrize("offset", [-1, 1, 4])
    def test_outside_of_the_log_is_an_error(self, hosting: Hosting, offset: int) -> None:
        hosting.create_topic("t")
        for _ in range(3):
            hosting.append("t", b"a")
        hosting.replicas.partition("t", 0).log.delete_records_before(2)
        found = read(hosting, wants(offset))
        data = only(found)
        assert (data.error_code, data.high_watermark, data.log_start_offset) == (ErrorCode.OFFSET_OUT_OF_RANGE, -1, -1)
        assert data.aborted_transactions is None
        assert data.records == b""
        assert found.must_respond
        assert [only(read(hosting, wants(offset))).error_code for offset in (2, 3)] == [0, 0]


class TestHowMuch:
    def test_a_partition_gives_whole_batches_up_to_its_limit(self, hosting: Hosting) -> None:
        hosting.create_topic("t")
        for _ in range(4):
            hosting.append("t", b"x" * 100)
        size = read(hosting, wants(3)).bytes_read
        assert offsets(only(read(hosting, wants(0, max_bytes=2 * size + 1)))) == [0, 1]
        assert read(hosting, wants(0, max_bytes=2 * size)).bytes_read == 2 * size

    def test_the_first_batch_is_given_however_large(self, hosting: Hosting) -> None:
        hosting.create_topic("t", 3)
        for index in (1, 2):
            hosting.append("t", b"x" * 100, index=index)
        empty, first, second = (wants(index=index, max_bytes=0) for index in range(3))
        found = read(hosting, empty, first, second)
        assert [(wanted.index, offsets(data)) for wanted, data in found.results] == [(0, []), (1, [0]), (2, [])]
        found = read(hosting, *(wants(index=index) for index in range(3)), max_bytes=0)
        assert [offsets(data) for _, data in found.results] == [[], [0], []]

    def test_all_partitions_share_the_limit_of_the_request(self, hosting: Hosting) -> None:
        hosting.create_topic("t", 3)
        for index in range(3):
            hosting.append("t", b"x" * 100, index=index)
        size = read(hosting, wants()).bytes_read
        wanted = [wants(index=index) for index in range(3)]
        found = read(hosting, *wanted, max_bytes=2 * size)
        assert [offsets(data) for _, data in found.results] == [[0], [0], []]
        assert found.bytes_read == 2 * size
        assert [wanted for wanted, _ in found.results] == wanted
        found = read(hosting, *wanted, max_bytes=3 * size - 1)
        assert [offsets(data) for _, data in found.results] == [[0], [0], []]


class TestChanges:
    def sent(self, hosting: Hosting, wanted: FetchPartition) -> FetchPartition:
        log = hosting.replicas.partition("t", 0).log
        wanted.sent_high_watermark, wanted.sent_log_start_offset = log.high_watermark, log.log_start_offset
        return wanted

    def test_a_partition_without_news_is_idle(self, hosting: Hosting) -> None:
        hosting.create_topic("t")
        hosting.append("t", b"a")
        wanted = self.sent(hosting, wants(1))
        found = read(hosting, wanted, only_changes=True)
        assert (found.results, found.idle, found.must_respond) == ([], [wanted], False)
        assert offsets(only(read(hosting, wanted))) == [], "a full answer names it"

    def test_a_new_high_watermark_is_news(self, hosting: Hosting) -> None:
        hosting.create_topic("t", replicas=(NODE, 2))
        hosting.append("t", b"a")
        wanted = self.sent(hosting, wants(1))
        read(hosting, wants(1), replica_id=2)
        found = read(hosting, wanted, only_changes=True)
        assert (only(found).high_watermark, found.idle) == (1, [])

    def test_a_high_watermark_that_the_fetch_itself_moves_is_news(self, hosting: Hosting) -> None:
        hosting.create_topic("t", replicas=(NODE, 2))
        hosting.append("t", b"a")
        wanted = wants(0)
        self.sent(hosting, wanted)
        wanted.fetch_offset = 1
        found = read(hosting, wanted, replica_id=2, only_changes=True)
        assert (only(found).high_watermark, found.idle) == (1, [])

    def test_a_new_start_of_the_log_is_news(self, hosting: Hosting) -> None:
        hosting.create_topic("t")
        hosting.append("t", b"a")
        wanted = self.sent(hosting, wants(1))
        hosting.replicas.partition("t", 0).log.delete_records_before(1)
        assert only(read(hosting, wanted, only_changes=True)).log_start_offset == 1

    def test_records_that_found_no_room_are_not_idle(self, hosting: Hosting) -> None:
        hosting.create_topic("t", 2)
        hosting.append("t", b"a")
        hosting.append("t", b"a", index=1)
        wanted = self.sent(hosting, wants(0))
        found = read(hosting, wants(index=1), wanted, only_changes=True, max_bytes=1)
        assert [offsets(data) for _, data in found.results] == [[0], []]
        assert found.idle == []

    def test_a_diverging_log_is_news(self, hosting: Hosting) -> None:
        id_ = hosting.create_topic("t")
        hosting.append("t", b"a")
        hosting.change(id_, leader=NODE)
        wanted = self.sent(hosting, wants(3, last_fetched_epoch=0))
        assert only(read(hosting, wanted, only_changes=True)).diverging_epoch.end_offset == 1


class TestDivergence:
    def test_a_reader_beyond_the_end_of_its_epoch_is_told_where_it_ends(self, hosting: Hosting) -> None:
        id_ = hosting.create_topic("t")
        for _ in range(2):
            hosting.append("t", b"a")
        hosting.change(id_, leader=NODE)
        hosting.append("t", b"b")
        found = read(hosting, wants(3, last_fetched_epoch=0))
        data = only(found)
        assert (data.diverging_epoch.epoch, data.diverging_epoch.end_offset, offsets(data)) == (0, 2, [])
        assert found.must_respond
        found = read(hosting, wants(2, last_fetched_epoch=0))
        assert (only(found).diverging_epoch.epoch, offsets(only(found)), found.must_respond) == (-1, [2], False)
        assert offsets(only(read(hosting, wants(2, last_fetched_epoch=1)))) == [2]

    def test_an_epoch_that_this_log_never_had(self, hosting: Hosting) -> None:
        id_ = hosting.create_topic("t")
        hosting.append("t", b"a")
        hosting.change(id_, leader=NODE)
        hosting.change(id_, leader=NODE)
        hosting.append("t", b"b")
        data = only(read(hosting, wants(1, last_fetched_epoch=1)))
        assert (data.diverging_epoch.epoch, data.diverging_epoch.end_offset) == (0, 1)
        data = only(read(hosting, wants(1, last_fetched_epoch=7)))
        assert data.error_code == ErrorCode.OFFSET_OUT_OF_RANGE

    def test_below_the_start_of_the_log(self, hosting: Hosting) -> None:
        hosting.create_topic("t")
        for _ in range(3):
            hosting.append("t", b"a")
        hosting.replicas.partition("t", 0).log.delete_records_before(2)
        assert only(read(hosting, wants(1, last_fetched_epoch=0))).error_code == ErrorCode.OFFSET_OUT_OF_RANGE
        assert offsets(only(read(hosting, wants(2, last_fetched_epoch=0)))) == [2]


class TestFollowers:
    def test_a_diverging_follower_does_not_move_the_high_watermark(self, hosting: Hosting) -> None:
        """KAFKA-13141: its records up to the fetch offset are other ones than this leader's."""
        id_ = hosting.create_topic("t", replicas=(NODE, 2))
        hosting.append("t", b"a")
        hosting.change(id_, leader=NODE)
        hosting.append("t", b"b")
        log = hosting.replicas.partition("t", 0).log
        found = read(hosting, wants(2, last_fetched_epoch=0), replica_id=2)
        assert only(found).diverging_epoch.end_offset == 1
        assert log.high_watermark == 0
        read(hosting, wants(1, last_fetched_epoch=0), replica_id=2)
        assert log.high_watermark == 1

    @pytest.mark.parametrize("offset", [0, 4])
    def test_a_follower_outside_the_log_does_not_move_the_high_watermark(self, hosting: Hosting, offset: int) -> None:
        hosting.create_topic("t", replicas=(NODE, 2))
        for _ in range(3):
            hosting.append("t", b"a")
        partition = hosting.replicas.partition("t", 0)
        read(hosting, wants(1), replica_id=2)
        partition.log.delete_records_before(1)
        found = read(hosting, wants(offset), replica_id=2)
        assert only(found).error_code == ErrorCode.OFFSET_OUT_OF_RANGE
        assert partition.log.high_watermark == 1

    @pytest.mark.parametrize("turn", [TURN, 1], ids=["one turn", "many turns"])
    @pytest.mark.parametrize("in_session", [False, True])
    def test_a_fetch_that_waited_does_not_move_the_high_watermark(
        self, hosting: Hosting, monkeypatch: pytest.MonkeyPatch, turn: int, in_session: bool
    ) -> None:
        """The follower has restarted meanwhile with a shorter log."""
        hosting.create_topic("t", replicas=(NODE, 2, 3))
        hosting.append("t", b"a")
        log = hosting.replicas.partition("t", 0).log
        params = FetchParams(17, 2, 500, min_bytes=1, max_bytes=1000, isolation_level=0, only_changes=in_session)
        session = open_session(hosting, params) if in_session else None
        wanted = [wants(1)] if session is None else session.partitions.values()
        set_turn(monkeypatch, turn)
        waiting = start(hosting.replicas.fetches.fetch(params, wanted, session), hosting.loop)
        hosting.spin()
        read(hosting, wants(0), replica_id=2)
        read(hosting, wants(1), replica_id=3)
        assert log.high_watermark == 0
        hosting.append("t", b"b")
        hosting.spin()
        assert offsets(only(waiting.result())) == [1]
        assert log.high_watermark == 0

    def test_what_a_fetch_says_of_the_follower(self, hosting: Hosting, monkeypatch: pytest.MonkeyPatch) -> None:
        said: list[Any] = []
        monkeypatch.setattr(Partition, "update_follower", lambda self, *arguments: said.append(arguments))
        hosting.create_topic("t", replicas=(NODE, 2))
        for _ in range(3):
            hosting.append("t", b"a")
        read(hosting, wants(3, log_start_offset=1), replica_id=2, replica_epoch=5)
        read(hosting, wants(2), replica_id=2)
        assert said == [(2, 3, 1, 5), (2, 2, -1, -1)]

    def test_a_node_without_a_replica_reads_nothing(self, hosting: Hosting) -> None:
        hosting.create_topic("t", replicas=(NODE, 2))
        hosting.append("t", b"a")
        data = only(read(hosting, wants(), replica_id=3))
        assert (data.error_code, data.records) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, b"")
        data = only(read(hosting, wants(current_leader_epoch=0), replica_id=3))
        assert (data.error_code, data.records) == (ErrorCode.UNKNOWN_LEADER_EPOCH, b"")


class TestErrors:
    @pytest.mark.parametrize(("version", "leader"), [(15, (-1, -1)), (16, (NODE, 1)), (17, (NODE, 1))])
    def test_a_fenced_reader_learns_the_leader(self, hosting: Hosting, version: int, leader: tuple[int, int]) -> None:
        hosting.change(hosting.create_topic("t"), leader=NODE)
        found = read(hosting, wants(current_leader_epoch=0), version=version)
        data = only(found)
        assert data.error_code == ErrorCode.FENCED_LEADER_EPOCH
        assert (data.current_leader.leader_id, data.current_leader.leader_epoch) == leader
        assert found.must_respond

    def test_a_reader_ahead_of_this_broker_learns_no_leader(self, hosting: Hosting) -> None:
        hosting.create_topic("t")
        data = only(read(hosting, wants(current_leader_epoch=1)))
        assert (data.error_code, data.current_leader.leader_id) == (ErrorCode.UNKNOWN_LEADER_EPOCH, -1)

    def test_an_error_names_its_partition(self, hosting: Hosting) -> None:
        hosting.create_topic("t", 3)
        assert only(read(hosting, wants(9, index=2))).partition_index == 2

    def test_any_negative_epoch_is_none(self, hosting: Hosting) -> None:
        hosting.create_topic("t")
        assert [only(read(hosting, wants(current_leader_epoch=epoch))).error_code for epoch in (-2, -1, 0)] == [0, 0, 0]

    def test_a_follower_sends_old_readers_to_the_leader(self, hosting: Hosting) -> None:
        hosting.change(hosting.create_topic("t", replicas=(NODE, 2)), leader=2)
        assert only(read(hosting, wants(), version=10)).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER

    def test_a_follower_sends_a_follower_to_the_leader(self, hosting: Hosting) -> None:
        hosting.change(hosting.create_topic("t", replicas=(NODE, 2, 3)), leader=2)
        data = only(read(hosting, wants(current_leader_epoch=1), replica_id=3))
        assert data.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert (data.current_leader.leader_id, data.current_leader.leader_epoch) == (2, 1)

    def test_a_consumer_reads_at_a_follower_up_to_its_high_watermark(self, hosting: Hosting) -> None:
        id_ = hosting.create_topic("t", replicas=(NODE, 2))
        for _ in range(3):
            hosting.append("t", b"a")
        hosting.change(id_, leader=2)
        hosting.replicas.partition("t", 0).log.high_watermark = 2
        assert (only(read(hosting, wants(), version=11)).high_watermark, offsets(only(read(hosting, wants())))) == (
            2,
            [0, 1],
        )
        assert only(read(hosting, wants(3))).error_code == 0, "not committed yet, as far as is known here"
        assert only(read(hosting, wants(4))).error_code == ErrorCode.OFFSET_OUT_OF_RANGE
        assert only(read(hosting, wants(current_leader_epoch=0))).error_code == ErrorCode.FENCED_LEADER_EPOCH

    def test_a_partition_that_never_was_does_not_end_the_wait_for_others(self, hosting: Hosting) -> None:
        hosting.create_topic("t")
        unknown = wants(topic="u")
        found = read(hosting, wants(), unknown)
        assert [data.error_code for _, data in found.results] == [0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
        assert found.results[1][1].aborted_transactions == []
        assert not found.must_respond
        assert read(hosting, unknown).must_respond, "alone there is nothing to wait for"
        params = FetchParams(17, -1, max_wait_ms=0, min_bytes=1, max_bytes=1000, isolation_level=0)
        assert read_partitions(params, [unknown], hosting.replicas).must_respond
        assert not read(hosting, unknown, idle=True).must_respond

    def test_a_partition_that_is_deleted_ends_the_wait(self, hosting: Hosting) -> None:
        gone = wants()
        id_ = hosting.create_topic("t")
        hosting.create_topic("other")
        assert only(read(hosting, gone)).error_code == 0
        hosting.delete_topic(id_)
        found = read(hosting, gone, wants(topic="other"))
        assert [data.error_code for _, data in found.results] == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, 0]
        assert found.must_respond
        hosting.create_topic("t", number=70)
        assert only(read(hosting, gone)).error_code == 0, "and is found again"

    @pytest.mark.parametrize(
        ("topic", "number", "code"),
        [
            (None, 9, ErrorCode.UNKNOWN_TOPIC_ID),
            ("t", 9, ErrorCode.INCONSISTENT_TOPIC_ID),
            ("u", 9, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
            (None, 0, ErrorCode.UNKNOWN_TOPIC_ID),
            ("away", 2, ErrorCode.NOT_LEADER_OR_FOLLOWER),
            (None, 2, ErrorCode.NOT_LEADER_OR_FOLLOWER),
            (None, 1, ErrorCode.NONE),
        ],
    )
    def test_topics_by_id(self, hosting: Hosting, topic: str | None, number: int, code: ErrorCode) -> None:
        hosting.create_topic("t", number=1)
        hosting.create_topic("away", number=2, replicas=(2,), leader=2)
        wanted = wants(topic=topic, id_=topic_id(number) if number else ZERO_UUID)
        assert only(read(hosting, wanted)).error_code == code

    def test_the_id_of_a_deleted_topic_is_unknown(self, hosting: Hosting) -> None:
        id_ = hosting.create_topic("t")
        hosting.delete_topic(id_)
        assert only(read(hosting, wants(topic=None, id_=id_))).error_code == ErrorCode.UNKNOWN_TOPIC_ID

    def test_an_index_that_a_topic_by_id_does_not_have(self, hosting: Hosting) -> None:
        id_ = hosting.create_topic("t")
        wanted = wants(topic=None, id_=id_, index=1)
        with pytest.raises(KafkaError, match="t-1 does not exist") as refused:
            hosting.replicas.partition_for_fetch(wanted)
        assert refused.value.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert wanted.topic == "t"
        with pytest.raises(KafkaError, match="u-3 does not exist"):
            hosting.replicas.partition_for_fetch(wants(topic="u", id_=topic_id(9), index=3))


def test_reads_are_counted_and_so_are_failures(hosting: Hosting) -> None:
    hosting.create_topic("t", replicas=(NODE, 2))
    hosting.append("t", b"a")
    partition = hosting.replicas.partition("t", 0)

    class Failing:
        def partition_for_fetch(self, wanted: FetchPartition) -> Partition:
            return partition

        def follower_fetched(self, partition: Partition, replica_id: int, *, has_moved: bool) -> None:
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)

        def preferred_read_replica(self, partition: Partition, fetch_offset: int, params: FetchParams) -> int:
            return -1

        def holds_back(self, partition: Partition) -> bool:
            return False

    read(hosting, wants(0), wants(9))
    traffic = partition.topic.traffic
    assert (traffic.fetches, traffic.failed_fetches) == (2, 0), "an offset out of range is the client's error"
    params = FetchParams(17, replica_id=2, max_wait_ms=0, min_bytes=1, max_bytes=1000, isolation_level=0)
    found = read_partitions(params, [wants(1)], Failing())
    assert only(found).error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert (traffic.fetches, traffic.failed_fetches) == (3, 1)
