"""Persister: how partition leaders and the group coordinator reach the share coordinator.

    SharePartition, ShareGroupService ──► StatePersister ──► ShareCoordinator ──► __share_group_state

`ShareStates` is the seam: one coroutine for each of the requests 83 to 87. `StatePersister` calls this broker's own coordinator, or in
a cluster that of the broker which leads the share partition's state (`remote_share_coordinator`). It creates the topic when it is
first needed. While the coordinator is not available (the topic has no leader, its state is being loaded, its broker does not answer) it
retries for about ten seconds.

Sources: KIP-932; Kafka's `Persister`, `DefaultStatePersister`, `PersisterStateManager`.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, Protocol, TypeVar

from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.share.share_coordinator_shard import StateSummary, StateWrite
from barnabas.share.state_records import ShareGroupOffset, SharePartitionKey
from barnabas.steps import Loop, sleep

__all__ = ["ShareStates", "StatePersister"]

T = TypeVar("T")

ATTEMPTS = 7
FIRST_BACKOFF_MS = 20
BACKOFF_MULTIPLIER = 4
MAX_BACKOFF_MS = 5_000
_RETRIABLE = frozenset(
    {ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS}
)


class ShareStates(Protocol):
    """The states of share partitions: with a share coordinator, with those of all brokers, or with retries. Each call raises KafkaError."""

    async def initialize(self, key: SharePartitionKey, state_epoch: int, start_offset: int) -> None:
        """Start a new state; start offset -1 leaves the start to the partition's leader."""
        ...

    async def read(self, key: SharePartitionKey, leader_epoch: int) -> ShareGroupOffset:
        """Return the state; start offset -1: the leader decides where the group starts."""
        ...

    async def write(self, key: SharePartitionKey, write: StateWrite) -> None:
        """Write a leader's change."""
        ...

    async def summary(self, key: SharePartitionKey) -> StateSummary:
        """Return start offset and counts."""
        ...

    async def delete(self, key: SharePartitionKey) -> None:
        """Delete a share partition's state."""
        ...


class StatePersister:
    """`ShareStates` with retries.

    Args:
        has_topic: whether `__share_group_state` exists.
        create_topic: creates it if possible.
    """

    def __init__(
        self,
        coordinator: ShareStates,
        loop: Loop,
        has_topic: Callable[[], bool],
        create_topic: Callable[[], Coroutine[Any, Any, None]],
    ) -> None:
        self._coordinator = coordinator
        self._loop = loop
        self._has_topic = has_topic
        self._create_topic = create_topic

    def __repr__(self) -> str:
        return f"<StatePersister {self._coordinator!r}>"

    async def initialize(self, key: SharePartitionKey, state_epoch: int, start_offset: int) -> None:
        await self._retry(lambda: self._coordinator.initialize(key, state_epoch, start_offset))

    async def read(self, key: SharePartitionKey, leader_epoch: int) -> ShareGroupOffset:
        return await self._retry(lambda: self._coordinator.read(key, leader_epoch))

    async def write(self, key: SharePartitionKey, write: StateWrite) -> None:
        await self._retry(lambda: self._coordinator.write(key, write))

    async def summary(self, key: SharePartitionKey) -> StateSummary:
        return await self._retry(lambda: self._coordinator.summary(key))

    async def delete(self, key: SharePartitionKey) -> None:
        await self._retry(lambda: self._coordinator.delete(key))

    async def _retry(self, call: Callable[[], Coroutine[Any, Any, T]]) -> T:
        backoff_ms = FIRST_BACKOFF_MS
        for _ in range(ATTEMPTS - 1):
            try:
                return await self._call(call)
            except KafkaError as error:
                if error.code not in _RETRIABLE:
                    raise
            await sleep(backoff_ms / 1000, self._loop)
            backoff_ms = min(backoff_ms * BACKOFF_MULTIPLIER, MAX_BACKOFF_MS)
        return await self._call(call)

    async def _call(self, call: Callable[[], Coroutine[Any, Any, T]]) -> T:
        if not self._has_topic():
            await self._create_topic()  # If that fails the coordinator is not available, which leads to a retry.
        return await call()
