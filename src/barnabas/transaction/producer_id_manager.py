"""ProducerIdManager: gives out producer ids from blocks that the controller allocates.

The controller gives each broker blocks of 1000 ids (ALLOCATE_PRODUCER_IDS) and records the start of the next block in the metadata log,
so that no id is given out twice, not even after a restart. A restart loses the rest of a block, which is harmless. The broker requests
the next block when nine tenths of the current one are used.

A request without a block waits for a moment, and then gets COORDINATOR_LOAD_IN_PROGRESS, after which the client tries again: there may be
no controller. The allocation continues, for the next requests. (Kafka does not wait at all, so a producer's first request always fails.)

Invariants: at most one allocation is under way; the ids of a block ascend.

Sources: Kafka class `RPCProducerIdManager`; KIP-730.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from barnabas.pause import Pause
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages import AllocateProducerIdsResponse
from barnabas.steps import Loop, in_background

AWAIT_BLOCK_MS = 1_000
PREFETCH_PARTS_LEFT = 10  # Fetch the next block when a tenth of this one is left.


class ProducerIdManager:
    """The producer ids of one broker.

    Args:
        allocate: requests a block from the controller.
    """

    def __init__(self, loop: Loop, allocate: Callable[[], asyncio.Future[AllocateProducerIdsResponse]]) -> None:
        self._loop = loop
        self._allocate = allocate
        self._next_id = 0
        self._end_id = 0
        self._prefetch_at = 0
        self._following: tuple[int, int] | None = None
        self._allocation: asyncio.Future[bool] | None = None

    def __repr__(self) -> str:
        return f"<ProducerIdManager next={self._next_id} end={self._end_id}>"

    async def generate(self) -> int:
        """Return an unused producer id.

        Raises:
            KafkaError: COORDINATOR_LOAD_IN_PROGRESS, which clients retry, if the controller allocates no block, or not soon.
        """
        while self._next_id == self._end_id and not self._begin_following_block():
            if not await self._await_block():
                raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        producer_id = self._next_id
        self._next_id += 1
        if self._next_id >= self._prefetch_at and self._following is None:
            self._following_block()
        return producer_id

    def _begin_following_block(self) -> bool:
        if self._following is None:
            return False
        self._next_id, self._end_id = self._following
        self._prefetch_at = self._end_id - (self._end_id - self._next_id) // PREFETCH_PARTS_LEFT
        self._following = None
        return True

    async def _await_block(self) -> bool:
        """Wait for the running allocation, or for one that this begins; return whether there is a block now."""
        allocation = self._following_block()
        if not allocation.done():
            pause = Pause(self._loop)
            allocation.add_done_callback(lambda _: pause.wake())
            await pause.or_woken(AWAIT_BLOCK_MS / 1000)
        return allocation.done() and allocation.result()

    def _following_block(self) -> asyncio.Future[bool]:
        """Return the running allocation, or begin one."""
        if self._allocation is None or self._allocation.done():
            self._allocation = in_background(self._allocate_following(), self._loop)
        return self._allocation

    async def _allocate_following(self) -> bool:
        try:
            response = await self._allocate()
        except (KafkaError, asyncio.CancelledError):
            return False
        if response.error_code != ErrorCode.NONE or response.producer_id_len <= 0:
            return False
        assert self._following is None, self
        self._following = (response.producer_id_start, response.producer_id_start + response.producer_id_len)
        return True
