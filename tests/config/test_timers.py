"""Recurring work, on a virtual loop."""

from __future__ import annotations

import asyncio

from barnabas.config.timers import Timers
from barnabas.simulation.world_loop import WorldLoop


def test_work_recurs_until_it_is_cancelled() -> None:
    loop = WorldLoop()
    timers = Timers(loop)
    at: list[float] = []

    def note() -> None:
        at.append(loop.time() - began)

    async def story() -> None:
        timers.every(100, note)
        assert repr(timers) == "<Timers note>"
        await asyncio.sleep(0.35)
        timers.cancel()
        await asyncio.sleep(1)

    began = loop.time()
    loop.run_until_complete(story())
    assert [round(each, 3) for each in at] == [0.1, 0.2, 0.3]


def test_work_that_cancels_the_timers_is_not_called_again() -> None:
    loop = WorldLoop()
    timers = Timers(loop)
    calls = 0

    def once() -> None:
        nonlocal calls
        calls += 1
        timers.cancel()

    async def story() -> None:
        timers.every(100, once)
        await asyncio.sleep(1)

    loop.run_until_complete(story())
    assert calls == 1
