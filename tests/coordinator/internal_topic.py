"""The partitions of an internal topic in memory, which can refuse appends, and whose high watermarks the test can hold back."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.records.record_batch import check_batch, patch
from tests.coordinator.virtual_loop import VirtualLoop


class InternalTopic:
    """`CoordinatorLog` on lists of batches.

    Attributes:
        hold_commits: the high watermarks stand still, and what is appended now waits.
        waits: the futures of what is not committed, with partition and last offset.
    """

    def __init__(self, loop: VirtualLoop) -> None:
        self._loop = loop
        self.batches: dict[int, list[bytes]] = {}
        self._ends: dict[int, int] = {}
        self._high_watermarks: dict[int, int] = {}
        self.waits: list[tuple[asyncio.Future[int], int, int]] = []
        self.refuse: ErrorCode | None = None
        self.hold_commits = False
        self.last_options: tuple[Any, int] = (None, 0)

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
        if not self.hold_commits:
            self.commit(partition, header.next_offset)
        return self.commit_of(partition, header.last_offset)

    def is_writable(self, partition: int) -> bool:
        return self.refuse not in (ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.NOT_LEADER_OR_FOLLOWER)

    def read(self, partition: int) -> Iterator[bytes]:
        return iter(list(self.batches.get(partition, [])))

    def committed_offset(self, partition: int) -> int:
        return self._high_watermarks.get(partition, 0)

    def commit_of(self, partition: int, last_offset: int) -> asyncio.Future[int]:
        future: asyncio.Future[int] = self._loop.create_future()
        if last_offset < self.committed_offset(partition):
            future.set_result(last_offset)
        else:
            self.waits.append((future, partition, last_offset))
        return future

    def commit(self, partition: int, high_watermark: int) -> None:
        """Move the high watermark of a partition."""
        self._high_watermarks[partition] = high_watermark
        waits, self.waits = self.waits, []
        for future, index, last_offset in waits:
            if future.cancelled():
                continue
            if index == partition and last_offset < high_watermark:
                future.set_result(last_offset)
            else:
                self.waits.append((future, index, last_offset))

    def release(self) -> None:
        """Commit what was held back."""
        self.hold_commits = False
        for partition, end in self._ends.items():
            self.commit(partition, end)

    def release_last(self) -> None:
        """Commit the last append before those in front of it."""
        future, _, last_offset = self.waits.pop()
        future.set_result(last_offset)

    def lose(self, partition: int, error: ErrorCode) -> None:
        """What was held back was never replicated: cut it off and fail what waits for it."""
        self.hold_commits = False
        self._ends[partition] = committed = self.committed_offset(partition)
        batches = self.batches.get(partition, [])
        self.batches[partition] = [batch for batch in batches if check_batch(batch, 0).next_offset <= committed]
        waits, self.waits = self.waits, []
        for future, _, _ in waits:
            if not future.cancelled():
                future.set_exception(KafkaError(error))
