"""A client's process: its exceptions, its pauses and its deaths."""

from __future__ import annotations

import asyncio

import pytest

from barnabas import simulation


def test_an_exception_of_a_process_comes_out_though_nobody_awaits_it() -> None:
    async def broken() -> None:
        await asyncio.sleep(5)
        raise ValueError("no such order")

    async def scenario(cluster: simulation.Cluster) -> None:
        cluster.process("worker").run(broken())
        await asyncio.sleep(1000)

    with pytest.raises(ValueError, match="no such order") as caught:
        simulation.run(scenario, seed=1, nodes=1)
    assert "seed 1, after " in caught.value.__notes__[0]


def test_an_exception_of_a_process_goes_to_whoever_awaits_it() -> None:
    async def broken() -> None:
        raise ValueError("no such order")

    async def scenario(cluster: simulation.Cluster) -> None:
        with pytest.raises(ValueError, match="no such order"):
            await cluster.process("worker").run(broken())
        asked = cluster.process("worker").run(asyncio.sleep(10))
        cluster.process("worker").kill()
        with pytest.raises(simulation.NodeDied, match="worker died"):
            await asked

    simulation.run(scenario, seed=1, nodes=1)


def test_a_paused_process_stands_still() -> None:
    async def count(ticks: list[float]) -> None:
        while True:
            await asyncio.sleep(1)
            ticks.append(asyncio.get_running_loop().time())

    async def scenario(cluster: simulation.Cluster) -> None:
        ticks: list[float] = []
        process = cluster.process("clock")
        assert cluster.process("clock") is process
        process.run(count(ticks))
        await asyncio.sleep(10.5)
        process.pause()
        await asyncio.sleep(60)
        assert len(ticks) == 10
        process.resume()
        await asyncio.sleep(10)
        assert len(ticks) == 20
        process.kill()
        with pytest.raises(RuntimeError, match="clock is dead: run something in it first"):
            process.pause()
        await asyncio.sleep(10)
        assert len(ticks) == 20
        process.run(count(ticks))
        await asyncio.sleep(5.5)
        assert len(ticks) == 25

    simulation.run(scenario, seed=1, nodes=1)
