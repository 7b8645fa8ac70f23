"""The persister of share partitions on a node that coordinates them itself: calls instead of requests.

    SharePartition ──► Persister ──► ShareCoordinator ──► __share_group_state

The persister creates the state's topic on first use. If the coordinator is not available yet (the topic has no leader, or its state is
loading), the persister retries with a backoff, for some ten seconds in all.

Limits: one node. With several, the coordinator of a share partition may be elsewhere, and the requests 83 to 87 go there.

Source: Kafka's `DefaultStatePersister`, `PersisterStateManager`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.share.settings import PersistedState
from barnabas.share.share_coordinator import ShareCoordinator
from barnabas.share.share_coordinator_shard import StateOutcome, StateSummary, StateWrite
from barnabas.share.state_batches import StateBatch
from barnabas.share.state_records import SharePartitionKey

__all__ = ["LocalPersister"]

T = TypeVar("T")
R = TypeVar("R")

ATTEMPTS = 7
FIRST_BACKOFF_MS = 20
BACKOFF_MULTIPLIER = 4
MAX_BACKOFF_MS = 5_000
_RETRIABLE = frozenset(
    {ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS}
)


class LocalPersister:
    """Stores share partitions' state with this node's coordinator.

    Args:
        create_topic: creates the state's topic unless it exists; returns a future of any result.
    """

    def __init__(
        self,
        coordinator: ShareCoordinator,
        loop: asyncio.AbstractEventLoop,
        has_topic: Callable[[], bool],
        create_topic: Callable[[], asyncio.Future[Any]],
    ) -> None:
        self._coordinator = coordinator
        self._loop = loop
        self._has_topic = has_topic
        self._create_topic = create_topic

    def __repr__(self) -> str:
        return f"<LocalPersister {self._coordinator!r}>"

    def read_state(
        self, group_id: str, topic_id: bytes, partition: int, leader_epoch: int
    ) -> asyncio.Future[PersistedState]:
        """Read a share partition's state, for its leader."""
        key = SharePartitionKey(group_id, bytes(topic_id), partition)
        return self._retrying(
            lambda: self._coordinator.read(key, leader_epoch),
            lambda state: PersistedState(state.state_epoch, state.start_offset, state.state_batches),
        )

    def write_state(
        self,
        group_id: str,
        topic_id: bytes,
        partition: int,
        *,
        state_epoch: int,
        leader_epoch: int,
        start_offset: int,
        delivery_complete_count: int,
        batches: Sequence[tuple[int, int, int, int]],
    ) -> asyncio.Future[None]:
        """Write a change of a share partition's state, for its leader."""
        key = SharePartitionKey(group_id, bytes(topic_id), partition)
        write = StateWrite(
            state_epoch,
            leader_epoch,
            start_offset,
            delivery_complete_count,
            tuple(StateBatch(*batch) for batch in batches),
        )
        return self._retrying(lambda: self._coordinator.write(key, write), lambda _: None)

    def initialize_state(
        self, group_id: str, topic_id: bytes, partition: int, state_epoch: int, start_offset: int
    ) -> asyncio.Future[None]:
        """Initialize a share partition's state; start offset -1 leaves the choice to the leader."""
        key = SharePartitionKey(group_id, bytes(topic_id), partition)
        return self._retrying(lambda: self._coordinator.initialize(key, state_epoch, start_offset), lambda _: None)

    def read_summary(self, group_id: str, topic_id: bytes, partition: int) -> asyncio.Future[StateSummary]:
        """Read a share partition's start offset and counts."""
        key = SharePartitionKey(group_id, bytes(topic_id), partition)
        return self._retrying(lambda: self._coordinator.summary(key), lambda summary: summary)

    def delete_state(self, group_id: str, topic_id: bytes, partition: int) -> asyncio.Future[None]:
        """Delete a share partition's state."""
        key = SharePartitionKey(group_id, bytes(topic_id), partition)
        return self._retrying(lambda: self._coordinator.delete(key), lambda _: None)

    def _retrying(
        self, ask: Callable[[], asyncio.Future[StateOutcome[T]]], result_of: Callable[[T], R]
    ) -> asyncio.Future[R]:
        """Retry until there is a result; the future fails with the coordinator's last error."""
        answer: asyncio.Future[R] = self._loop.create_future()
        left = ATTEMPTS
        backoff_ms = FIRST_BACKOFF_MS

        def step() -> None:
            if answer.done():
                return
            if not self._has_topic():
                self._create_topic().add_done_callback(on_topic)
            else:
                run()

        def on_topic(created: asyncio.Future[Any]) -> None:
            _observe(created)
            run()

        def run() -> None:
            future = ask()
            if future.done():
                on_outcome(future)
            else:
                future.add_done_callback(on_outcome)

        def on_outcome(future: asyncio.Future[StateOutcome[T]]) -> None:
            nonlocal left, backoff_ms
            if answer.done():
                return
            if future.cancelled():
                answer.cancel()
                return
            if (failure := future.exception()) is not None:
                answer.set_exception(failure)
                return
            outcome = future.result()
            left -= 1
            if outcome.error is ErrorCode.NONE:
                answer.set_result(result_of(outcome.value))  # type: ignore[arg-type]
            elif outcome.error in _RETRIABLE and left > 0:
                self._loop.call_later(backoff_ms / 1000, step)
                backoff_ms = min(backoff_ms * BACKOFF_MULTIPLIER, MAX_BACKOFF_MS)
            else:
                answer.set_exception(KafkaError(outcome.error, outcome.message))

        step()
        return answer


def _observe(future: asyncio.Future[Any]) -> None:
    if not future.cancelled():
        future.exception()
