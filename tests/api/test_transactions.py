"""The requests of transactions on real logs: begin, add, produce, commit offsets, end, describe; and their errors."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import (
    DescribeTransactionsRequest,
    ListTransactionsRequest,
    OffsetFetchRequest,
)
from barnabas.protocol.primitives import Uuid
from tests.api.transaction_hosting import TransactionHosting
from tests.coordinator.shards import shard_of
from tests.replication.hosting import Hosting

OK = ErrorCode.NONE


@pytest.fixture
def host(hosting: Hosting) -> TransactionHosting:
    return TransactionHosting(hosting)


class TestInitProducerId:
    @pytest.mark.parametrize("version", range(6))
    def test_each_call_bumps_the_epoch(self, host: TransactionHosting, version: int) -> None:
        assert [host.producer("tx", version) for _ in range(3)] == [(4000, 0), (4000, 1), (4000, 2)]
        assert host.producer("other", version) == (4001, 0)

    @pytest.mark.parametrize("timeout_ms", [0, -1, 900_001])
    def test_the_timeout_is_bounded(self, host: TransactionHosting, timeout_ms: int) -> None:
        answer = host.init(transaction_timeout_ms=timeout_ms)
        assert answer.error_code == ErrorCode.INVALID_TRANSACTION_TIMEOUT
        assert (answer.producer_id, answer.producer_epoch) == (-1, -1)

    def test_a_producer_bumps_its_own_epoch_and_may_repeat_that(self, host: TransactionHosting) -> None:
        producer = host.producer()
        for _ in range(2):
            assert host.producer(producer_id=producer[0], producer_epoch=producer[1]) == (4000, 1)

    @pytest.mark.parametrize(
        ("version", "error"), [(3, ErrorCode.INVALID_PRODUCER_EPOCH), (4, ErrorCode.PRODUCER_FENCED)]
    )
    def test_a_zombie_is_fenced(self, host: TransactionHosting, version: int, error: ErrorCode) -> None:
        old = host.producer()
        host.producer()
        assert host.init("tx", version, producer_id=old[0], producer_epoch=old[1]).error_code == error
        assert host.init("tx", version, producer_id=99, producer_epoch=0).error_code == error

    def test_an_open_transaction_is_aborted_first(self, host: TransactionHosting) -> None:
        producer = host.producer()
        assert host.produce(producer, 0, b"lost") == OK
        assert host.init().error_code == ErrorCode.CONCURRENT_TRANSACTIONS
        assert host.contents() == ["lost", "ABORT/1"]
        assert host.producer() == (4000, 2)
        assert host.produce(producer, 1, b"late") == ErrorCode.INVALID_PRODUCER_EPOCH

    def test_without_a_coordinator(self, hosting: Hosting) -> None:
        host = TransactionHosting(hosting, create=False)
        assert host.init().error_code == ErrorCode.NOT_COORDINATOR

    def test_two_phase_commit_must_be_allowed(self, host: TransactionHosting) -> None:
        answer = host.init("tx", 6, enable2_pc=True)
        assert answer.error_code == ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED


class TestVersionTwo:
    def test_commit(self, host: TransactionHosting) -> None:
        producer = host.producer()
        assert [host.produce(producer, 0, b"a"), host.produce(producer, 1, b"b")] == [OK, OK]
        assert host.produce(producer, 0, b"c", index=1) == OK
        assert host.log().last_stable_offset == 0
        answer = host.end(producer)
        assert (answer.error_code, answer.producer_id, answer.producer_epoch) == (OK, 4000, 1)
        assert host.contents() == ["a", "b", "COMMIT/1"]
        assert host.contents(index=1) == ["c", "COMMIT/1"]
        assert host.log().last_stable_offset == 3

    def test_the_next_transaction_uses_the_new_epoch(self, host: TransactionHosting) -> None:
        producer = host.producer()
        host.produce(producer, 0, b"a")
        ended = host.end(producer)
        following = (ended.producer_id, ended.producer_epoch)
        assert host.produce(producer, 1, b"late") == ErrorCode.INVALID_PRODUCER_EPOCH
        assert host.produce(following, 1, b"gap") == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        assert host.produce(following, 0, b"b") == OK
        assert host.end(following, commit=False).producer_epoch == 2
        assert host.contents() == ["a", "COMMIT/1", "b", "ABORT/2"]

    @pytest.mark.parametrize("commit", [True, False])
    def test_a_repeated_end_gets_the_same_response(self, host: TransactionHosting, commit: bool) -> None:
        producer = host.producer()
        host.produce(producer, 0, b"a")
        first = host.end(producer, commit)
        again = host.end(producer, commit)
        assert (again.error_code, again.producer_epoch) == (OK, first.producer_epoch)
        other = ErrorCode.INVALID_TXN_STATE if commit else ErrorCode.PRODUCER_FENCED
        assert host.end(producer, not commit).error_code == other
        assert len(host.contents()) == 2

    def test_the_table_of_ends(self, host: TransactionHosting) -> None:
        empty = host.producer()
        assert host.end((4000, -1), False).error_code == ErrorCode.PRODUCER_FENCED
        assert host.end(empty, True).error_code == ErrorCode.INVALID_TXN_STATE
        aborted = host.end(empty, False)
        assert (aborted.error_code, aborted.producer_epoch) == (OK, 1)
        current = (4000, 1)
        assert host.end(current, True).error_code == ErrorCode.INVALID_TXN_STATE
        assert host.end(empty, True).error_code == ErrorCode.PRODUCER_FENCED
        assert host.end(current, False).producer_epoch == 2
        assert host.end((77, 0), False).error_code == ErrorCode.INVALID_PRODUCER_ID_MAPPING
        assert host.end(empty, transactional_id="unknown").error_code == ErrorCode.INVALID_PRODUCER_ID_MAPPING
        assert host.end(empty, transactional_id="").error_code == ErrorCode.INVALID_REQUEST

    def test_a_transaction_in_a_deleted_topic_ends(self, host: TransactionHosting) -> None:
        producer = host.producer()
        host.produce(producer, 0, b"a")
        host.hosting.delete_topic(host.topic_id)
        assert host.end(producer).error_code == OK
        (state,) = host.ask(65, DescribeTransactionsRequest(transactional_ids=["tx"]), 0).transaction_states
        assert state.transaction_state == "CompleteCommit"

    def test_an_unknown_producer_may_not_begin_by_producing(self, host: TransactionHosting) -> None:
        assert host.produce((9, 0), 0, b"a") == ErrorCode.INVALID_PRODUCER_ID_MAPPING
        assert host.contents() == []

    def test_plain_batches_are_rejected_while_a_transaction_is_open(self, host: TransactionHosting) -> None:
        producer = host.producer()
        host.produce(producer, 0, b"a")
        refused = host.produce(producer, 1, b"b", transactional=False, transactional_id=None)
        assert refused == ErrorCode.INVALID_TXN_STATE

    def test_a_retry_of_a_produce_is_a_duplicate_also_after_the_end_of_verification(
        self, host: TransactionHosting
    ) -> None:
        producer = host.producer()
        assert [host.produce(producer, 0, b"a") for _ in range(2)] == [OK, OK]
        assert host.contents() == ["a"]

    def test_exhausted_epochs_rotate_the_producer_id(self, host: TransactionHosting) -> None:
        producer = host.producer()
        shard = shard_of(host.transactions, host.transactions.partition_of("tx"))
        from dataclasses import replace

        shard.transactions["tx"] = replace(shard.transactions["tx"], producer_epoch=32766)
        producer = (producer[0], 32766)
        assert host.produce(producer, 0, b"a") == OK
        ended = host.end(producer)
        assert (ended.producer_id, ended.producer_epoch) == (4001, 0)
        assert host.contents() == ["a", "COMMIT/32767"]
        again = host.end(producer)
        assert (again.error_code, again.producer_id, again.producer_epoch) == (OK, 4001, 0)
        assert host.produce((4001, 0), 0, b"b") == OK


class TestVersionOne:
    def test_partitions_are_added_before_they_are_produced_to(self, host: TransactionHosting) -> None:
        producer = host.producer()
        assert host.produce(producer, 0, b"a", version=10) == ErrorCode.INVALID_TXN_STATE
        assert host.produce(producer, 0, b"a", version=11) == ErrorCode.TRANSACTION_ABORTABLE
        assert host.add(producer, 0) == [OK]
        assert host.produce(producer, 0, b"a", version=10) == OK
        assert host.produce(producer, 0, b"b", version=10, index=1) == ErrorCode.INVALID_TXN_STATE
        ended = host.end(producer, version=4)
        assert (ended.error_code, ended.producer_id, ended.producer_epoch) == (OK, -1, -1)
        assert host.contents() == ["a", "COMMIT/0"]

    def test_the_epoch_stays_and_the_sequence_continues(self, host: TransactionHosting) -> None:
        producer = host.producer()
        for sequence in range(3):
            assert host.add(producer, 0) == [OK]
            assert host.produce(producer, sequence, b"a", version=9) == OK
            assert host.end(producer, version=3).error_code == OK
        assert host.contents() == ["a", "COMMIT/0"] * 3

    @pytest.mark.parametrize("level", [0, 1])
    @pytest.mark.parametrize("commit", [True, False])
    def test_every_level_of_the_feature(self, host: TransactionHosting, level: int, commit: bool) -> None:
        host.level = level
        producer = host.producer()
        for sequence in range(2):
            assert host.add(producer, 0) == [OK]
            assert host.add_offsets(producer) == OK
            assert host.produce(producer, sequence, b"a", version=10) == OK
            assert host.commit_offset(producer, 7 + sequence, version=3) == OK
            assert host.end(producer, commit, version=4).error_code == OK
            (state,) = host.ask(65, DescribeTransactionsRequest(transactional_ids=["tx"]), 0).transaction_states
            assert state.transaction_state == ("CompleteCommit" if commit else "CompleteAbort")
            host.elect_again(sequence + 1)
        assert host.contents() == ["a", "COMMIT/0" if commit else "ABORT/0"] * 2

    def test_a_late_batch_of_an_ended_transaction_is_rejected(self, host: TransactionHosting) -> None:
        producer = host.producer()
        host.add(producer, 0)
        host.produce(producer, 0, b"a", version=10)
        host.end(producer, version=4)
        assert host.produce(producer, 1, b"late", version=10) == ErrorCode.INVALID_TXN_STATE

    @pytest.mark.parametrize("commit", [True, False])
    def test_a_repeated_end(self, host: TransactionHosting, commit: bool) -> None:
        producer = host.producer()
        assert host.end(producer, commit, version=4).error_code == ErrorCode.INVALID_TXN_STATE
        host.add(producer, 0)
        assert [host.end(producer, commit, version=4).error_code for _ in range(2)] == [OK, OK]
        assert host.end(producer, not commit, version=4).error_code == ErrorCode.INVALID_TXN_STATE

    @pytest.mark.parametrize(
        ("version", "error"), [(1, ErrorCode.INVALID_PRODUCER_EPOCH), (2, ErrorCode.PRODUCER_FENCED)]
    )
    def test_old_versions_get_invalid_producer_epoch(
        self, host: TransactionHosting, version: int, error: ErrorCode
    ) -> None:
        old = host.producer()
        host.producer()
        assert host.add(old, 0, version=version) == [error]
        assert host.end(old, version=version).error_code == error
        assert host.add_offsets(old, version=version) == error

    def test_verification_can_be_switched_off(self, hosting: Hosting, host: TransactionHosting) -> None:
        from barnabas.log.log_config import LogConfig

        hosting.create_topic("free", config=LogConfig())
        hosting.reconfigure("t", LogConfig())
        assert host.produce(host.producer(), 0, b"a", version=10) == OK


class TestAddPartitions:
    def test_one_missing_partition_rejects_all(self, host: TransactionHosting) -> None:
        codes = host.add(host.producer(), 0, 1, 2)
        assert codes == [
            ErrorCode.OPERATION_NOT_ATTEMPTED,
            ErrorCode.OPERATION_NOT_ATTEMPTED,
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ]

    def test_topics_of_coordinators_are_not_for_clients(self, host: TransactionHosting) -> None:
        codes = host.add(host.producer(), 0, topic="__transaction_state")
        assert codes == [ErrorCode.TOPIC_AUTHORIZATION_FAILED]

    def test_wrong_ids_and_epochs_are_rejected(self, host: TransactionHosting) -> None:
        producer = host.producer()
        assert host.add((99, 0), 0) == [ErrorCode.INVALID_PRODUCER_ID_MAPPING]
        assert host.add(producer, 0, transactional_id="nobody") == [ErrorCode.INVALID_PRODUCER_ID_MAPPING]
        assert host.add(producer, 0, transactional_id="") == [ErrorCode.INVALID_REQUEST]
        assert host.add((producer[0], 5), 0) == [ErrorCode.PRODUCER_FENCED]

    def test_verifying_adds_nothing(self, host: TransactionHosting) -> None:
        producer = host.producer()
        asked = host.add_batched(producer, 0, 1, verify_only=True)
        assert asked == [ErrorCode.TRANSACTION_ABORTABLE] * 2
        assert host.add_batched(producer, 0, verify_only=False) == [OK]
        assert host.add_batched(producer, 0, 1, verify_only=True) == [OK, ErrorCode.TRANSACTION_ABORTABLE]
        assert host.add_batched(producer, 0, verify_only=True, transactional_id="x") == [
            ErrorCode.INVALID_PRODUCER_ID_MAPPING
        ]


class TestOffsets:
    def fetch(self, host: TransactionHosting, *, stable: bool) -> tuple[int, int]:
        wanted = OffsetFetchRequest.OffsetFetchRequestGroup(
            group_id="g",
            topics=[OffsetFetchRequest.OffsetFetchRequestTopics(name="t", partition_indexes=[0])],
        )
        answer = host.ask(9, OffsetFetchRequest(groups=[wanted], require_stable=stable), 8)
        found = answer.groups[0].topics[0].partitions[0]
        return found.committed_offset, found.error_code

    @pytest.mark.parametrize("commit", [True, False])
    def test_offsets_count_when_the_transaction_commits(self, host: TransactionHosting, commit: bool) -> None:
        producer = host.producer()
        assert host.commit_offset(producer, 7) == OK
        assert self.fetch(host, stable=False) == (-1, OK)
        assert self.fetch(host, stable=True) == (-1, ErrorCode.UNSTABLE_OFFSET_COMMIT)
        host.end(producer, commit)
        assert self.fetch(host, stable=True) == (7 if commit else -1, OK)

    def test_offsets_survive_the_coordinator(self, host: TransactionHosting) -> None:
        producer = host.producer()
        host.commit_offset(producer, 7)
        partition = host.coordinator.partition_of("g")
        host.coordinator.on_resigned(partition)
        host.coordinator.on_elected(partition, 1)
        host.hosting.spin()
        assert self.fetch(host, stable=True) == (-1, ErrorCode.UNSTABLE_OFFSET_COMMIT)
        host.end(producer)
        host.coordinator.on_resigned(partition)
        host.coordinator.on_elected(partition, 2)
        host.hosting.spin()
        assert self.fetch(host, stable=True) == (7, OK)

    def test_before_version_2_the_group_is_added_first(self, host: TransactionHosting) -> None:
        producer = host.producer()
        assert host.commit_offset(producer, 7, version=3) == ErrorCode.INVALID_TXN_STATE
        assert host.commit_offset(producer, 7, version=4) == ErrorCode.TRANSACTION_ABORTABLE
        assert host.add_offsets(producer) == OK
        assert host.commit_offset(producer, 7, version=3) == OK
        assert host.end(producer, version=4).error_code == OK
        assert self.fetch(host, stable=True) == (7, OK)

    @pytest.mark.parametrize(
        ("fields", "error"),
        [
            ({"group_id": ""}, ErrorCode.INVALID_GROUP_ID),
            ({"topic": "unknown"}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
            ({"index": 9}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
            ({"metadata": "x" * 4097}, ErrorCode.OFFSET_METADATA_TOO_LARGE),
            ({"member_id": "m", "generation_id_or_member_epoch": 3}, ErrorCode.ILLEGAL_GENERATION),
            (
                {"member_id": "m", "generation_id_or_member_epoch": 3, "version": 6},
                ErrorCode.GROUP_ID_NOT_FOUND,
            ),
            ({"version": 6, "topic_id": Uuid(b"\7" * 16)}, ErrorCode.UNKNOWN_TOPIC_ID),
            ({"version": 6}, OK),
            ({"version": 0}, ErrorCode.INVALID_TXN_STATE),
        ],
    )
    def test_invalid_commits_are_rejected(
        self, host: TransactionHosting, fields: dict[str, Any], error: ErrorCode
    ) -> None:
        assert host.commit_offset(host.producer(), 7, **fields) == error

    def test_a_fenced_producer(self, host: TransactionHosting) -> None:
        old = host.producer()
        host.commit_offset(old, 7)
        assert host.init().error_code == ErrorCode.CONCURRENT_TRANSACTIONS
        assert host.commit_offset(old, 8) == ErrorCode.INVALID_PRODUCER_EPOCH

    def test_while_the_group_is_loading(self, host: TransactionHosting) -> None:
        producer = host.producer()
        host.coordinator.on_resigned(host.coordinator.partition_of("g"))
        assert host.commit_offset(producer, 7) == ErrorCode.NOT_COORDINATOR


class TestLooking:
    def listed(self, host: TransactionHosting, **filters: Any) -> list[tuple[str, int, str]]:
        answer = host.ask(66, ListTransactionsRequest(**filters), 2)
        assert answer.error_code == OK
        return sorted((t.transactional_id, t.producer_id, t.transaction_state) for t in answer.transaction_states)

    def test_filters(self, host: TransactionHosting) -> None:
        first, second = host.producer("tx"), host.producer("zz")
        host.produce(first, 0, b"a")
        host.hosting.advance(500)
        every = [("tx", first[0], "Ongoing"), ("zz", second[0], "Empty")]
        assert self.listed(host) == every
        assert self.listed(host, state_filters=["Ongoing"]) == every[:1]
        assert self.listed(host, producer_id_filters=[second[0]]) == every[1:]
        assert self.listed(host, transactional_id_pattern="t.") == every[:1]
        assert self.listed(host, transactional_id_pattern="t") == []
        assert self.listed(host, duration_filter=499, state_filters=["Ongoing"]) == every[:1]
        assert self.listed(host, duration_filter=500, state_filters=["Ongoing"]) == []

    def test_the_response_lists_unknown_states(self, host: TransactionHosting) -> None:
        host.producer()
        answer = host.ask(66, ListTransactionsRequest(state_filters=["Nope", "Empty"]), 2)
        assert (answer.unknown_state_filters, len(answer.transaction_states)) == (["Nope"], 1)

    @pytest.mark.parametrize("pattern", ["(", "(?=t)t.", r"(t)\1", "t" * 8193], ids=["syntax", "ahead", "back", "long"])
    def test_a_bad_pattern(self, host: TransactionHosting, pattern: str) -> None:
        """Look-ahead and back references are Python's, and not RE2's."""
        from barnabas.protocol.errors import KafkaError

        with pytest.raises(KafkaError) as refused:
            host.ask(66, ListTransactionsRequest(transactional_id_pattern=pattern), 2)
        assert refused.value.code is ErrorCode.INVALID_REGULAR_EXPRESSION
        assert refused.value.message.startswith(f"Transaction ID pattern `{pattern}` is not a valid regular expression")

    def test_a_pattern_does_not_backtrack(self, host: TransactionHosting) -> None:
        """With Python's `re` each further `a` doubles the time."""
        long = "a" * 1000
        host.producer(long)
        host.producer(long + "!")
        assert [found[0] for found in self.listed(host, transactional_id_pattern="(a+)+$")] == [long]

    def test_describe(self, host: TransactionHosting) -> None:
        producer = host.producer()
        host.produce(producer, 0, b"a")
        host.produce(producer, 0, b"b", index=1)
        request = DescribeTransactionsRequest(transactional_ids=["tx", "nobody", ""])
        known, unknown, empty = host.ask(65, request, 0).transaction_states
        assert (known.transaction_state, known.producer_id, known.producer_epoch) == ("Ongoing", *producer)
        assert known.transaction_timeout_ms == 60_000
        assert known.transaction_start_time_ms > 0
        assert [(topic.topic, topic.partitions) for topic in known.topics] == [("t", [0, 1])]
        assert (unknown.error_code, empty.error_code) == (
            ErrorCode.TRANSACTIONAL_ID_NOT_FOUND,
            ErrorCode.INVALID_REQUEST,
        )


class TestTime:
    def test_a_transaction_is_aborted_after_its_timeout(self, host: TransactionHosting) -> None:
        producer = host.producer(transaction_timeout_ms=15_000)
        host.produce(producer, 0, b"a")
        host.hosting.advance(15_000)
        assert host.contents() == ["a"]
        host.hosting.advance(10_000)
        assert host.contents() == ["a", "ABORT/1"]
        assert host.produce(producer, 1, b"b") == ErrorCode.INVALID_PRODUCER_EPOCH
        assert host.end(producer).error_code == ErrorCode.PRODUCER_FENCED
        assert host.producer() == (4000, 2)

    def test_an_aborted_transaction_of_version_1_fences_too(self, host: TransactionHosting) -> None:
        host.level = 1
        producer = host.producer(transaction_timeout_ms=15_000)
        host.add(producer, 0)
        host.produce(producer, 0, b"a", version=10)
        host.hosting.advance(30_000)
        assert host.contents() == ["a", "ABORT/1"]
        assert host.end(producer, version=4).error_code == ErrorCode.PRODUCER_FENCED

    def test_an_unused_transactional_id_expires(self, hosting: Hosting) -> None:
        host = TransactionHosting(hosting, transactional_id_expiration_ms=50_000, remove_expired_interval_ms=40_000)
        host.producer()
        host.hosting.advance(41_000)
        assert host.end((4000, 0), False).error_code == OK, "used in time"
        host.hosting.advance(40_000)
        assert host.end((4000, 1), True).error_code == ErrorCode.INVALID_TXN_STATE
        host.hosting.advance(40_000)
        assert host.end((4000, 1), True).error_code == ErrorCode.INVALID_PRODUCER_ID_MAPPING


class TestWaiting:
    """A coordinator that cannot answer at once: the markers of the transaction before are still to be written."""

    def block(self, host: TransactionHosting) -> tuple[int, int]:
        """End a transaction whose marker for t-0 cannot be written now; the producer's next epoch."""
        producer = host.producer()
        host.produce(producer, 0, b"a")
        host.hosting.change(host.topic_id, 0, leader=2)
        ended = host.end(producer)
        assert ended.error_code == OK, "the outcome is decided, whatever becomes of the markers"
        return ended.producer_id, ended.producer_epoch

    def test_a_produce_waits_for_a_moment(self, host: TransactionHosting) -> None:
        # Longer than the marker's own retry, so that the order of two timers of one moment does not matter.
        host.transactions.config = replace(host.transactions.config, add_partitions_retry_backoff_max_ms=200)
        producer = self.block(host)
        response = host.produce(producer, 0, b"b", index=1)
        assert not isinstance(response, int)
        assert host.context.holds_order
        host.hosting.change(host.topic_id, 0, leader=1)
        host.hosting.advance(100)
        assert host.contents() == ["a", "COMMIT/1"]
        host.hosting.advance(20)
        assert response.result().responses[0].partition_responses[0].error_code == OK
        assert host.contents(index=1) == ["b"], "its records were kept while it waited"

    def test_a_produce_does_not_wait_for_long(self, host: TransactionHosting) -> None:
        producer = self.block(host)
        response = host.produce(producer, 0, b"b", index=1)
        host.hosting.advance(130)
        code = response.result().responses[0].partition_responses[0].error_code
        assert code == ErrorCode.CONCURRENT_TRANSACTIONS

    def test_a_clock_that_is_set_back_does_not_prolong_the_wait(
        self, host: TransactionHosting, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        producer = self.block(host)
        response = host.produce(producer, 0, b"b", index=1)
        monkeypatch.setattr(host.context.services, "now_ms", lambda: 0)
        host.hosting.advance(130)
        code = response.result().responses[0].partition_responses[0].error_code
        assert code == ErrorCode.CONCURRENT_TRANSACTIONS

    def test_other_requests_are_concurrent_transactions(self, host: TransactionHosting) -> None:
        producer = self.block(host)
        assert host.add(producer, 1) == [ErrorCode.CONCURRENT_TRANSACTIONS]
        assert host.init().error_code == ErrorCode.CONCURRENT_TRANSACTIONS
        assert host.end(producer).error_code == ErrorCode.CONCURRENT_TRANSACTIONS
        assert host.produce(producer, 0, b"b", index=1, version=11) == ErrorCode.NOT_ENOUGH_REPLICAS

    def test_the_next_coordinator_writes_missing_markers(self, host: TransactionHosting) -> None:
        self.block(host)
        host.elect_again()
        host.hosting.change(host.topic_id, 0, leader=1)
        host.hosting.advance(100)
        assert host.contents() == ["a", "COMMIT/1"]
        assert host.producer() == (4000, 2)


class TestTwoPhaseCommit:
    """KIP-939: an outside transaction manager decides, however long it takes and whoever comes back."""

    @pytest.fixture
    def host(self, hosting: Hosting) -> TransactionHosting:
        return TransactionHosting(hosting, two_phase_commit_enable=True)

    def test_no_timeout(self, host: TransactionHosting) -> None:
        producer = host.producer("tx", 6, enable2_pc=True, transaction_timeout_ms=-1)
        host.produce(producer, 0, b"a")
        host.hosting.advance(10_000_000)
        assert host.contents() == ["a"]
        assert host.end(producer).error_code == OK

    @pytest.mark.parametrize("commit", [True, False])
    def test_a_prepared_transaction_outlives_its_producer(self, host: TransactionHosting, commit: bool) -> None:
        producer = host.producer("tx", 6, enable2_pc=True)
        host.produce(producer, 0, b"a")
        for epoch in (1, 2):
            back = host.init("tx", 6, enable2_pc=True, keep_prepared_txn=True)
            assert (back.producer_id, back.producer_epoch) == (4000, epoch)
            assert (back.ongoing_txn_producer_id, back.ongoing_txn_producer_epoch) == producer
            host.elect_again(epoch)
        assert host.end(producer).error_code == ErrorCode.PRODUCER_FENCED
        assert host.produce((4000, 2), 0, b"b", index=1) == ErrorCode.INVALID_PRODUCER_EPOCH
        ended = host.end((4000, 2), commit)
        assert (ended.error_code, ended.producer_id, ended.producer_epoch) == (OK, 4000, 3)
        assert host.contents() == ["a", f"{'COMMIT' if commit else 'ABORT'}/3"]
        assert host.end((4000, 2), commit).error_code == OK, "a retry"
        assert host.produce((4000, 3), 0, b"b") == OK

    def test_nothing_to_keep(self, host: TransactionHosting) -> None:
        back = host.init("tx", 6, enable2_pc=True, keep_prepared_txn=True)
        assert (back.producer_epoch, back.ongoing_txn_producer_id, back.ongoing_txn_producer_epoch) == (0, -1, -1)

    def test_without_the_flag_the_transaction_is_aborted(self, host: TransactionHosting) -> None:
        producer = host.producer("tx", 6, enable2_pc=True)
        host.produce(producer, 0, b"a")
        host.init("tx", 6, enable2_pc=True, keep_prepared_txn=True)
        assert host.init("tx", 6, enable2_pc=True).error_code == ErrorCode.CONCURRENT_TRANSACTIONS
        assert host.contents() == ["a", "ABORT/2"]
        assert host.producer("tx", 6, enable2_pc=True) == (4000, 3)

    def test_it_needs_version_2(self, host: TransactionHosting) -> None:
        producer = host.producer("tx", 6, enable2_pc=True)
        host.produce(producer, 0, b"a")
        host.level = 1
        kept = host.init("tx", 6, enable2_pc=True, keep_prepared_txn=True)
        assert kept.error_code == ErrorCode.UNSUPPORTED_VERSION
