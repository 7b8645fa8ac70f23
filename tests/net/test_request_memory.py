"""The memory of requests being received: lanes, turns, spare buffers, and requests that stall."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from barnabas.net.arrival import LOOK_SECONDS
from barnabas.net.request_memory import SMALL_BYTES, TOO_SLOW, RequestMemory
from barnabas.protocol.framing import READ_BYTES
from tests.coordinator.virtual_loop import VirtualLoop

MB = 1_000_000
LIMIT = 256 * MB
LARGE, SMALL = LIMIT // 2, LIMIT // 4
LOOK = int(LOOK_SECONDS * 1000)


class Loop(VirtualLoop):
    def time(self) -> float:
        return self.now_ms / 1000


class Memory:
    """A memory in virtual time, with what it did to its claimants."""

    def __init__(self, limit: int = LIMIT) -> None:
        self.loop = Loop()
        self.memory = RequestMemory(limit, self.loop)  # type: ignore[arg-type]
        self.events: list[str] = []

    def claim(self, name: str, size: int, *, is_slow: bool = False) -> Claimant:
        claimant = Claimant(self, name, is_slow)
        claimant.has = size if self.memory.take(claimant, size) else 0
        return claimant


class Claimant:
    """A connection that asks for memory; a closed one gives it back, as a real one does a turn later."""

    def __init__(self, owner: Memory, name: str, is_slow: bool) -> None:
        self._owner, self._name, self._is_slow = owner, name, is_slow
        self.has = 0

    def is_slow(self) -> bool:
        return self._is_slow

    def memory_granted(self, size: int) -> None:
        self.has = size
        self._owner.events.append(f"{self._name} granted")

    def drop_spare(self) -> None:
        self._owner.events.append(f"{self._name} dropped")
        self.leave(self._owner.memory.give_back)

    def abort(self, reason: str) -> None:
        assert reason == TOO_SLOW
        self._owner.events.append(f"{self._name} closed")
        self._owner.loop.call_soon(self.leave, self._owner.memory.forget)

    def leave(self, how: object) -> None:
        assert callable(how)
        self.has = 0
        how(self)


@pytest.fixture
def made() -> Iterator[Memory]:
    made = Memory()
    yield made
    made.loop.advance(LOOK)


def test_requests_wait_until_they_fit(made: Memory) -> None:
    first = made.claim("first", LARGE - MB)
    second = made.claim("second", 10 * MB)
    assert (second.has, made.memory.depleted) == (0, 1)
    assert repr(made.memory) == f"<RequestMemory {LARGE - MB}/{LIMIT} waiting=1>"
    first.leave(made.memory.give_back)
    assert made.events == ["second granted"]
    assert made.memory.used == 10 * MB


def test_one_request_alone_may_be_larger_than_the_lane(made: Memory) -> None:
    assert made.claim("huge", LIMIT).has
    assert not made.claim("next", 3 * MB).has


def test_large_requests_leave_room_for_small_ones(made: Memory) -> None:
    """However many half frames of 100 MB there are, an ordinary batch gets memory at once."""
    hostile = [made.claim(f"hostile {number}", 100 * MB) for number in range(40)]
    assert sum(one.has for one in hostile) <= LARGE
    assert made.claim("a batch", MB + 100).has
    assert made.memory.used <= LARGE + 2 * MB


def test_many_small_requests_are_bounded_too(made: Memory) -> None:
    given = [made.claim(f"{number}", SMALL_BYTES).has for number in range(1000)]
    assert sum(given) <= SMALL


def test_a_small_request_does_not_wait_for_many_large_ones(made: Memory) -> None:
    first = made.claim("first", LARGE)
    large = [made.claim(f"large {number}", 100 * MB) for number in range(3)]
    made.claim("5 MB", 5 * MB)
    first.leave(made.memory.give_back)
    assert made.events[0] == "5 MB granted"
    assert made.events == ["5 MB granted", "large 0 granted"]
    assert large[1].has == 0


def test_a_large_request_does_not_wait_for_ever_for_small_ones(made: Memory) -> None:
    current = made.claim("0", LARGE)
    waiting = made.claim("large", LARGE)
    for number in range(1, 1000):
        made.loop.advance(1000)
        following = made.claim(f"{number}", 10 * MB)
        current.leave(made.memory.give_back)
        current = following
        if waiting.has:
            break
    assert number < 1000 * LARGE // (MB * 1000)


def test_stalled_requests_are_closed_while_others_wait_the_largest_first(made: Memory) -> None:
    made.claim("moving", 50 * MB)
    made.claim("small half", 10 * MB, is_slow=True)
    made.claim("large half", 60 * MB, is_slow=True)
    made.loop.advance(10 * LOOK)
    assert made.events == [], "without contention there is no hurry"
    waiting = made.claim("waiting", 20 * MB)
    made.loop.advance(LOOK)
    assert made.events == ["large half closed", "waiting granted"]
    assert waiting.has
    made.loop.advance(10 * LOOK)
    assert len(made.events) == 2


def test_as_many_are_closed_as_those_who_wait_need(made: Memory) -> None:
    for number in range(12):
        made.claim(f"half {number}", 10 * MB, is_slow=True)
    for number in range(3):
        made.claim(f"waiting {number}", 10 * MB)
    made.loop.advance(LOOK)
    closed = [f"half {number} closed" for number in range(3)]
    assert made.events == [*closed, *(f"waiting {number} granted" for number in range(3))], "the oldest go first"


def test_ordinary_buffers_never_wait_but_are_bounded(made: Memory) -> None:
    """Ten thousand connections that send five bytes each."""
    claimants = [made.claim(f"{number}", READ_BYTES, is_slow=True) for number in range(10_000)]
    assert all(one.has for one in claimants)
    made.loop.advance(LOOK)
    assert made.memory.used <= SMALL


def test_a_spare_buffer_is_dropped_when_others_need_its_memory(made: Memory) -> None:
    spare, busy = made.claim("spare", 60 * MB), made.claim("busy", 60 * MB)
    assert made.memory.keep_spare(spare)
    assert made.memory.keep_spare(busy)
    made.memory.use_spare(busy)
    assert made.claim("next", 30 * MB).has
    assert made.events == ["spare dropped"]
    assert not made.claim("last", 100 * MB).has
    assert not made.memory.keep_spare(busy), "somebody waits"


def test_who_waits_keeps_what_has_arrived(made: Memory) -> None:
    first = made.claim("first", LARGE)
    second = Claimant(made, "second", False)
    assert not made.memory.take(second, 3 * MB, held=50_000)
    assert made.memory.used == LARGE + 50_000
    first.leave(made.memory.give_back)
    assert made.memory.used == 3 * MB


def test_who_left_gets_nothing(made: Memory) -> None:
    first, gone, stays = (made.claim(name, LARGE) for name in ("first", "gone", "stays"))
    gone.leave(made.memory.forget)
    first.leave(made.memory.forget)
    assert made.events == ["stays granted"]
    stays.leave(made.memory.forget)
    assert made.memory.used == made.memory.waiting_count == 0
