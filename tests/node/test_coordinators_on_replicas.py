"""Coordinators of a partition with two replicas, over real logs: the other replica is slow, or the leadership is lost."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest

from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages import (
    AllocateProducerIdsResponse,
    FeatureLevelRecord,
    OffsetCommitRequest,
    OffsetFetchRequest,
)
from barnabas.protocol.topic_names import GROUP_METADATA, TRANSACTION_STATE
from barnabas.steps import start
from barnabas.transaction.transaction_coordinator import TransactionCoordinator
from barnabas.transaction.transaction_shard import EndTxn, InitProducerId
from barnabas.transaction.transaction_state import TransactionState
from tests.node.test_coordinators import Subject
from tests.replication.hosting import NODE, Hosting

R = TypeVar("R")

NUMBER = {GROUP_METADATA: 1, TRANSACTION_STATE: 2, "t": 3}


class Replicated(Subject):
    """The coordinators of a node with one follower, whose log end the test sets."""

    def __init__(self, hosting: Hosting) -> None:
        super().__init__(hosting)
        self.replay(FeatureLevelRecord(name="transaction.version", feature_level=2))
        for name, number in NUMBER.items():
            self.create(name, number, NODE)
            self.follow(name)
        hosting.spin()

    def follow(self, topic: str) -> None:
        """Let the follower catch up."""
        partition = self.hosting.replicas.partition(topic, 0)
        partition.log.high_watermark = partition.log.log_end_offset
        self.hosting.replicas.high_watermark_moved(partition)
        self.hosting.spin()

    def lead(self, topic: str, leader: int = NODE) -> None:
        """Elect a leader in the next epoch."""
        self.change(NUMBER[topic], leader=leader)
        self.hosting.spin()

    def log_end(self, topic: str) -> int:
        return self.hosting.replicas.partition(topic, 0).log.log_end_offset

    @property
    def transactions(self) -> TransactionCoordinator:
        return self.coordinators.transaction

    def run(self, request: Coroutine[Any, Any, R]) -> asyncio.Future[R]:
        started = start(request, self.hosting.loop)
        self.hosting.spin()
        return started

    def begin(self) -> tuple[int, int]:
        """Open a transaction of partition t-0; returns the producer's id and epoch."""
        self.producer_ids.set_result(AllocateProducerIdsResponse(producer_id_start=1000, producer_id_len=1000))
        begun = self.run(self.transactions.init_producer_id(InitProducerId("tx", 60_000)))
        self.follow(TRANSACTION_STATE)
        producer = begun.result().producer_id, begun.result().producer_epoch
        added = self.run(self.transactions.add_partitions("tx", *producer, frozenset({("t", 0)}), 2))
        self.follow(TRANSACTION_STATE)
        assert added.result() is None
        return producer

    def commit(self, offset: int) -> Any:
        partition = OffsetCommitRequest.OffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
        topic = OffsetCommitRequest.OffsetCommitRequestTopic(name="t", partitions=[partition])
        request = OffsetCommitRequest(group_id="g", topics=[topic])
        written = self.coordinators.group.write("g", lambda shard: shard.commit_offsets(request, 8))
        self.hosting.spin()
        return written

    def committed(self) -> Any:
        """Fetch the committed offset; a future of the response."""
        wanted = OffsetFetchRequest.OffsetFetchRequestGroup(
            group_id="g", topics=[OffsetFetchRequest.OffsetFetchRequestTopics(name="t", partition_indexes=[0])]
        )
        read = self.coordinators.group.read("g", lambda shard: shard.fetch_offsets(wanted, False))
        self.hosting.spin()
        return read


def offset_of(read: Any) -> int:
    offset: int = read.result().topics[0].partitions[0].committed_offset
    return offset


def code(future: Any) -> ErrorCode:
    error = future.exception()
    assert isinstance(error, KafkaError)
    return error.code


@pytest.fixture
def replicated(tmp_path: Path) -> Iterator[Replicated]:
    hosting = Hosting(tmp_path)
    made = Replicated(hosting)
    yield made
    made.coordinators.close()
    hosting.spin()
    hosting.close()


class TestElection:
    """A new leader whose high watermark is below its log end."""

    def test_a_committed_offset_never_goes_back(self, replicated: Replicated) -> None:
        replicated.commit(5)
        replicated.follow(GROUP_METADATA)
        above = replicated.commit(6)  # Another leader may have acknowledged it.
        replicated.lead(GROUP_METADATA, 2)
        assert code(above) is ErrorCode.NOT_COORDINATOR
        replicated.lead(GROUP_METADATA)
        for _ in range(20):
            assert code(replicated.committed()) is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
            replicated.hosting.advance(1000)
        replicated.follow(GROUP_METADATA)
        assert offset_of(replicated.committed()) == 6
        assert replicated.hosting.replicas.delayed_produces.watched == 0

    def test_leadership_lost_while_a_prepare_is_not_committed(self, replicated: Replicated) -> None:
        producer = replicated.begin()
        ended = replicated.run(replicated.transactions.end_transaction(EndTxn("tx", *producer, True, 2)))
        for leader in (2, NODE, 2):
            replicated.lead(TRANSACTION_STATE, leader)
            replicated.hosting.advance(5_000)
        assert code(ended) is ErrorCode.NOT_COORDINATOR
        assert replicated.log_end("t") == 0, "no marker"
        assert replicated.hosting.replicas.delayed_produces.watched == 0

    def test_a_prepare_that_gets_committed_after_the_election_is_completed(self, replicated: Replicated) -> None:
        producer = replicated.begin()
        ended = replicated.run(replicated.transactions.end_transaction(EndTxn("tx", *producer, True, 2)))
        replicated.lead(TRANSACTION_STATE, 2)
        assert code(ended) is ErrorCode.NOT_COORDINATOR
        replicated.lead(TRANSACTION_STATE)
        replicated.hosting.advance(5_000)
        assert replicated.log_end("t") == 0, "no marker yet"
        replicated.follow(TRANSACTION_STATE)
        assert replicated.log_end("t") == 1
        replicated.follow("t")
        replicated.follow(TRANSACTION_STATE)
        described = replicated.run(replicated.transactions.describe("tx")).result()
        assert described.state is TransactionState.COMPLETE_COMMIT


class TestSameLeader:
    """The leader epoch of a partition rises, and its leader stays."""

    def test_groups_and_their_waiting_clients_stay(self, replicated: Replicated) -> None:
        (shard,) = replicated.coordinators.group.active_shards()
        written = replicated.commit(5)
        replicated.lead(GROUP_METADATA)
        assert replicated.coordinators.group.active_shards() == [shard]
        assert not written.done()
        replicated.follow(GROUP_METADATA)
        assert written.result().topics[0].partitions[0].error_code == 0
        assert offset_of(replicated.committed()) == 5

    def test_a_transaction_ends_while_the_epoch_rises(self, replicated: Replicated) -> None:
        producer = replicated.begin()
        ended = replicated.run(replicated.transactions.end_transaction(EndTxn("tx", *producer, True, 2)))
        for topic in (TRANSACTION_STATE, "t", TRANSACTION_STATE):  # With Prepare, marker and Complete waiting.
            replicated.lead(TRANSACTION_STATE)
            replicated.lead("t")
            replicated.follow(topic)
        assert ended.result().producer_epoch == producer[1] + 1
        assert replicated.log_end("t") == 1
        described = replicated.run(replicated.transactions.describe("tx")).result()
        assert described.state is TransactionState.COMPLETE_COMMIT
        assert replicated.hosting.replicas.delayed_produces.watched == 0


class TestSlowFollower:
    """A follower that stays in the ISR and fetches nothing for 20 seconds."""

    def test_clients_time_out_and_the_groups_stay_loaded(self, replicated: Replicated) -> None:
        (shard,) = replicated.coordinators.group.active_shards()
        first = replicated.commit(5)
        replicated.follow(GROUP_METADATA)
        assert first.result().topics[0].partitions[0].error_code == 0
        stalled = []
        for offset in range(6, 26):
            stalled += [replicated.commit(offset), replicated.committed()]
            replicated.hosting.advance(1000)
        timed_out, waiting = stalled[:32], stalled[32:]
        assert {code(answer) for answer in timed_out} == {ErrorCode.REQUEST_TIMED_OUT}
        assert not any(answer.done() for answer in waiting), "each client waits for 5 seconds"
        replicated.follow(GROUP_METADATA)
        assert [offset_of(read) for read in waiting[1::2]] == [22, 23, 24, 25]
        assert offset_of(replicated.committed()) == 25
        assert replicated.coordinators.group.active_shards() == [shard], "it was never loaded again"

    def test_waiters_are_not_coordinated_here_when_the_leadership_is_lost(self, replicated: Replicated) -> None:
        written = replicated.commit(5)
        replicated.hosting.advance(4000)
        replicated.lead(GROUP_METADATA, 2)
        assert code(written) is ErrorCode.NOT_COORDINATOR
        assert code(replicated.committed()) is ErrorCode.NOT_COORDINATOR
        assert replicated.hosting.replicas.delayed_produces.watched == 0
