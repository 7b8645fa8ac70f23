"""The loop of one node keeps asyncio's order, stands still, and ends, whatever the world's loop does."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from barnabas.simulation.node import Node
from barnabas.simulation.world import World


def played(story: Callable[[Node, list[object]], Coroutine[Any, Any, None]]) -> list[object]:
    """Play a story about one node and a list that its callbacks append to; returns the list."""
    world = World(1)
    seen: list[object] = []
    world.play(story(world.add_node("n"), seen), seconds=100)
    assert world.errors == []
    return seen


def test_what_falls_due_in_a_pause_keeps_its_order() -> None:
    async def story(node: Node, seen: list[object]) -> None:
        node.pause()
        node.loop.call_soon(seen.append, 1)
        node.loop.call_later(1.0, seen.append, 2)
        await asyncio.sleep(2.0)
        assert seen == []
        node.loop.call_soon(seen.append, 3)
        await asyncio.sleep(0)
        node.loop.call_soon(seen.append, 4)
        node.go_on()
        await asyncio.sleep(0)

    assert played(story) == [1, 2, 3, 4]


def test_what_is_cancelled_in_a_pause_does_not_run() -> None:
    async def story(node: Node, seen: list[object]) -> None:
        node.pause()
        timer = node.loop.call_later(1.0, seen.append, 1)
        await asyncio.sleep(2.0)
        timer.cancel()
        node.go_on()
        await asyncio.sleep(1.0)

    assert played(story) == []


def test_a_paused_process_that_is_killed_never_goes_on() -> None:
    async def story(node: Node, seen: list[object]) -> None:
        loop = node.loop
        node.pause()
        loop.call_soon(seen.append, 1)
        await asyncio.sleep(1.0)
        node.kill()
        loop.go_on()
        loop.call_soon(seen.append, 2)
        loop.call_later(0.0, seen.append, 3)
        await asyncio.sleep(1.0)

    assert played(story) == []


def test_a_killed_task_runs_no_finally() -> None:
    async def story(node: Node, seen: list[object]) -> None:
        async def work() -> None:
            try:
                await asyncio.sleep(1.0)
            finally:
                seen.append("cleaned up")

        node.run(work())
        await asyncio.sleep(0.5)
        node.kill()
        await asyncio.sleep(5.0)
        node.boot()
        await node.run(asyncio.sleep(5.0))
        assert seen == []

    played(story)


def test_a_callback_that_waits_for_the_disk_holds_the_others_up() -> None:
    async def story(node: Node, seen: list[object]) -> None:
        node.disk.duration = lambda call, path: 2.0 if path == "/slow" else 0.0

        def slow() -> None:
            node.disk.exists("/slow")
            seen.append(("slow", node.loop.time()))

        def quick() -> None:
            node.disk.exists("/quick")
            seen.append(("quick", node.loop.time()))

        node.loop.call_soon(slow)
        node.loop.call_soon(quick)
        node.loop.call_later(1.0, quick)
        node.loop.call_later(3.0, quick)
        await asyncio.sleep(5.0)

    assert played(story) == [("slow", 2.0), ("quick", 2.0), ("quick", 2.0), ("quick", 3.0)]


def test_a_process_that_goes_on_still_waits_for_the_disk() -> None:
    async def story(node: Node, seen: list[object]) -> None:
        node.disk.duration = lambda call, path: 2.0
        node.loop.call_soon(node.disk.exists, "/slow")
        node.loop.call_later(0.1, lambda: seen.append(node.loop.time()))
        await asyncio.sleep(0.5)
        node.pause()
        node.go_on()
        await asyncio.sleep(5.0)

    assert played(story) == [2.0]


def test_futures_of_two_nodes_do_not_mix() -> None:
    world = World(1)
    one, other = world.add_node("one"), world.add_node("other")

    async def story() -> None:
        foreign = other.loop.create_future()

        async def wait() -> None:
            await foreign

        with pytest.raises(RuntimeError, match="attached to a different loop"):
            await one.run(wait())

    world.play(story(), seconds=10)
