"""Append dead letters to partitions that other brokers lead.

    DeadLetterWriter ──► RemoteLetters ──► Produce with acks=all, in the queue of the leader

One request carries one batch: it may be as large as the topic allows. A batch without an answer fails with NOT_LEADER_OR_FOLLOWER, and
the writer tries again; a letter may then be written twice, as after a crash.

Source: Kafka's `ShareGroupDLQStateManager`; KIP-1191.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import NamedTuple

from barnabas.coordinator.request_queues import RequestQueues, Send
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages import ProduceRequest, ProduceResponse
from barnabas.replication.partition import ACKS_ALL
from barnabas.steps import Loop

__all__ = ["LetterRequests", "RemoteLetters"]


class Letters(NamedTuple):
    """A batch of letters for one partition; a request may name the topic by name or by id."""

    topic: str
    topic_id: bytes
    partition: int
    batch: bytearray


class LetterRequests:
    """Batches of letters as items of `RequestQueues`."""

    moved = ErrorCode.NOT_LEADER_OR_FOLLOWER
    lost = ErrorCode.NOT_LEADER_OR_FOLLOWER

    def __init__(self, leader_of: Callable[[str, int], int], commit_timeout_ms: int) -> None:
        self._leader_of = leader_of
        self._commit_timeout_ms = commit_timeout_ms

    def broker_of(self, item: Letters) -> int:
        return self._leader_of(item.topic, item.partition)

    def subject(self, item: Letters) -> Hashable:
        return None

    def company(self, item: Letters) -> Hashable:
        return None

    def request(self, items: Sequence[Letters]) -> ProduceRequest:
        (item,) = items
        part = ProduceRequest.PartitionProduceData(index=item.partition, records=memoryview(item.batch))
        topic = ProduceRequest.TopicProduceData(name=item.topic, topic_id=item.topic_id, partition_data=[part])
        return ProduceRequest(acks=ACKS_ALL, timeout_ms=self._commit_timeout_ms, topic_data=[topic])

    def outcomes(self, items: Sequence[Letters], response: ProduceResponse) -> list[KafkaError | None]:
        for topic in response.responses:
            for part in topic.partition_responses:
                return [KafkaError(part.error_code, part.error_message) if part.error_code else None]
        return [KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)]


class RemoteLetters:
    """The leaders of dead letter topics on other brokers."""

    def __init__(self, leader_of: Callable[[str, int], int], commit_timeout_ms: int, send: Send, loop: Loop) -> None:
        kind = LetterRequests(leader_of, commit_timeout_ms)
        self._queues: RequestQueues[Letters, None] = RequestQueues(kind, send, loop)

    def __repr__(self) -> str:
        return f"<RemoteLetters {self._queues!r}>"

    async def append(self, topic: str, topic_id: bytes, partition: int, batch: bytearray) -> None:
        """Append a batch and wait for its commit.

        Raises: KafkaError.
        """
        await self._queues.ask(Letters(topic, topic_id, partition, batch))

    def reroute(self) -> None:
        """Fail what waits for a broker that is no longer the leader."""
        self._queues.reroute()

    def close(self) -> None:
        """Fail what has no answer."""
        self._queues.close()
