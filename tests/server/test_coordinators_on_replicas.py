"""Coordinators of a partition with two replicas, over real logs: the other replica is slow, or the leadership is lost."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from barnabas.metadata.topic_names import GROUP_METADATA, TRANSACTION_STATE
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages import OffsetCommitRequest, OffsetFetchRequest
from tests.replication.hosting import NODE, Hosting
from tests.server.test_coordinators import Subject

NUMBER = {GROUP_METADATA: 1, TRANSACTION_STATE: 2, "t": 3}


class Replicated(Subject):
    """The coordinators of a node with one follower, whose log end the test sets."""

    def __init__(self, hosting: Hosting) -> None:
        super().__init__(hosting)
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
