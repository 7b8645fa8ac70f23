"""Pauses: over, woken, woken before they begin, cancelled."""

from __future__ import annotations

import asyncio

import pytest

from barnabas.pause import Pause
from barnabas.steps import start
from tests.api.quiet_clock import QuietClock
from tests.coordinator.virtual_loop import VirtualLoop


def test_a_pause_ends_with_its_time() -> None:
    loop = VirtualLoop()
    resting = start(Pause(loop).or_woken(1.5), loop)
    loop.advance(1499)
    assert not resting.done()
    loop.advance(1)
    assert resting.result() is False


def test_a_wake_ends_a_pause_and_takes_its_timer_along() -> None:
    loop = VirtualLoop()
    pause = Pause(loop)
    resting = start(pause.or_woken(1.5), loop)
    loop.advance(100)
    assert not resting.done()
    pause.wake()
    pause.wake()
    loop.run_ready()
    assert resting.result() is True
    # The timer of this pause must not end the next one.
    next_one = start(pause.or_woken(10), loop)
    loop.advance(9_999)
    assert not next_one.done()
    loop.advance(1)
    assert next_one.result() is False


def test_without_a_limit_only_a_wake_ends_a_pause() -> None:
    loop = VirtualLoop()
    pause = Pause(loop)
    resting = start(pause.or_woken(None), loop)
    loop.advance(10**9)
    assert not resting.done()
    pause.wake()
    loop.run_ready()
    assert resting.result() is True


@pytest.mark.parametrize("times", [1, 2])
@pytest.mark.parametrize("seconds", [5, None])
def test_a_wake_that_comes_before_a_pause_ends_the_next_one_and_no_other(times: int, seconds: float | None) -> None:
    loop = VirtualLoop()
    pause = Pause(loop)
    for _ in range(times):
        pause.wake()
    assert start(pause.or_woken(seconds), loop).result() is True
    second = start(pause.or_woken(1), loop)
    assert not second.done()
    loop.advance(1_000)
    assert second.result() is False


def test_a_wake_between_the_end_of_a_pause_and_the_next_step_of_the_coroutine_counts_for_this_pause() -> None:
    loop = QuietClock()

    async def story() -> tuple[bool, bool]:
        pause = Pause(loop)
        resting = start(pause.or_woken(1), loop)
        # Due in the same turn as the end of the pause, and after it: the coroutine goes on in the next one.
        loop.call_later(1, pause.wake)
        return await resting, await pause.or_woken(1)

    assert loop.run_until_complete(story()) == (True, False)
    assert loop.time() == pytest.approx(2)
    loop.close()


def test_a_pause_that_is_cancelled_takes_its_timer_along_and_another_may_begin() -> None:
    loop = VirtualLoop()
    pause = Pause(loop)
    resting = start(pause.or_woken(1), loop)
    resting.cancel()
    loop.run_ready()
    assert resting.cancelled()
    again = start(pause.or_woken(2), loop)
    loop.advance(1_999)
    assert not again.done()
    loop.advance(1)
    assert again.result() is False


def test_a_wake_of_a_pause_that_is_being_cancelled_is_for_the_next_one() -> None:
    loop = VirtualLoop()
    pause = Pause(loop)
    resting = start(pause.or_woken(1), loop)
    resting.cancel()
    pause.wake()
    loop.run_ready()
    assert resting.cancelled()
    assert start(pause.or_woken(1), loop).result() is True


def test_one_coroutine_rests() -> None:
    loop = VirtualLoop()
    pause = Pause(loop)
    resting = start(pause.or_woken(1), loop)
    second = start(pause.or_woken(1), loop)
    assert isinstance(second.exception(), AssertionError)
    loop.advance(1_000)
    assert resting.result() is False


def test_a_pause_says_what_it_does() -> None:
    loop = VirtualLoop()
    pause = Pause(loop)
    assert repr(pause) == "<Pause at work>"
    resting = start(pause.or_woken(1), loop)
    assert repr(pause) == "<Pause resting>"
    loop.advance(1_000)
    assert resting.done()
    pause.wake()
    assert repr(pause) == "<Pause woken>"


def test_a_pause_in_a_task_of_asyncio_may_be_woken_and_cancelled() -> None:
    async def story() -> tuple[bool, bool]:
        pause = Pause(asyncio.get_running_loop())
        woken = asyncio.ensure_future(pause.or_woken(60))
        await asyncio.sleep(0)
        pause.wake()
        was_woken = await woken
        cancelled = asyncio.ensure_future(pause.or_woken(60))
        await asyncio.sleep(0)
        cancelled.cancel()
        await asyncio.wait([cancelled])
        return was_woken, cancelled.cancelled()

    assert asyncio.run(story()) == (True, True)
