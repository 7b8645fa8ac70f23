"""The budget of a turn, and the queue of those that have used it up."""

from __future__ import annotations

import asyncio
import gc
import itertools
import subprocess
import sys
import weakref
from collections.abc import Iterator

import pytest

from barnabas.steps import start
from barnabas.turns import ELEMENT, RECORD, TURN, is_long, new_budget, next_turn, next_turn_of, pace, spend
from tests.at_once import turn_by_turn
from tests.coordinator.virtual_loop import VirtualLoop

HALF = TURN // 2


@pytest.fixture
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    made = asyncio.new_event_loop()
    yield made
    made.close()


def run_one_turn(loop: asyncio.AbstractEventLoop) -> None:
    """Run what is ready now, and not what that makes ready."""
    loop.call_soon(loop.stop)
    loop.run_forever()


class Walkers:
    """Long requests that walk through elements, and note in which turn of the loop each was walked.

    Attributes:
        walked: how many elements each has walked, by its name.
        spent_in_turns: what was spent in each turn of the loop so far.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.walked: dict[str, int] = {}
        self.tasks: dict[str, asyncio.Task[None]] = {}
        self.spent_in_turns = [0]

    def __repr__(self) -> str:
        return f"<Walkers {self.walked}>"

    def begin(self, name: str, elements: int, cost: int = ELEMENT) -> asyncio.Task[None]:
        self.walked[name] = 0
        self.tasks[name] = self.loop.create_task(self._walk(name, elements, cost))
        return self.tasks[name]

    async def _walk(self, name: str, elements: int, cost: int) -> None:
        for _ in range(elements):
            await pace(cost)
            self.walked[name] += 1
            self.spent_in_turns[-1] += cost

    def run_one_turn(self) -> None:
        self.spent_in_turns.append(0)
        run_one_turn(self.loop)

    def run(self) -> None:
        while not all(task.done() for task in self.tasks.values()):
            self.run_one_turn()


def test_what_costs_no_more_than_a_turn_is_done_in_one(loop: asyncio.AbstractEventLoop) -> None:
    walkers = Walkers(loop)
    walker = walkers.begin("a", TURN // ELEMENT)
    run_one_turn(loop)
    assert walkers.walked == {"a": TURN // ELEMENT}
    assert walker.done()


@pytest.mark.parametrize("cost", [RECORD, ELEMENT, 30, TURN])
def test_a_long_walk_spends_a_budget_in_a_turn(loop: asyncio.AbstractEventLoop, cost: int) -> None:
    walkers = Walkers(loop)
    walkers.begin("a", 3 * TURN // cost, cost)
    walkers.run()
    spent = [each for each in walkers.spent_in_turns if each]
    assert sum(spent) == 3 * TURN // cost * cost
    assert max(spent) <= TURN
    assert len(spent) <= 4


def test_what_costs_more_than_a_turn_has_one_of_its_own(loop: asyncio.AbstractEventLoop) -> None:
    walkers = Walkers(loop)
    walkers.begin("a", 3, 3 * TURN)
    walkers.run()
    assert [each for each in walkers.spent_in_turns if each] == [3 * TURN] * 3


@pytest.mark.parametrize("count", [2, 10])
def test_long_walks_side_by_side_spend_one_budget(loop: asyncio.AbstractEventLoop, count: int) -> None:
    walkers = Walkers(loop)
    for name in range(count):
        walkers.begin(str(name), 2 * TURN // ELEMENT)
    walkers.run()
    assert max(walkers.spent_in_turns) <= TURN
    # None is a turn ahead of the others, and a turn in which nobody walks is only the one in which the next begins.
    assert len(walkers.spent_in_turns) <= 2 * count + 4


def test_walks_go_on_in_the_order_in_which_they_came(loop: asyncio.AbstractEventLoop) -> None:
    went_on: list[int] = []

    async def go_on(number: int) -> None:
        await next_turn()
        went_on.append(number)

    tasks = [loop.create_task(go_on(number)) for number in range(5)]
    in_turns = []
    while len(went_on) < 5:
        run_one_turn(loop)
        in_turns.append(list(went_on))
    # In the first turn all of them ask, in the second the first one's begins.
    assert in_turns == [[], [], *(list(range(number)) for number in range(1, 6))]
    assert all(task.done() for task in tasks)


@pytest.mark.parametrize("finds_the_turn_used_up", [False, True])
def test_a_short_request_waits_for_its_place_and_not_for_the_end_of_long_walks(
    loop: asyncio.AbstractEventLoop, finds_the_turn_used_up: bool
) -> None:
    walkers = Walkers(loop)
    for number in range(5):
        walkers.begin(f"long {number}", 40 * TURN // ELEMENT)

    async def be_short() -> None:
        if finds_the_turn_used_up:
            spend(TURN)
        await pace(ELEMENT)

    waited = []
    for _ in range(8):
        walkers.run_one_turn()
        began = len(walkers.spent_in_turns)
        short = loop.create_task(be_short())
        while not short.done():
            walkers.run_one_turn()
        waited.append(len(walkers.spent_in_turns) - began)
    # A turn to ask in, one for each of the five, and one to go on in.
    assert max(waited) <= (7 if finds_the_turn_used_up else 1), waited
    assert min(waited) >= (5 if finds_the_turn_used_up else 1), waited
    assert not any(task.done() for task in walkers.tasks.values())
    walkers.run()


def test_what_does_not_pace_is_not_delayed_by_long_walks(loop: asyncio.AbstractEventLoop) -> None:
    walkers = Walkers(loop)
    for number in range(5):
        walkers.begin(f"long {number}", 10 * TURN // ELEMENT)
    ticks = 0

    def tick() -> None:
        nonlocal ticks
        ticks += 1
        loop.call_soon(tick)

    loop.call_soon(tick)
    count = 0
    while not all(task.done() for task in walkers.tasks.values()):
        walkers.run_one_turn()
        count += 1
    assert ticks == count


def test_a_waiter_that_is_cancelled_is_passed_over_in_the_same_turn(loop: asyncio.AbstractEventLoop) -> None:
    went_on: list[int] = []

    async def go_on(number: int) -> None:
        await next_turn()
        went_on.append(number)

    tasks = [loop.create_task(go_on(number)) for number in range(4)]
    run_one_turn(loop)
    tasks[0].cancel()
    tasks[1].cancel()
    run_one_turn(loop)
    run_one_turn(loop)
    assert went_on == [2]
    run_one_turn(loop)
    assert went_on == [2, 3]
    assert [task.cancelled() for task in tasks] == [True, True, False, False]


def test_a_queue_of_which_all_are_cancelled_serves_those_who_come_later(loop: asyncio.AbstractEventLoop) -> None:
    async def wait() -> None:
        await next_turn()

    cancelled = loop.create_task(wait())
    run_one_turn(loop)
    cancelled.cancel()
    run_one_turn(loop)
    later = loop.create_task(wait())
    for _ in range(3):
        run_one_turn(loop)
    assert (cancelled.cancelled(), later.done()) == (True, True)


def test_a_cancelled_walk_sees_it_where_it_waits(loop: asyncio.AbstractEventLoop) -> None:
    seen: list[str] = []

    async def walk() -> None:
        spend(TURN + 1)
        try:
            await pace(ELEMENT)
        except asyncio.CancelledError:
            seen.append("cancelled")
            raise

    task = loop.create_task(walk())
    run_one_turn(loop)
    task.cancel()
    run_one_turn(loop)
    run_one_turn(loop)
    assert (seen, task.cancelled()) == (["cancelled"], True)


def test_where_nothing_is_spent_nothing_waits(loop: asyncio.AbstractEventLoop) -> None:
    async def walk() -> int:
        for count in itertools.count():
            if count == 10 * TURN:
                return count
            await pace(0)
        raise AssertionError("unreachable")

    task = loop.create_task(walk())
    run_one_turn(loop)
    assert task.result() == 10 * TURN


def test_pace_waits_only_when_the_budget_is_spent_and_then_pays_in_the_next_turn() -> None:
    async def walk() -> list[bool]:
        paid = []
        for cost in (HALF, HALF, HALF):
            await pace(cost)
            paid.append(spend(0))
        paid.append(spend(HALF))
        paid.append(spend(1))
        return paid

    walking = turn_by_turn(walk())
    next(walking)  # The third does not fit.
    with pytest.raises(StopIteration) as end:
        next(walking)
    assert end.value.value == [False, False, False, False, True]


def test_spend_tells_when_the_turn_is_used_up() -> None:
    assert [spend(TURN), spend(0), spend(1), spend(0)] == [False, False, True, True]
    new_budget()
    assert not spend(TURN)


def test_what_costs_more_than_a_turn_is_long() -> None:
    assert [is_long(TURN), is_long(TURN + 1), is_long(TURN + 0.5)] == [False, True, True]


def test_the_next_turn_has_a_whole_budget(loop: asyncio.AbstractEventLoop) -> None:
    async def wait() -> bool:
        spend(3 * TURN)
        await next_turn()
        return spend(TURN)

    assert not loop.run_until_complete(wait())


def test_all_that_is_ready_runs_before_the_next_turn(loop: asyncio.AbstractEventLoop) -> None:
    order: list[str] = []

    async def wait() -> None:
        loop.call_soon(order.append, "ready before")
        await next_turn()
        order.append("next turn")

    loop.create_task(wait())
    loop.call_soon(order.append, "ready as well")
    for _ in range(3):
        run_one_turn(loop)
    assert order == ["ready as well", "ready before", "next turn"]


def test_a_callback_may_have_a_place_too(loop: asyncio.AbstractEventLoop) -> None:
    order: list[str] = []

    async def wait() -> None:
        await next_turn()
        order.append("coroutine")

    task = loop.create_task(wait())
    run_one_turn(loop)
    spend(2 * TURN)
    next_turn_of(loop).add_done_callback(lambda _: order.append("callback"))
    for _ in range(3):
        run_one_turn(loop)
    assert (order, task.done()) == (["coroutine", "callback"], True)
    assert not spend(0)


def test_each_loop_has_a_queue_of_its_own() -> None:
    first, second = asyncio.new_event_loop(), asyncio.new_event_loop()
    places = [next_turn_of(first), next_turn_of(second)]
    for each in (second, second):
        run_one_turn(each)
    assert [place.done() for place in places] == [False, True]
    first.close()
    second.close()


@pytest.mark.parametrize("has_run", [True, False])
def test_a_loop_that_is_gone_is_not_kept(has_run: bool) -> None:
    class Loop(VirtualLoop):
        pass

    loop = Loop()
    place = next_turn_of(loop)  # type: ignore[arg-type]
    if has_run:
        loop.run_ready()
    assert place.done() == has_run
    gone = weakref.ref(loop)
    del loop, place
    gc.collect()
    assert gone() is None


def test_outside_of_a_running_loop_each_coroutine_has_its_turn_when_it_is_stepped() -> None:
    loop = VirtualLoop()
    walked = [0, 0]

    async def walk(number: int) -> None:
        for _ in range(2 * TURN // ELEMENT):
            await pace(ELEMENT)
            walked[number] += 1

    both = [start(walk(number), loop) for number in range(2)]
    assert walked[0] == TURN // ELEMENT
    loop.run_ready()
    assert all(one.done() for one in both)
    assert walked == [2 * TURN // ELEMENT] * 2


def test_the_same_input_takes_the_same_turns() -> None:
    def turns_taken() -> list[int]:
        new_budget()
        loop = asyncio.new_event_loop()
        walkers = Walkers(loop)
        for name, cost in zip("abc", (RECORD, ELEMENT, 30), strict=True):
            walkers.begin(name, 2 * TURN // cost + 7, cost)
        walkers.run()
        loop.close()
        return walkers.spent_in_turns

    first = turns_taken()
    assert turns_taken() == first


APART = """
import threading
from barnabas.turns import TURN, new_budget, one_budget_per_thread, spend

def elsewhere(cost):
    found = []
    thread = threading.Thread(target=lambda: found.append(spend(cost)))
    thread.start()
    thread.join()
    return found[0]

print(elsewhere(TURN), spend(1))
one_budget_per_thread()
one_budget_per_thread()
print(elsewhere(TURN), spend(TURN), elsewhere(TURN), spend(1))
new_budget()
print(spend(TURN))
"""


def test_a_process_has_one_budget_until_each_thread_has_its_own() -> None:
    """In a process of its own, since there is no way back."""
    done = subprocess.run([sys.executable, "-c", APART], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["False True", "False False False True", "False"]
