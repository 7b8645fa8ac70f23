"""The memory that requests being received may use together (`queued.max.request.bytes`).

    lane      requests of                   its part    when it is full
    TINY      64 KiB, the ordinary buffer   a quarter   nobody waits, but connections that stall are closed
    SMALL     2 MiB                         a quarter   the connection is not read until there is memory
    LARGE     any size                      a half      the same; one request alone may be larger than the lane

- A request has a lane by its size, so that large requests that never end do not keep a client with ordinary batches waiting.
- A request counts with the size that it announces, from when its size is known until its buffer is dropped and it is answered. What
  has arrived of a request that waits counts in the lane TINY.
- Waiting requests get memory in the order of arrival plus the time that they take at `PACE`: a small one does not wait for many large
  ones, and none waits for ever.
- An empty buffer that grew stays with its connection for the next request (`keep_spare`). It is dropped when others need the memory.
- While requests wait, those that have memory must arrive at `PACE` (`arrival`). The connections of others are closed, the largest
  first, until those that wait have memory: half a request, sent and then left, keeps others waiting for `2 * LOOK_SECONDS` at most.

Sources: Kafka's `SimpleMemoryPool`, KIP-72; lanes, order and closing are ours. Kafka's default is no limit.
"""

from __future__ import annotations

import asyncio
import heapq
from typing import NamedTuple, Protocol

from barnabas.net.arrival import LOOK_SECONDS, PACE
from barnabas.protocol.framing import READ_BYTES

__all__ = ["Claimant", "RequestMemory"]

SMALL_BYTES = 2 << 20
"""The largest request of the small lane: a batch of `max.message.bytes` with its topic, and some more."""

TOO_SLOW = "its request arrives too slowly while other requests wait for memory (queued.max.request.bytes)"


class Claimant(Protocol):
    """A connection that has memory or waits for it."""

    def is_slow(self) -> bool:
        """Return whether its request does not go on; asked each `LOOK_SECONDS` while others wait."""
        ...

    def memory_granted(self, size: int) -> None:
        """Go on: the memory that was asked for is there."""
        ...

    def drop_spare(self) -> None:
        """Drop an empty buffer, and give its memory back."""
        ...

    def abort(self, reason: str) -> None:
        """Close the connection; its end gives its memory back."""
        ...


class _Share(NamedTuple):
    """What one claimant has, and since when."""

    size: int
    since: float


class _Lane:
    """The memory for requests up to a size."""

    def __init__(self, largest: float, limit: int) -> None:
        self.largest = largest
        self.limit = limit
        self.used = 0
        self.shares: dict[Claimant, _Share] = {}
        self.wishes: dict[Claimant, int] = {}
        self._order: list[tuple[float, int, Claimant]] = []
        self._count = 0

    def __repr__(self) -> str:
        return f"<_Lane {self.used}/{self.limit} waiting={len(self.wishes)}>"

    def fits(self, size: int) -> bool:
        return not self.used or self.used + size <= self.limit

    def wish(self, claimant: Claimant, size: int, now: float) -> None:
        self._count += 1
        self.wishes[claimant] = size
        heapq.heappush(self._order, (now + size / PACE, self._count, claimant))

    def first(self) -> Claimant | None:
        """Return the claimant whose turn it is."""
        while self._order:
            claimant = self._order[0][2]
            if claimant in self.wishes:
                return claimant
            heapq.heappop(self._order)
        return None

    def lacking(self) -> int:
        """Return the bytes that must be free for those who wait, as many of them as the lane can have at once."""
        wanted = min(sum(self.wishes.values()), self.limit)
        return max(self.used + wanted - self.limit, 0)


class RequestMemory:
    """The shared memory of one broker.

    Attributes:
        depleted: how often a connection had to wait.
    """

    def __init__(self, limit_bytes: int, loop: asyncio.AbstractEventLoop) -> None:
        self.limit_bytes = limit_bytes
        self.depleted = 0
        quarter = limit_bytes // 4
        self._lanes = (
            _Lane(READ_BYTES, quarter),
            _Lane(SMALL_BYTES, quarter),
            _Lane(float("inf"), limit_bytes - 2 * quarter),
        )
        self._loop = loop
        self._lane_of: dict[Claimant, _Lane] = {}
        self._spares: dict[Claimant, None] = {}
        self._look: asyncio.TimerHandle | None = None

    def __repr__(self) -> str:
        return f"<RequestMemory {self.used}/{self.limit_bytes} waiting={self.waiting_count}>"

    @property
    def used(self) -> int:
        """Bytes given, those of empty buffers included."""
        return sum(lane.used for lane in self._lanes)

    @property
    def waiting_count(self) -> int:
        return sum(len(lane.wishes) for lane in self._lanes)

    def take(self, claimant: Claimant, size: int, held: int = 0) -> bool:
        """Give memory and return True, or have `memory_granted` called when there is some.

        Args:
            claimant: has nothing; it gives back what it has before it asks for more.
            held: the bytes that it keeps while it waits.
        """
        assert claimant not in self._lane_of, "memory is given once"
        tiny, lane = self._lanes[0], next(lane for lane in self._lanes if size <= lane.largest)
        if lane is tiny or (not lane.wishes and self._makes_room(lane, size)):
            self._give(lane, claimant, size)
            return True
        self.depleted += 1
        lane.wish(claimant, size, self._loop.time())
        self._give(tiny, claimant, held)
        self._look_later()
        return False

    def give_back(self, claimant: Claimant) -> None:
        """Take back what a claimant has, and give it to those who wait."""
        self._grant(self._take_back(claimant))

    def forget(self, claimant: Claimant) -> None:
        """Remove a claimant that ended."""
        if claimant in self._lane_of:
            self._take_back(claimant)
        for lane in self._lanes:
            lane.wishes.pop(claimant, None)
            self._grant(lane)

    def keep_spare(self, claimant: Claimant) -> bool:
        """Return whether a claimant may keep its memory with an empty buffer; False if others wait for it."""
        if self._lane_of[claimant].wishes:
            return False
        self._spares[claimant] = None
        return True

    def use_spare(self, claimant: Claimant) -> None:
        """Note that a claimant uses its memory for the next request."""
        self._spares.pop(claimant, None)

    def _give(self, lane: _Lane, claimant: Claimant, size: int) -> None:
        lane.used += size
        lane.shares[claimant] = _Share(size, self._loop.time())
        self._lane_of[claimant] = lane
        if lane.used > lane.limit:
            self._look_later()

    def _take_back(self, claimant: Claimant) -> _Lane:
        self._spares.pop(claimant, None)
        lane = self._lane_of.pop(claimant)
        lane.used -= lane.shares.pop(claimant).size
        return lane

    def _makes_room(self, lane: _Lane, size: int) -> bool:
        """Drop empty buffers until `size` fits, and return whether it does."""
        if not lane.fits(size):
            for spare in [one for one in self._spares if self._lane_of[one] is lane]:
                spare.drop_spare()
                if lane.fits(size):
                    break
        return lane.fits(size)

    def _grant(self, lane: _Lane) -> None:
        while (claimant := lane.first()) is not None and lane.fits(lane.wishes[claimant]):
            size = lane.wishes.pop(claimant)
            self._take_back(claimant)
            self._give(lane, claimant, size)
            claimant.memory_granted(size)

    def _look_later(self) -> None:
        if self._look is None:
            self._look = self._loop.call_later(LOOK_SECONDS, self._look_at_shares)

    def _look_at_shares(self) -> None:
        """Close connections whose requests are slow, as many as those who wait need."""
        self._look = None
        for lane in self._lanes:
            lacking = lane.lacking()
            if not lacking:
                continue
            self._look_later()
            slow = [held for held in lane.shares.items() if held[0].is_slow()]
            for claimant, share in sorted(slow, key=lambda held: (-held[1].size, held[1].since)):
                if lacking > 0:
                    lacking -= share.size
                    claimant.abort(TOO_SLOW)
