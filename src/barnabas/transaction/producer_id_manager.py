"""ProducerIdManager: hands out producer ids from blocks that the controller allocates (control plane).

The controller gives each broker blocks of ids (ALLOCATE_PRODUCER_IDS, 1000 at a time) and remembers in the metadata log where
the next block starts, so an id is never given twice, not even after a restart: what was left of a block is then lost, which
is harmless. The next block is fetched when nine tenths of the present one are used; until it is there, requests wait.

Invariants: one allocation is under way at most; ids leave in ascending order within a block.

Sources: Kafka class `RPCProducerIdManager`; KIP-730.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any

from barnabas.coordinator.future_steps import FutureMaker, when_done
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages import AllocateProducerIdsResponse

PREFETCH_PARTS_LEFT = 10  # Fetch the next block when a tenth of this one is left.


class ProducerIdManager:
    """The producer ids of one broker."""

    def __init__(self, loop: FutureMaker, allocate: Callable[[], asyncio.Future[AllocateProducerIdsResponse]]) -> None:
        """Make a manager that has no block yet.

        Args:
            allocate: asks the controller for a block.
        """
        self._loop = loop
        self._allocate = allocate
        self._next_id = 0
        self._end_id = 0
        self._prefetch_at = 0
        self._following: tuple[int, int] | None = None
        self._allocating = False
        self._waiting: deque[asyncio.Future[int]] = deque()

    def __repr__(self) -> str:
        return f"ProducerIdManager([{self._next_id}, {self._end_id}) waiting={len(self._waiting)})"

    def generate(self) -> asyncio.Future[int]:
        """A producer id that nobody has had.

        Returns: a future, done at once while the block lasts; it fails with COORDINATOR_LOAD_IN_PROGRESS, on which clients
            ask again, when the controller gives no block.
        """
        future: asyncio.Future[int] = self._loop.create_future()
        self._waiting.append(future)
        self._serve()
        return future

    def _serve(self) -> None:
        while self._waiting:
            if self._next_id == self._end_id and not self._begin_following_block():
                break
            future = self._waiting.popleft()
            if not future.done():
                future.set_result(self._next_id)
                self._next_id += 1
        if self._next_id >= self._prefetch_at and self._following is None and not self._allocating:
            self._allocating = True
            when_done(self._allocate(), self._on_allocated)

    def _begin_following_block(self) -> bool:
        if self._following is None:
            return False
        self._next_id, self._end_id = self._following
        self._prefetch_at = self._end_id - (self._end_id - self._next_id) // PREFETCH_PARTS_LEFT
        self._following = None
        return True

    def _on_allocated(self, done: asyncio.Future[Any]) -> None:
        self._allocating = False
        refused = done.cancelled() or done.exception() is not None
        if not refused:
            response = done.result()
            refused = response.error_code != ErrorCode.NONE or response.producer_id_len <= 0
        if refused:
            waiting, self._waiting = self._waiting, deque()
            for future in waiting:
                if not future.done():
                    future.set_exception(KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS))
            return
        assert self._following is None, self
        self._following = (response.producer_id_start, response.producer_id_start + response.producer_id_len)
        self._serve()
