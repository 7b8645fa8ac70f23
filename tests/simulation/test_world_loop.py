"""The world's loop: no timer fires early, and a loop that no time passes in is an error."""

from __future__ import annotations

import asyncio

import pytest

from barnabas.simulation.world_loop import TURNS_AT_ONCE_MAX, Stuck, WorldLoop


def test_timers_of_almost_the_same_moment_fire_in_their_order_and_none_early() -> None:
    loop, fired = WorldLoop(), []
    for when in (1.0, 1.0 + 5e-10, 1.0 - 5e-10):
        loop.call_at(when, lambda when=when: fired.append((when, loop.time() >= when)))
    loop.run_until_complete(asyncio.sleep(2))
    loop.close()
    assert fired == [(1.0 - 5e-10, True), (1.0, True), (1.0 + 5e-10, True)]


def test_a_timer_that_is_set_again_and_again_for_now_is_an_error() -> None:
    loop = WorldLoop()

    def again() -> None:
        loop.call_later(0, again)

    loop.call_soon(again)
    with pytest.raises(
        Stuck, match=rf"^no time passes in the simulation: {TURNS_AT_ONCE_MAX:,} turns of its loop at 0.000 s$"
    ):
        loop.run_forever()
    loop.close()
