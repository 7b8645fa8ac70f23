"""Turns: long work gives the event loop a turn again and again, so that one request does not keep the others waiting.

A turn of the loop has a budget, `TURN`, for the work between two looks at the sockets. Code says what the next piece of its work costs,
and never how many pieces fit:

    for topic in topics:
        await pace(ELEMENT)                  waits for the next turn if this one is used up
        ...

All coroutines of a loop spend the same budget, so ten long requests side by side hold it no longer than one does. The waiting coroutines
continue in the order in which they came, one in each turn, each with a whole budget; between two of them the loop looks at its sockets.

- Costs are counted, not timed: the same input takes the same turns in every run, and a seed of the simulation replays.
- A cost is a rough number of microseconds. Twice too much is harmless; ten times too little is a turn ten times too long.
- Nothing that waits for nothing is delayed by this, but for one turn in each budget that is spent: the budget is made whole when
  someone waits for a turn, since to ask the loop for a callback in each turn would cost more than all the work of a small request.
- A request whose records are a view of its connection's buffer must copy them before it waits: it asks `spend` first.

Work that cannot be divided, such as to decode one frame, runs in the executor if it costs more than a turn (`is_long`).

Left out: priorities. The budget belongs to the process, since a node has one loop and one process; where brokers run in threads of one,
`one_budget_per_thread` keeps them apart.
"""

from __future__ import annotations

import asyncio
import threading
from asyncio import _get_running_loop
from collections import deque
from collections.abc import Awaitable, Generator
from weakref import WeakValueDictionary

__all__ = [
    "ELEMENT",
    "LOG_OPENED",
    "READ",
    "RECORD",
    "REPLICA",
    "REQUEST",
    "TURN",
    "WRITE",
    "is_long",
    "new_budget",
    "next_turn",
    "next_turn_of",
    "one_budget_per_thread",
    "pace",
    "spend",
]

TURN = 4_000
"""The cost of one turn: a coroutine that has spent it waits for the next."""

RECORD = 1
"""To look at one of many small things: a field, a name, a record in memory."""

ELEMENT = 5
"""To handle one element of an array: to look it up, check it, or make its part of a response."""

REPLICA = 20
"""To create or change a replica without its log."""

REQUEST = 20
"""To decode and handle a small request, and to encode its response."""

READ = 30
"""To read from one partition whose log is open."""

WRITE = 40
"""To append to one partition whose log is open."""

LOG_OPENED = 500
"""To open a log: its first use creates its files."""


class _Budget:
    """The rest of the turn's budget; one object, since a global name is slower to write."""

    __slots__ = ("left",)

    def __init__(self) -> None:
        self.left = TURN


class _ThreadBudget(threading.local):
    """The same for one thread; to find it costs as much again as to spend it."""

    def __init__(self) -> None:
        self.left = TURN


_budget: _Budget | _ThreadBudget = _Budget()


class _Queue:
    """The coroutines of one loop that wait for a turn; one continues in each. While any wait, the loop's next callback keeps it."""

    __slots__ = ("__weakref__", "_loop", "_waiting")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._waiting: deque[asyncio.Future[None]] = deque()

    def __repr__(self) -> str:
        return f"<_Queue waiting={len(self._waiting)}>"

    def join(self) -> asyncio.Future[None]:
        if not self._waiting:
            self._loop.call_soon(self._begin_turn)
        place = self._loop.create_future()
        self._waiting.append(place)
        return place

    def _begin_turn(self) -> None:
        _budget.left = TURN
        waiting = self._waiting
        while waiting:
            place = waiting.popleft()
            if not place.done():  # Else it was cancelled.
                place.set_result(None)
                break
        if waiting:
            self._loop.call_soon(self._begin_turn)


# By the id of the loop. It must not keep a loop that is gone, nor the coroutines that waited there.
_queues: WeakValueDictionary[int, _Queue] = WeakValueDictionary()


class _NextTurn:
    """Outside of a running loop, such as in a test's own: the next step of the coroutine is its turn."""

    __slots__ = ()

    def __await__(self) -> Generator[None, None, None]:
        _budget.left = TURN
        yield


class _NoLoop:
    """The part of a loop that a future needs when it is made."""

    def get_debug(self) -> bool:
        return False


# To await a future that is done is the quickest await there is, and does not suspend.
_go_on: asyncio.Future[None] = asyncio.Future(loop=_NoLoop())  # type: ignore[arg-type]
_go_on.set_result(None)


def pace(cost: int) -> Awaitable[None]:
    """Wait for the next turn of the loop if this one is used up; then spend `cost`, which the caller is about to do."""
    budget = _budget
    budget.left -= cost
    return _go_on if budget.left >= 0 else _paid_later(cost)


async def _paid_later(cost: int) -> None:
    await next_turn()
    _budget.left -= cost


def spend(cost: int) -> bool:
    """Spend without waiting; return whether the turn is used up, so that the caller waits for `next_turn` as soon as it can."""
    budget = _budget
    budget.left -= cost
    return budget.left < 0


def is_long(cost: float) -> bool:
    """Return whether work that cannot be divided costs more than a turn, so that the executor should do it."""
    return cost > TURN


def next_turn() -> Awaitable[None]:
    """Wait for the next turn of the loop, whatever is left of this one: all that is ready now runs before."""
    loop = _get_running_loop()
    return _NextTurn() if loop is None else next_turn_of(loop)


def next_turn_of(loop: asyncio.AbstractEventLoop) -> asyncio.Future[None]:
    """As `next_turn`, for callers that are not coroutines."""
    queue = _queues.get(id(loop))
    if queue is None:
        queue = _queues[id(loop)] = _Queue(loop)
    return queue.join()


def one_budget_per_thread() -> None:
    """Give each thread a budget of its own from now on, for loops in several threads: no loop spends or renews another's."""
    global _budget
    if not isinstance(_budget, _ThreadBudget):
        _budget = _ThreadBudget()


def new_budget() -> None:
    """Begin with a whole turn, as a process does: for a simulation that must replay, and for tests."""
    _budget.left = TURN
