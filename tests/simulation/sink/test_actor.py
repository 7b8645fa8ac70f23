"""Blocking code on virtual time: one thread at a time, answers and errors of the world, and a death that nothing catches."""

from __future__ import annotations

import asyncio
import threading

import pytest

from barnabas.simulation.world import World
from tests.simulation.sink.actor import Killed
from tests.simulation.sink.process import FROZEN_BEFORE, KILLED_BEFORE, Process, ProcessFault

DAY = 86_400.0


def test_a_pause_is_virtual():
    world = World(1)
    process = Process(world, "p")

    def work() -> float:
        process.sleep(DAY)
        return process.clock()

    async def story() -> float:
        return await process.node.run(process.call(work))

    assert world.play(story()) == pytest.approx(DAY)


def test_actors_take_turns_as_their_waits_end():
    world, said = World(1), []
    processes = [Process(world, f"p{number}") for number in range(3)]

    def work(process: Process, seconds: float) -> None:
        for _ in range(3):
            process.sleep(seconds)
            said.append(process.clock())

    async def story() -> None:
        running = [
            each.node.run(each.call(lambda each=each, number=number: work(each, 2.0 + number)))
            for number, each in enumerate(processes)
        ]
        await asyncio.gather(*running)

    world.play(story())
    assert said == sorted(said)
    assert len(said) == 9


def test_an_error_of_the_world_is_raised_where_the_actor_waits():
    world = World(1)
    process = Process(world, "p")

    async def fail() -> None:
        raise ConnectionResetError("gone")

    def work() -> str:
        with pytest.raises(ConnectionResetError):
            process.wait(fail())
        process.sleep(1)
        raise ValueError("mine")

    async def story() -> None:
        with pytest.raises(ValueError, match="mine"):
            await process.node.run(process.call(work))

    world.play(story())


def test_a_killed_actor_ends_and_waits_for_nothing_more():
    world, said = World(1), []
    process = Process(world, "p")
    before = threading.active_count()

    def work() -> None:
        try:
            process.sleep(DAY)
        except Exception:
            said.append("caught")
        finally:
            try:
                process.sleep(1)
            except Killed:
                said.append("still dead")

    async def story() -> None:
        running = process.node.run(process.call(work))
        await asyncio.sleep(1)
        process.kill()
        with pytest.raises(Exception, match="died"):
            await running

    world.play(story())
    assert said == ["still dead"]
    assert threading.active_count() == before


@pytest.mark.parametrize(("kind", "ends_at"), [(KILLED_BEFORE, None), (FROZEN_BEFORE, 8.0)])
def test_a_fault_strikes_at_the_request_that_it_is_aimed_at(kind, ends_at):
    world, said = World(1), []
    process = Process(world, "p", ProcessFault(kind, "EndTxn", 1, seconds=5.0))

    def work() -> None:
        for name in ("EndTxn", "Produce", "EndTxn"):
            process.sleep(1)
            process.before_request(name)
            said.append((name, process.clock()))

    async def story() -> None:
        running = process.node.run(process.call(work))
        await asyncio.wait([running])

    world.play(story())
    assert said[:2] == [("EndTxn", 1.0), ("Produce", 2.0)]
    assert [at for _, at in said[2:]] == ([] if ends_at is None else [pytest.approx(ends_at)])
    assert process.is_up == (ends_at is not None)
    assert process.struck is not None
