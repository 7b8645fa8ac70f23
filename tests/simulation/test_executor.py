"""Work for a node's threads takes virtual time, waits for a free thread, and dies with its process."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from barnabas.simulation.node import Node
from barnabas.simulation.world import World


def played(story: Callable[[World, Node], Coroutine[Any, Any, None]]) -> None:
    world = World(1)
    node = world.add_node("n")
    world.play(story(world, node), seconds=100)
    assert world.errors == []


async def work(node: Node, done: list[float]) -> float:
    """Hand work to a thread that writes down when it is done; returns when its result is known."""
    await node.loop.run_in_executor(None, lambda: done.append(node.loop.time()))
    return node.loop.time()


def test_work_is_done_at_once_if_it_takes_no_time() -> None:
    async def story(world: World, node: Node) -> None:
        done: list[float] = []
        assert await node.run(work(node, done)) == 0.0
        assert done == [0.0]

    played(story)


def test_work_is_done_within_its_time_and_known_at_its_end() -> None:
    async def story(world: World, node: Node) -> None:
        node.executor.duration = lambda: 2.0
        done: list[float] = []
        ends = [await node.run(work(node, done)) for _ in range(20)]
        for n, (at, end) in enumerate(zip(done, ends, strict=True)):
            assert end == pytest.approx(2.0 * (n + 1))
            assert 2.0 * n <= at <= end
        assert len({round(at % 2.0, 3) for at in done}) > 10, "the moment is drawn"

    played(story)


def test_work_waits_for_a_free_thread() -> None:
    async def story(world: World, node: Node) -> None:
        node.executor.duration = lambda: 1.0
        ends = [node.run(work(node, [])) for _ in range(17)]
        assert [round(await end, 6) for end in ends] == [1.0] * 16 + [2.0]

    played(story)


def test_the_exception_of_work_reaches_whoever_waits() -> None:
    async def story(world: World, node: Node) -> None:
        def fail() -> None:
            raise OSError("broken")

        async def ask() -> None:
            await node.loop.run_in_executor(None, fail)

        for seconds in (0.0, 1.0):
            node.executor.max_seconds = seconds
            with pytest.raises(OSError, match="broken"):
                await node.run(ask())

    played(story)


def test_no_loop_runs_in_a_thread() -> None:
    async def story(world: World, node: Node) -> None:
        async def ask() -> object:
            return await node.loop.run_in_executor(None, asyncio._get_running_loop)

        assert await node.run(ask()) is None

    played(story)


def test_work_that_calls_a_slow_disk_takes_as_much_longer() -> None:
    async def story(world: World, node: Node) -> None:
        node.disk.duration = lambda call, path: 2.0

        async def ask() -> tuple[float, float]:
            node.disk.exists("/a")  # blocks the loop
            asked = node.loop.run_in_executor(None, node.disk.exists, "/b")
            returned = node.loop.time()
            await asked
            return returned, node.loop.time()

        assert await node.run(ask()) == (2.0, 4.0)

    played(story)


def test_work_of_a_process_that_ends_is_not_done() -> None:
    async def story(world: World, node: Node) -> None:
        node.executor.duration = lambda: 10.0
        done: list[float] = []
        node.run(work(node, done))
        await asyncio.sleep(0)
        node.kill()
        await asyncio.sleep(50)
        assert done == []

    played(story)


def test_a_new_process_has_threads_as_slow() -> None:
    async def story(world: World, node: Node) -> None:
        node.slow_threads(1.0)
        assert await node.run(work(node, [])) > 0
        node.kill()
        node.boot()
        began = world.loop.time()
        assert await node.run(work(node, [])) > began

    played(story)


def test_threads_stand_still_with_their_process() -> None:
    async def story(world: World, node: Node) -> None:
        node.executor.duration = lambda: 1.0
        end = node.run(work(node, []))
        await asyncio.sleep(0.5)
        node.pause()
        await asyncio.sleep(10)
        assert not end.done()
        node.go_on()
        assert await end >= 10.5

    played(story)
