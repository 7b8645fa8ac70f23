from __future__ import annotations

import asyncio
from typing import Any

import pytest

from barnabas.api import fetch
from barnabas.log.log_config import LogConfig
from barnabas.log.partition_log import AppendOrigin
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import FetchRequest, FetchResponse, RegisterBrokerRecord
from barnabas.protocol.primitives import ZERO_UUID
from barnabas.records.control import build_end_transaction_marker
from barnabas.records.record import iter_records
from barnabas.records.record_batch import iter_batches
from barnabas.replication.fetch_reader import Reading
from barnabas.steps import step
from tests.replication.hosting import NODE, Hosting, batch, topic_id

LATEST = 18
MB = 1 << 20


def part(
    index: int = 0, offset: int = 0, max_bytes: int = MB, *, epoch: int = -1, last_epoch: int = -1
) -> FetchRequest.FetchPartition:
    return FetchRequest.FetchPartition(
        partition=index,
        fetch_offset=offset,
        partition_max_bytes=max_bytes,
        current_leader_epoch=epoch,
        last_fetched_epoch=last_epoch,
    )


def request(
    *partitions: FetchRequest.FetchPartition,
    topic: str = "t",
    id_: bytes = ZERO_UUID,
    wait_ms: int = 0,
    min_bytes: int = 1,
    max_bytes: int = 50 * MB,
    isolation_level: int = 0,
    session: tuple[int, int] = (0, -1),
    **fields: Any,
) -> FetchRequest:
    topics = [FetchRequest.FetchTopic(topic=topic, topic_id=id_, partitions=list(partitions))] if partitions else []
    return FetchRequest(
        max_wait_ms=wait_ms,
        min_bytes=min_bytes,
        max_bytes=max_bytes,
        isolation_level=isolation_level,
        session_id=session[0],
        session_epoch=session[1],
        topics=topics,
        **fields,
    )


def ask(hosting: Hosting, request: FetchRequest, version: int = 12) -> Any:
    return step(fetch.handle(hosting.context(1, version), request), hosting.loop)


def answers(response: Any) -> list[FetchResponse.PartitionData]:
    assert isinstance(response, FetchResponse)
    assert response.error_code == 0
    return [data for topic in response.responses for data in topic.partitions]


def values(data: FetchResponse.PartitionData) -> list[bytes | None]:
    records: Any = data.records
    read = records if isinstance(records, bytes) else records.read()
    return [r.value for at, header in iter_batches(read) for r in iter_records(read[at : at + header.size])]


def one(hosting: Hosting, partition: FetchRequest.FetchPartition, version: int = 12, **options: Any) -> Any:
    (data,) = answers(ask(hosting, request(partition, **options), version))
    return data


def open_logs(hosting: Hosting, name: str, partitions: int) -> None:
    """Open the logs beforehand: a Fetch that opens many gives others their turn."""
    for index in range(partitions):
        assert hosting.replicas.partition(name, index).log.log_end_offset == 0


@pytest.mark.parametrize("version", range(4, LATEST + 1))
def test_every_version_over_the_wire(hosting: Hosting, version: int) -> None:
    id_ = hosting.create_topic("t", 2)
    hosting.append("t", b"a", b"b")
    wire = request(part(0), part(1), id_=id_).encode(version)
    response = ask(hosting, FetchRequest.decode(wire, version), version)
    parts = response.encode_parts(version)
    sent = b"".join(bytes(piece) if isinstance(piece, bytearray) else piece.read() for piece in parts)
    read = FetchResponse.decode(sent, version)
    first, second = answers(read)
    assert (first.high_watermark, first.last_stable_offset) == (2, 2)
    assert values(FetchResponse.PartitionData(records=bytes(first.records))) == [b"a", b"b"]  # type: ignore[arg-type]
    assert second.records is not None
    assert len(second.records) == 0, "empty, not null"  # type: ignore[arg-type]
    (topic,) = read.responses
    assert (topic.topic, topic.topic_id) == (("t", ZERO_UUID) if version < 13 else ("", id_))


class TestReading:
    def test_an_offset_inside_a_batch_gets_the_whole_batch(self, hosting: Hosting) -> None:
        hosting.create_topic("t")
        hosting.append("t", b"a", b"b", b"c")
        hosting.append("t", b"d")
        assert values(one(hosting, part(offset=2))) == [b"a", b"b", b"c", b"d"]

    def test_the_first_batch_is_whole_whatever_the_limits(self, hosting: Hosting) -> None:
        """KIP-74."""
        hosting.create_topic("t", 2)
        for index in (0, 0, 1):
            hosting.append("t", b"x" * 1000, index=index)
        first, second = answers(ask(hosting, request(part(0, 0, 10), part(1), max_bytes=5)))
        assert values(first) == [b"x" * 1000]
        assert values(second) == []

    def test_limits_apply_after_the_first_batch(self, hosting: Hosting) -> None:
        hosting.create_topic("t", 3)
        for index in (0, 1, 1, 2):
            hosting.append("t", b"x" * 1000, index=index)
        sizes = [len(values(data)) for data in answers(ask(hosting, request(*map(part, range(3)), max_bytes=2500)))]
        assert sizes == [1, 1, 0]

    def test_the_broker_s_limit_counts_too(self, hosting: Hosting) -> None:
        hosting.create_topic("t")
        for _ in range(3):
            hosting.append("t", b"x" * 1000)
        hosting.services.config.fetch_max_bytes = 2300
        assert len(values(one(hosting, part()))) == 2

    def test_the_end_of_the_log_is_empty(self, hosting: Hosting) -> None:
        hosting.create_topic("t")
        hosting.append("t", b"a")
        data = one(hosting, part(offset=1))
        assert (data.error_code, data.high_watermark, data.log_start_offset, data.records) == (0, 1, 0, b"")

    @pytest.mark.parametrize("offset", [-1, 0, 4])
    def test_outside_the_log(self, hosting: Hosting, offset: int) -> None:
        hosting.create_topic("t")
        hosting.append("t", b"a", b"b", b"c")
        hosting.replicas.partition("t", 0).log.delete_records_before(2)
        data = one(hosting, part(offset=offset), wait_ms=1000)
        assert data.error_code == ErrorCode.OFFSET_OUT_OF_RANGE
        assert (data.high_watermark, data.last_stable_offset, data.log_start_offset) == (-1, -1, -1)
        assert data.aborted_transactions is None

    def test_uncommitted_records_are_not_returned(self, hosting: Hosting) -> None:
        hosting.create_topic("t", replicas=(NODE, 2))
        hosting.append("t", b"a")
        hosting.append("t", b"b")
        assert values(one(hosting, part())) == []
        assert one(hosting, part(offset=2)).error_code == 0, "between high watermark and log end there is nothing yet"
        hosting.replicas.partition("t", 0).update_follower(2, 1)
        assert values(one(hosting, part())) == [b"a"]

    def test_a_follower_reads_to_the_end_and_moves_the_high_watermark(self, hosting: Hosting) -> None:
        hosting.create_topic("t", replicas=(NODE, 2))
        hosting.append("t", b"a")
        hosting.append("t", b"b")
        assert values(one(hosting, part(offset=1), replica_id=2)) == [b"b"]
        assert hosting.replicas.partition("t", 0).log.high_watermark == 1

    @pytest.mark.parametrize(
        ("version", "epoch", "code"), [(14, 4, 0), (15, -1, 0), (15, 5, 0), (15, 4, 6), (17, 4, 6)]
    )
    def test_a_follower_that_has_restarted_since(self, hosting: Hosting, version: int, epoch: int, code: int) -> None:
        """KIP-903: a fetch of its earlier incarnation proves nothing."""
        id_ = hosting.create_topic("t", replicas=(NODE, 2))
        hosting.append("t", b"a")
        hosting.replay(RegisterBrokerRecord(broker_id=2, broker_epoch=5))
        asked = request(part(offset=1), id_=id_, replica_id=2)
        asked.replica_state = FetchRequest.ReplicaState(replica_id=2, replica_epoch=epoch)
        (data,) = answers(ask(hosting, asked, version))
        assert (data.error_code, hosting.replicas.partition("t", 0).log.high_watermark) == (code, int(code == 0))

    def test_a_followers_fetch_wakes_requests_that_wait_for_the_commit(self, hosting: Hosting) -> None:
        hosting.create_topic("t", replicas=(NODE, 2))
        consumer = ask(hosting, request(part(), wait_ms=500))
        commit = hosting.replicas.append_internal("t", 0, bytearray(batch(b"a", timestamp=hosting.now_ms())))
        hosting.spin()
        assert not consumer.done()
        assert not commit.done()
        follower = ask(hosting, request(part(offset=1), wait_ms=500, replica_id=2))
        assert commit.result() == 0
        hosting.spin()
        assert values(answers(consumer.result())[0]) == [b"a"]
        assert not follower.done()

    def test_a_node_without_a_replica_is_rejected_as_follower(self, hosting: Hosting) -> None:
        hosting.create_topic("t")
        assert one(hosting, part(), replica_id=5).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER

    def test_segments_are_read_one_after_the_other(self, hosting: Hosting) -> None:
        hosting.create_topic("t", config=LogConfig(segment_bytes=200))
        for number in range(10):
            hosting.append("t", b"%d" % number)
        read: list[bytes | None] = []
        while len(read) < 10:
            found = values(one(hosting, part(offset=len(read))))
            assert found
            read += found
        assert read == [b"%d" % number for number in range(10)]


class TestEpochs:
    @pytest.mark.parametrize(
        ("epoch", "code"),
        [
            (-2, ErrorCode.NONE),
            (0, ErrorCode.FENCED_LEADER_EPOCH),
            (1, ErrorCode.NONE),
            (2, ErrorCode.UNKNOWN_LEADER_EPOCH),
        ],
    )
    def test_current_leader_epoch(self, hosting: Hosting, epoch: int, code: ErrorCode) -> None:
        id_ = hosting.create_topic("t")
        hosting.change(id_, leader=NODE)
        assert one(hosting, part(epoch=epoch)).error_code == code

    def test_the_new_leader_is_named_from_version_16(self, hosting: Hosting) -> None:
        id_ = hosting.create_topic("t", replicas=(NODE, 2))
        hosting.change(id_, leader=NODE)
        response = ask(hosting, request(part(epoch=0), id_=id_), 16)
        (data,) = answers(response)
        assert (data.current_leader.leader_id, data.current_leader.leader_epoch) == (NODE, 1)
        assert [(e.node_id, e.host, e.port) for e in response.node_endpoints] == [(NODE, "127.0.0.1", 9092)]
        assert one(hosting, part(epoch=0)).current_leader.leader_id == -1

    @pytest.mark.parametrize("version", [12, 15, 16])
    def test_the_leader_of_a_partition_without_a_replica_here_is_named(self, hosting: Hosting, version: int) -> None:
        endpoint = RegisterBrokerRecord.BrokerEndpoint(name="PLAINTEXT", host="second", port=9, security_protocol=0)
        hosting.replay(RegisterBrokerRecord(broker_id=2, fenced=False, end_points=[endpoint]))
        id_ = hosting.create_topic("t", replicas=(2,), leader=2)
        response = ask(hosting, request(part(), id_=id_), version)
        (data,) = answers(response)
        assert data.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert data.current_leader.leader_id == (2 if version == 16 else -1)
        assert [(e.node_id, e.host) for e in response.node_endpoints] == ([(2, "second")] if version == 16 else [])

    def test_a_diverged_reader_gets_the_diverging_epoch(self, hosting: Hosting) -> None:
        id_ = hosting.create_topic("t")
        for _ in range(3):
            hosting.append("t", b"epoch 0")
        hosting.change(id_, leader=NODE)
        hosting.append("t", b"epoch 1")
        data = one(hosting, part(offset=5, last_epoch=0), wait_ms=1000)
        assert (data.error_code, data.diverging_epoch.epoch, data.diverging_epoch.end_offset) == (0, 0, 3)
        assert values(one(hosting, part(offset=3, last_epoch=0))) == [b"epoch 1"]
        assert one(hosting, part(offset=3, last_epoch=9)).error_code == ErrorCode.OFFSET_OUT_OF_RANGE


class TestUnknown:
    def test_topics_partitions_and_ids(self, hosting: Hosting) -> None:
        hosting.create_topic("t")
        assert one(hosting, part(), topic="nowhere").error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert one(hosting, part(9)).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert one(hosting, part(), 13, id_=topic_id(9)).error_code == ErrorCode.UNKNOWN_TOPIC_ID

    def test_no_topic_id_at_all(self, hosting: Hosting) -> None:
        hosting.create_topic("t")
        assert one(hosting, part(), 13).error_code == ErrorCode.UNKNOWN_TOPIC_ID

    def test_all_unknown_does_not_wait_but_some_unknown_does(self, hosting: Hosting) -> None:
        hosting.create_topic("t")
        assert answers(ask(hosting, request(part(9), wait_ms=1000)))
        waiting = ask(hosting, request(part(0), part(9), wait_ms=1000))
        assert isinstance(waiting, asyncio.Future)
        hosting.append("t", b"a")
        hosting.spin()
        assert [data.error_code for data in answers(waiting.result())] == [0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]


class TestLongPoll:
    def test_records_end_the_wait(self, hosting: Hosting) -> None:
        hosting.create_topic("t", 2)
        waiting = ask(hosting, request(part(0), part(1), wait_ms=500))
        hosting.advance(499)
        assert not waiting.done()
        hosting.append("t", b"a", index=1)
        assert not waiting.done(), "the producer is answered first"
        hosting.spin()
        assert [values(data) for data in answers(waiting.result())] == [[], [b"a"]]
        assert not hosting.replicas.delayed_fetches.watched

    def test_the_timeout_ends_the_wait(self, hosting: Hosting) -> None:
        hosting.create_topic("t")
        waiting = ask(hosting, request(part(), wait_ms=500))
        hosting.advance(500)
        assert [values(data) for data in answers(waiting.result())] == [[]]

    def test_no_wait_is_no_wait(self, hosting: Hosting) -> None:
        hosting.create_topic("t")
        assert answers(ask(hosting, request(part(), wait_ms=0)))
        assert answers(ask(hosting, request(part(), wait_ms=500, min_bytes=0)))

    def test_min_bytes_are_gathered_over_appends_and_partitions(self, hosting: Hosting) -> None:
        hosting.create_topic("t", 2)
        size = len(batch(b"x" * 100))
        hosting.append("t", b"x" * 100)
        waiting = ask(hosting, request(part(0), part(1), wait_ms=500, min_bytes=3 * size))
        hosting.append("t", b"x" * 100, index=1)
        hosting.spin()
        assert not waiting.done()
        hosting.append("t", b"x" * 100, index=0)
        hosting.spin()
        assert [len(values(data)) for data in answers(waiting.result())] == [2, 1]

    def test_one_wake_up_for_all_appends_of_a_turn(self, hosting: Hosting) -> None:
        hosting.create_topic("t", 2)
        waiting = ask(hosting, request(part(0), part(1), wait_ms=500))
        hosting.append("t", b"a", index=0)
        hosting.append("t", b"b", index=1)
        hosting.spin()
        assert [values(data) for data in answers(waiting.result())] == [[b"a"], [b"b"]]

    def test_other_partitions_do_not_matter(self, hosting: Hosting) -> None:
        hosting.create_topic("t", 2)
        waiting = ask(hosting, request(part(0), wait_ms=500))
        hosting.append("t", b"a", index=1)
        hosting.spin()
        assert not waiting.done()

    def test_a_closed_connection_leaves_nothing_behind(self, hosting: Hosting) -> None:
        hosting.create_topic("t")
        waiting = [ask(hosting, request(part(), wait_ms=500_000)) for _ in range(100)]
        assert hosting.replicas.delayed_fetches.watched == 100
        for future in waiting:
            future.cancel()
        hosting.spin()
        assert not hosting.replicas.delayed_fetches.watched
        assert not hosting.replicas.delayed_fetches.watchers

    def test_a_deleted_topic_ends_the_wait(self, hosting: Hosting) -> None:
        id_ = hosting.create_topic("t")
        waiting = ask(hosting, request(part(), wait_ms=500))
        hosting.delete_topic(id_)
        hosting.spin()
        assert answers(waiting.result())[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    def test_a_leader_that_steps_down_ends_the_wait(self, hosting: Hosting) -> None:
        id_ = hosting.create_topic("t", replicas=(NODE, 2))
        waiting = ask(hosting, request(part(epoch=0), wait_ms=500))
        hosting.change(id_, leader=2)
        hosting.spin()
        assert answers(waiting.result())[0].error_code == ErrorCode.FENCED_LEADER_EPOCH

    @pytest.mark.parametrize("wake", ["append", "timeout"])
    def test_an_exception_does_not_leave_the_client_waiting(
        self, hosting: Hosting, monkeypatch: pytest.MonkeyPatch, wake: str
    ) -> None:
        hosting.create_topic("t")
        waiting = ask(hosting, request(part(), wait_ms=500))

        def broken(*_: Any, **__: Any) -> None:
            raise ZeroDivisionError

        monkeypatch.setattr(Reading, "read", broken)
        if wake == "append":
            hosting.append("t", b"a")
            hosting.spin()
        else:
            hosting.advance(500)
        assert isinstance(waiting.exception(), ZeroDivisionError)
        assert not hosting.replicas.delayed_fetches.watched

    def test_a_waiting_fetch_blocks_nobody(self, hosting: Hosting) -> None:
        hosting.create_topic("t", 2)
        waiting = ask(hosting, request(part(0), wait_ms=500))
        hosting.append("t", b"a", index=1)
        assert values(one(hosting, part(1))) == [b"a"]
        assert not waiting.done()


class TestTransactions:
    """Traps 7 and 8. Transactions are not served yet; their batches are, as a coordinator or a copied log brings them."""

    def write(self, hosting: Hosting, *steps: str) -> None:
        """`t1` a transactional record of producer 1, `c1` and `a1` its end, `p` a plain record."""
        sequences: dict[int, int] = {}
        for each in steps:
            producer = int(each[1:] or 0)
            if each[0] == "t":
                sequence = sequences.get(producer, 0)
                sequences[producer] = sequence + 1
                records = batch(
                    each.encode(),
                    timestamp=hosting.now_ms(),
                    producer_id=producer,
                    producer_epoch=0,
                    base_sequence=sequence,
                    transactional=True,
                )
            elif each[0] in "ca":
                records = memoryview(
                    build_end_transaction_marker(
                        commit=each[0] == "c",
                        coordinator_epoch=0,
                        producer_id=producer,
                        producer_epoch=0,
                        timestamp=hosting.now_ms(),
                    )
                )
            else:
                records = batch(b"p", timestamp=hosting.now_ms())
            hosting.replicas.append("t", 0, records, 1, AppendOrigin.COORDINATOR)

    def test_read_committed_stops_at_the_last_stable_offset(self, hosting: Hosting) -> None:
        hosting.create_topic("t")
        self.write(hosting, "p", "t1", "p")
        data = one(hosting, part(), isolation_level=1)
        assert (data.high_watermark, data.last_stable_offset) == (3, 1)
        assert values(data) == [b"p"]
        assert data.aborted_transactions == []
        assert values(one(hosting, part())) == [b"p", b"t1", b"p"]
        assert one(hosting, part()).aborted_transactions is None

    def test_markers_are_sent_and_aborted_transactions_listed_in_order(self, hosting: Hosting) -> None:
        hosting.create_topic("t")
        self.write(hosting, "t1", "t2", "a2", "a1", "t3", "c3")
        data = one(hosting, part(), isolation_level=1)
        assert data.last_stable_offset == 6
        batches = list(iter_batches(data.records.read()))
        assert [header.is_control for _, header in batches] == [False, False, True, True, False, True]
        aborted = [(a.producer_id, a.first_offset) for a in data.aborted_transactions]
        assert sorted(aborted) == [(1, 0), (2, 1)]

    def test_a_read_committed_fetch_waits_for_the_end_of_the_transaction(self, hosting: Hosting) -> None:
        hosting.create_topic("t")
        waiting = ask(hosting, request(part(), wait_ms=500, isolation_level=1))
        self.write(hosting, "t1")
        hosting.spin()
        assert not waiting.done()
        self.write(hosting, "c1")
        hosting.spin()
        assert len(list(iter_batches(answers(waiting.result())[0].records.read()))) == 2  # type: ignore[union-attr]


class TestSessions:
    def test_only_changed_partitions_are_in_the_response(self, hosting: Hosting) -> None:
        hosting.create_topic("t", 3)
        hosting.append("t", b"a", index=0)
        response = ask(hosting, request(*(part(index) for index in range(3)), session=(0, 0)))
        session = response.session_id
        assert session > 0
        assert [data.partition_index for data in answers(response)] == [0, 1, 2]

        response = ask(hosting, request(part(0, 1), session=(session, 1)))
        assert answers(response) == []
        hosting.append("t", b"b", index=2)
        response = ask(hosting, request(session=(session, 2)))
        assert [(data.partition_index, values(data)) for data in answers(response)] == [(2, [b"b"])]
        # Not acknowledged by a new offset: it is sent again.
        response = ask(hosting, request(session=(session, 3)))
        assert [data.partition_index for data in answers(response)] == [2]
        response = ask(hosting, request(part(2, 1), session=(session, 4)))
        assert answers(response) == []

    def test_a_moved_log_start_is_a_change(self, hosting: Hosting) -> None:
        hosting.create_topic("t")
        hosting.append("t", b"a", b"b")
        session = ask(hosting, request(part(0, 2), session=(0, 0))).session_id
        hosting.replicas.partition("t", 0).log.delete_records_before(1)
        (data,) = answers(ask(hosting, request(session=(session, 1))))
        assert (data.log_start_offset, data.records) == (1, b"")
        assert answers(ask(hosting, request(session=(session, 2)))) == []

    def test_a_waiting_session_is_woken_by_any_of_its_partitions(self, hosting: Hosting) -> None:
        hosting.create_topic("t", 50)
        open_logs(hosting, "t", 50)
        session = ask(hosting, request(*(part(index) for index in range(50)), session=(0, 0))).session_id
        waiting = ask(hosting, request(session=(session, 1), wait_ms=500))
        hosting.append("t", b"a", index=33)
        hosting.spin()
        (data,) = answers(waiting.result())
        assert (data.partition_index, values(data)) == (33, [b"a"])

    def test_partitions_take_turns_under_a_limit(self, hosting: Hosting) -> None:
        hosting.create_topic("t", 3)
        for index in range(3):
            for _ in range(3):
                hosting.append("t", b"x" * 100, index=index)
        session = ask(hosting, request(*(part(index, 3) for index in range(3)), session=(0, 0))).session_id
        response = ask(hosting, request(*(part(index) for index in range(3)), session=(session, 1), max_bytes=1))
        turns = [data.partition_index for data in answers(response) if values(data)]
        for epoch in (2, 3, 4):
            response = ask(hosting, request(session=(session, epoch), max_bytes=1))
            turns += [data.partition_index for data in answers(response) if values(data)]
        assert turns == [0, 1, 2, 0]

    def test_forgotten_partitions_are_not_in_the_response(self, hosting: Hosting) -> None:
        hosting.create_topic("t", 2)
        session = ask(hosting, request(part(0), part(1), session=(0, 0))).session_id
        hosting.append("t", b"a", index=0)
        forgotten = [FetchRequest.ForgottenTopic(topic="t", partitions=[0])]
        assert answers(ask(hosting, request(session=(session, 1), forgotten_topics_data=forgotten))) == []

    def test_errors_are_repeated_until_they_end(self, hosting: Hosting) -> None:
        hosting.create_topic("t")
        session = ask(hosting, request(part(0), part(3), session=(0, 0))).session_id
        for epoch in (1, 2):
            (data,) = answers(ask(hosting, request(session=(session, epoch))))
            assert data.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    def test_a_recreated_topic_is_noticed_in_a_session_of_ids(self, hosting: Hosting) -> None:
        id_ = hosting.create_topic("t")
        session = ask(hosting, request(part(), id_=id_, session=(0, 0)), 13).session_id
        hosting.delete_topic(id_)
        (data,) = answers(ask(hosting, request(session=(session, 1)), 13))
        assert data.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        hosting.create_topic("t", number=70)
        (data,) = answers(ask(hosting, request(session=(session, 2)), 13))
        assert data.error_code == ErrorCode.INCONSISTENT_TOPIC_ID

    def test_idle_partitions_are_not_read_again(self, hosting: Hosting) -> None:
        hosting.create_topic("t", 100)
        open_logs(hosting, "t", 100)
        asked = ask(hosting, request(*(part(index) for index in range(100)), session=(0, 0)))
        session = hosting.sessions.get(asked.session_id)
        assert session is not None
        assert len(session.ready) == 100
        waiting = ask(hosting, request(session=(session.session_id, 1), wait_ms=500))
        assert not session.ready
        hosting.append("t", b"a", index=7)
        hosting.append("t", b"b", index=7)
        assert [wanted.index for wanted in session.ready] == [7]
        hosting.spin()
        (data,) = answers(waiting.result())
        assert values(data) == [b"a", b"b"]
        assert list(session.ready), "until the client asks from behind them, they are offered again"
        ask(hosting, request(part(7, 2), session=(session.session_id, 2), wait_ms=500))
        assert not session.ready

    @pytest.mark.parametrize("ending", ["close", "replace", "forget", "evict"])
    def test_a_closed_session_observes_no_partition(self, hosting: Hosting, ending: str) -> None:
        hosting.create_topic("t", 3)
        parts = [part(index) for index in range(3)]
        id_ = ask(hosting, request(*parts, session=(0, 0))).session_id
        observers = [hosting.replicas.partition("t", index).observers for index in range(3)]
        assert [len(known or ()) for known in observers] == [1, 1, 1]
        if ending == "close":
            ask(hosting, request(session=(id_, -1)))
        elif ending == "replace":
            ask(hosting, request(parts[0], session=(id_, 0)))
        elif ending == "forget":
            forgotten = [FetchRequest.ForgottenTopic(topic="t", partitions=[0, 1, 2])]
            ask(hosting, request(session=(id_, 1), forgotten_topics_data=forgotten))
        else:
            hosting.sessions._slots = 1
            hosting.advance(121_000)
            ask(hosting, request(parts[0], session=(0, 0)))
        expected = [1, 0, 0] if ending in ("replace", "evict") else [0, 0, 0]
        assert [len(known or ()) for known in observers] == expected

    def test_a_new_leader_epoch_reaches_an_idle_partition(self, hosting: Hosting) -> None:
        id_ = hosting.create_topic("t", 2)
        session = ask(hosting, request(part(0, epoch=0), part(1), session=(0, 0))).session_id
        waiting = ask(hosting, request(session=(session, 1), wait_ms=500))
        hosting.change(id_, 0, leader=NODE)
        hosting.spin()
        (data,) = answers(waiting.result())
        assert data.error_code == ErrorCode.FENCED_LEADER_EPOCH

    def test_wrong_epochs_and_ids(self, hosting: Hosting) -> None:
        hosting.create_topic("t")
        session = ask(hosting, request(part(), session=(0, 0))).session_id
        cases = [
            ((session, 7), 12, ErrorCode.INVALID_FETCH_SESSION_EPOCH),
            ((session + 1, 1), 12, ErrorCode.FETCH_SESSION_ID_NOT_FOUND),
            ((session, 1), 13, ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR),
        ]
        for asked, version, code in cases:
            response = ask(hosting, request(session=asked, wait_ms=100), version)
            assert (response.error_code, response.session_id, response.responses) == (code, 0, [])
