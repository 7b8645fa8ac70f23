"""The partitions of an internal topic in memory, which can refuse appends and hold back commits."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.records.record_batch import check_batch, patch
from tests.coordinator.virtual_loop import VirtualLoop


class MemoryLog:
    """`CoordinatorLog` on lists of batches."""

    def __init__(self, loop: VirtualLoop) -> None:
        self._loop = loop
        self.batches: dict[int, list[bytes]] = {}
        self._ends: dict[int, int] = {}
        self.refuse: ErrorCode | None = None
        self.hold_commits = False
        self.last_options: tuple[Any, int] = (None, 0)
        self.held: list[tuple[asyncio.Future[int], int]] = []

    def append(
        self, partition: int, batch: bytearray, *, guard: Any = None, transaction_version: int = 0
    ) -> asyncio.Future[int]:
        self.last_options = (guard, transaction_version)
        if self.refuse is not None:
            raise KafkaError(self.refuse)
        base_offset = self._ends.get(partition, 0)
        patch(batch, 0, base_offset, 0)
        header = check_batch(batch, 0)
        self._ends[partition] = header.next_offset
        self.batches.setdefault(partition, []).append(bytes(batch))
        future: asyncio.Future[int] = self._loop.create_future()
        if self.hold_commits:
            self.held.append((future, header.last_offset))
        else:
            future.set_result(header.last_offset)
        return future

    def is_writable(self, partition: int) -> bool:
        return self.refuse not in (ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.NOT_LEADER_OR_FOLLOWER)

    def read(self, partition: int) -> Iterator[bytes]:
        return iter(list(self.batches.get(partition, [])))

    def release(self) -> None:
        """Commit what was held back."""
        self.hold_commits = False
        held, self.held = self.held, []
        for future, last_offset in held:
            future.set_result(last_offset)

    def release_last(self) -> None:
        """Commit the last append before those in front of it."""
        future, last_offset = self.held.pop()
        future.set_result(last_offset)

    def lose(self, partition: int, error: ErrorCode) -> None:
        """What was held back was never replicated: cut it off and fail its appends."""
        held, self.held = self.held, []
        self.hold_commits = False
        del self.batches[partition][-len(held) :]
        self._ends[partition] = (
            check_batch(self.batches[partition][-1], 0).next_offset if self.batches[partition] else 0
        )
        for future, _ in held:
            future.set_exception(KafkaError(error))
