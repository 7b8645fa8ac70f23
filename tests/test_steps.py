"""Coroutines that are stepped: answers in the same turn, waits, errors, cancellation, turns of the loop between many."""

from __future__ import annotations

import asyncio
import gc
import itertools
import logging
import weakref
from collections.abc import Awaitable, Coroutine
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.steps import (
    Waiting,
    gather,
    in_background,
    observe,
    run_on_the_spot,
    shielded,
    sleep,
    start,
    step,
)
from barnabas.turns import RECORD, TURN, next_turn
from tests.coordinator.virtual_loop import VirtualLoop

ERROR = KafkaError(ErrorCode.NOT_COORDINATOR)
BUG = ValueError("a bug")


def outcome(future: asyncio.Future[Any]) -> object:
    """What became of a future, as a value that can be compared."""
    if not future.done():
        return "waiting"
    if future.cancelled():
        return "cancelled"
    error = future.exception()
    return future.result() if error is None else error


def settle(future: asyncio.Future[Any], how: str) -> None:
    if future.done():
        return
    if how == "result":
        future.set_result(7)
    elif how == "error":
        future.set_exception(ERROR)
    elif how == "bug":
        future.set_exception(BUG)
    elif how == "cancel":
        future.cancel()


async def passed_on(awaitable: Awaitable[Any]) -> Any:
    return await awaitable


ENDINGS = st.sampled_from(["result", "error", "bug", "cancel"])
MOMENTS = st.sampled_from(["before", "after", "never"])


@given(how=ENDINGS, moment=MOMENTS, cancels=st.booleans())
def test_an_awaited_ending_becomes_the_answers_ending(how: str, moment: str, cancels: bool) -> None:
    loop = VirtualLoop()

    async def answered(future: asyncio.Future[Any]) -> Any:
        try:
            return str(await future)
        except KafkaError as error:
            return error.code.name

    future = loop.create_future()
    if moment == "before":
        settle(future, how)
    answer = start(answered(future), loop)
    assert answer.done() == (moment == "before"), "an answer that is there is given in the same turn"
    if cancels:
        answer.cancel()
    if moment == "after":
        settle(future, how)
    loop.run_ready()
    endings = {"result": "7", "error": "NOT_COORDINATOR", "bug": BUG, "cancel": "cancelled"}
    expected = "waiting" if moment == "never" else endings[how]
    assert outcome(answer) == ("cancelled" if cancels and moment != "before" else expected)
    forget(loop, [future, answer])


@given(endings=st.lists(st.tuples(ENDINGS, MOMENTS), max_size=5))
def test_gather_gives_all_results_or_its_first_failure(endings: list[tuple[str, str]]) -> None:
    loop = VirtualLoop()
    futures = [loop.create_future() for _ in endings]
    for future, (how, moment) in zip(futures, endings, strict=True):
        if moment == "before":
            settle(future, how)
    answer = start(gather([passed_on(future) for future in futures], loop), loop)
    for future, (how, moment) in zip(futures, endings, strict=True):
        if moment == "after":
            settle(future, how)
    loop.run_ready()
    expected: object = [7] * len(endings)
    for how, moment in endings:
        if how != "result" or moment == "never":
            failures = {"error": ERROR, "bug": BUG, "cancel": "cancelled"}
            expected = "waiting" if moment == "never" else failures[how]
            break
    assert outcome(answer) == expected
    forget(loop, [*futures, answer])


def forget(loop: VirtualLoop, futures: list[asyncio.Future[Any]]) -> None:
    """Cancel what still waits and look at each exception, so that nothing is reported later."""
    for future in futures:
        future.cancel()
    loop.run_ready()
    for future in futures:
        if not future.cancelled():
            future.exception()


def test_a_result_that_is_there_is_given_in_the_same_turn() -> None:
    loop = VirtualLoop()
    there = loop.create_future()
    there.set_result(1)
    assert step(passed_on(passed_on(there)), loop) == 1
    assert start(passed_on(there), loop).result() == 1


def test_an_error_before_the_first_wait_is_raised_by_step_and_fails_the_future_of_start() -> None:
    loop = VirtualLoop()

    async def fails() -> None:
        raise ERROR

    with pytest.raises(KafkaError):
        step(fails(), loop)
    assert start(fails(), loop).exception() is ERROR


def test_a_cancelled_future_gives_a_cancelled_future() -> None:
    loop = VirtualLoop()
    gone = loop.create_future()
    gone.cancel()
    stepped = step(passed_on(gone), loop)
    assert isinstance(stepped, asyncio.Future)
    assert stepped.cancelled()
    assert start(passed_on(gone), loop).cancelled()


def test_a_coroutine_may_wait_more_than_once() -> None:
    loop = VirtualLoop()
    first, second = loop.create_future(), loop.create_future()

    async def both() -> int:
        return int(await first) + int(await second)

    answer = step(both(), loop)
    assert isinstance(answer, Waiting)
    first.set_result(1)
    loop.run_ready()
    assert not answer.done()
    second.set_result(2)
    loop.run_ready()
    assert answer.result() == 3


def test_cancelling_reaches_what_the_coroutine_waits_for() -> None:
    loop = VirtualLoop()
    inner = loop.create_future()
    seen = []

    async def tidy() -> None:
        try:
            await inner
        finally:
            seen.append("tidied")

    answer = start(passed_on(tidy()), loop)
    assert answer.cancel()
    loop.run_ready()
    assert inner.cancelled()
    assert answer.cancelled()
    assert seen == ["tidied"]
    assert not answer.cancel()


def test_cancelling_between_turns_reaches_the_coroutine() -> None:
    loop = VirtualLoop()

    async def waits_a_turn() -> None:
        await next_turn()
        raise AssertionError("went on although it was cancelled")

    answer = start(waits_a_turn(), loop)
    answer.cancel()
    loop.run_ready()
    assert answer.cancelled()


def test_a_cancellation_that_comes_with_the_result_still_cancels() -> None:
    loop = VirtualLoop()
    inner, never = loop.create_future(), loop.create_future()

    async def goes_on() -> None:
        await inner
        await never

    answer = start(goes_on(), loop)
    inner.set_result(None)
    answer.cancel()  # The result is on its way: the coroutine is cancelled when it is resumed.
    loop.run_ready()
    assert answer.cancelled()


def test_a_coroutine_that_cancels_its_own_future_is_cancelled_at_its_next_wait() -> None:
    loop = VirtualLoop()
    first, second = loop.create_future(), loop.create_future()
    answers: list[asyncio.Future[None]] = []

    async def cancels_itself() -> None:
        await first
        answers[0].cancel()
        await second

    answers.append(start(cancels_itself(), loop))
    first.set_result(None)
    loop.run_ready()
    assert second.cancelled()
    assert answers[0].cancelled()


@pytest.mark.parametrize("ending", [SystemExit(3), KeyboardInterrupt()])
def test_what_ends_the_process_is_not_kept_back(ending: BaseException) -> None:
    loop = VirtualLoop()
    inner = loop.create_future()

    async def ends() -> None:
        await inner
        raise ending

    answer = start(ends(), loop)
    inner.set_result(None)
    with pytest.raises(type(ending)):
        loop.run_ready()
    assert answer.exception() is ending


def test_gather_cancels_the_others_at_the_first_failure() -> None:
    loop = VirtualLoop()
    fails, waits = loop.create_future(), loop.create_future()
    both = start(gather([passed_on(fails), passed_on(waits)], loop), loop)
    fails.set_exception(ERROR)
    loop.run_ready()
    assert both.exception() is ERROR
    assert waits.cancelled()


def test_cancelling_a_gather_cancels_all() -> None:
    loop = VirtualLoop()
    futures = [loop.create_future() for _ in range(3)]
    answer = start(gather([passed_on(future) for future in futures], loop), loop)
    answer.cancel()
    loop.run_ready()
    assert all(future.cancelled() for future in futures)
    assert answer.cancelled()


def test_sleep_ends_with_its_time_and_takes_its_timer_along() -> None:
    loop = VirtualLoop()
    slept, cancelled = start(sleep(1.5, loop), loop), start(sleep(1.5, loop), loop)
    cancelled.cancel()
    loop.advance(1499)
    assert not slept.done()
    assert cancelled.cancelled()
    loop.advance(1)
    assert slept.done()


def test_shielded_work_goes_on_when_its_waiter_is_cancelled() -> None:
    loop = VirtualLoop()
    inner = loop.create_future()
    done = []

    async def work() -> int:
        done.append(await inner)
        return 1

    kept, left = start(shielded(work(), loop), loop), start(shielded(work(), loop), loop)
    left.cancel()
    loop.run_ready()
    assert left.cancelled()
    assert not inner.done()
    inner.set_result("done")
    loop.run_ready()
    assert done == ["done", "done"]
    assert kept.result() == 1


def test_shielded_work_passes_its_error_on(caplog: pytest.LogCaptureFixture) -> None:
    loop = VirtualLoop()
    inner = loop.create_future()
    heard, unheard = start(shielded(passed_on(inner), loop), loop), start(shielded(passed_on(inner), loop), loop)
    unheard.cancel()
    loop.run_ready()
    with caplog.at_level(logging.INFO):
        inner.set_exception(ERROR)
        loop.run_ready()
    assert heard.exception() is ERROR
    assert "failed after its waiter was cancelled" in caplog.text


def test_shielded_work_that_is_done_is_answered_at_once() -> None:
    loop = VirtualLoop()

    async def now() -> int:
        return 1

    assert step(shielded(now(), loop), loop) == 1


@pytest.mark.parametrize("early", [True, False])
def test_background_work_that_fails_is_logged(early: bool, caplog: pytest.LogCaptureFixture) -> None:
    loop = VirtualLoop()
    inner = loop.create_future()
    if early:
        inner.set_exception(BUG)
    in_background(passed_on(inner), loop)
    if not early:
        inner.set_exception(BUG)
        loop.run_ready()
    assert "passed_on" in caplog.text
    assert "a bug" in caplog.text


@pytest.mark.parametrize("has_loop", [True, False])
def test_what_needs_no_wait_is_done_on_the_spot(has_loop: bool) -> None:
    done: list[str] = []

    async def work() -> None:
        done.append("done")

    run_on_the_spot(work(), VirtualLoop() if has_loop else None)
    assert done == ["done"]


def test_what_waits_goes_on_in_the_background() -> None:
    loop, done = VirtualLoop(), list[str]()

    async def work() -> None:
        await next_turn()
        done.append("done")

    run_on_the_spot(work(), loop)
    assert done == []
    loop.run_ready()
    assert done == ["done"]


def test_without_a_loop_nothing_may_wait_and_errors_are_raised() -> None:
    async def fail() -> None:
        raise BUG

    with pytest.raises(ValueError, match="a bug"):
        run_on_the_spot(fail(), None)
    waiting = passed_on(VirtualLoop().create_future())
    with pytest.raises(AssertionError, match="without a loop nothing may wait"):
        run_on_the_spot(waiting, None)
    waiting.close()


class Reporting(VirtualLoop):
    """A loop that keeps what asyncio reports, such as an exception that was never retrieved."""

    def __init__(self) -> None:
        super().__init__()
        self.reported: list[str] = []

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        self.reported.append(context["message"])


def test_a_failed_answer_that_is_cancelled_is_not_reported() -> None:
    """A connection that closes cancels its answers, also those that have just failed."""
    loop = Reporting()
    awaited = loop.create_future()
    answer = start(passed_on(awaited), loop)
    awaited.set_exception(KafkaError(ErrorCode.NOT_COORDINATOR))
    loop.run_ready()
    assert answer.done()
    assert not answer.cancel()
    del answer, awaited
    gc.collect()
    assert loop.reported == []


def test_a_gather_that_fails_reports_none_of_the_others() -> None:
    loop = Reporting()
    first, second = loop.create_future(), loop.create_future()

    async def fails_on_the_way_out() -> None:
        try:
            await second
        except asyncio.CancelledError:
            raise KafkaError(ErrorCode.NOT_COORDINATOR) from None

    gathered = start(gather([passed_on(first), fails_on_the_way_out()], loop), loop)
    first.set_exception(KafkaError(ErrorCode.NOT_COORDINATOR))
    loop.run_ready()
    assert isinstance(gathered.exception(), KafkaError)
    del first, gathered
    gc.collect()
    assert loop.reported == []


def test_shielded_work_that_fails_just_as_its_waiter_is_cancelled_is_not_reported() -> None:
    loop = Reporting()
    work = loop.create_future()
    waiting = start(shielded(work, loop), loop)
    work.set_exception(KafkaError(ErrorCode.NOT_COORDINATOR))
    loop.run_one_turn()  # The waiter is woken; the coroutine would run in the next turn.
    waiting.cancel()
    loop.run_ready()
    assert waiting.cancelled()
    del work, waiting
    gc.collect()
    assert loop.reported == []


def test_an_observed_failure_still_reaches_who_awaits_it() -> None:
    loop = Reporting()
    failed, dropped = loop.create_future(), loop.create_future()
    for future in (failed, dropped):
        observe(future)
        future.set_exception(KafkaError(ErrorCode.NOT_COORDINATOR))
    loop.run_ready()
    answer = start(passed_on(failed), loop)
    assert isinstance(outcome(answer), KafkaError)
    del failed, dropped, answer
    gc.collect()
    assert loop.reported == []


def turns_of(coroutine: Coroutine[Any, Any, Any]) -> tuple[int, Any]:
    """How many turns a coroutine gives the loop, and its result."""
    for count in itertools.count():
        try:
            coroutine.send(None)
        except StopIteration as finished:
            return count, finished.value
    raise AssertionError("unreachable")


async def one(number: int) -> int:
    return number


def test_a_gather_starts_as_many_in_a_turn_as_they_cost() -> None:
    loop = VirtualLoop()
    begun: list[int] = []

    async def begins(number: int) -> int:
        begun.append(number)
        return number

    gathered = start(gather(map(begins, range(12)), loop, TURN // 4), loop)
    counts = [len(begun)]
    while not gathered.done():
        loop.run_one_turn()
        counts.append(len(begun))
    # The first whose cost is too much has run already: it is paid for in the next turn.
    assert counts[:3] == [5, 9, 12]
    assert gathered.result() == list(range(12))


def test_a_gather_of_few_is_done_in_the_same_turn() -> None:
    assert step(gather(map(one, range(4)), VirtualLoop(), TURN // 5), VirtualLoop()) == list(range(4))


def test_many_results_are_collected_with_turns_in_between() -> None:
    many = range(3 * TURN // RECORD)
    turns, results = turns_of(gather(map(one, many), VirtualLoop(), 0))
    assert results == list(many)
    assert turns == 2


def test_the_futures_of_a_gather_are_freed_over_several_turns() -> None:
    class CountingLoop(VirtualLoop):
        made: weakref.WeakSet[asyncio.Future[Any]] = weakref.WeakSet()

        def create_future(self) -> asyncio.Future[Any]:
            future = super().create_future()
            self.made.add(future)
            return future

    loop = CountingLoop()
    in_a_turn = TURN // RECORD
    gathered = start(gather(map(one, range(3 * in_a_turn)), loop, 0), loop)
    counts = []
    while not gathered.done():
        counts.append(len(loop.made))
        loop.run_one_turn()
    # The first result that is too much for a turn is freed all the same.
    assert counts == [2 * in_a_turn - 1, in_a_turn - 1]
