"""The module `time` follows virtual time in clients, and real time everywhere else."""

from __future__ import annotations

import asyncio
import threading
import time
from datetime import UTC, datetime

import pytest

from barnabas import simulation

BEGAN = datetime(2026, 1, 1, tzinfo=UTC).timestamp()


def test_the_functions_of_time_follow_the_clocks_of_the_run() -> None:
    async def scenario(cluster: simulation.Cluster) -> None:
        assert BEGAN < time.time() < BEGAN + 10
        began, wall = time.monotonic(), time.time()
        await asyncio.sleep(600)
        assert time.monotonic() - began == pytest.approx(600, abs=0.01)
        assert time.perf_counter_ns() == pytest.approx(time.monotonic_ns(), abs=1e6)
        cluster.move_clock(-60, of="scenario")
        assert time.time() - wall == pytest.approx(540, abs=0.01)
        assert time.time_ns() == pytest.approx(time.time() * 1e9, abs=1e7)

    functions = time.time, time.monotonic, time.sleep
    simulation.run(scenario, seed=1, nodes=1)
    assert functions == (time.time, time.monotonic, time.sleep)


def test_other_threads_have_real_time() -> None:
    found: list[float] = []

    async def scenario(cluster: simulation.Cluster) -> None:
        thread = threading.Thread(target=lambda: found.append(time.monotonic()))
        thread.start()
        thread.join()

    before = time.monotonic()
    simulation.run(scenario, seed=1, nodes=1)
    assert before <= found[0] <= time.monotonic()


def test_a_clock_that_is_looked_at_goes_on() -> None:
    async def scenario(cluster: simulation.Cluster) -> bool:
        deadline = time.monotonic() + 1
        await asyncio.sleep(1)
        while time.monotonic() <= deadline:
            await asyncio.sleep(max(0, deadline - time.monotonic()))
        return True

    assert simulation.run(scenario, seed=1, nodes=1).value


def test_a_call_of_sleep_blocks_its_own_process_in_virtual_time() -> None:
    async def block() -> float:
        began, sleep = time.monotonic(), time.sleep
        sleep(30)
        return time.monotonic() - began

    async def block_in_a_thread() -> float:
        loop = asyncio.get_running_loop()
        began = loop.time()
        waiting = loop.create_task(asyncio.to_thread(time.sleep, 30))
        await asyncio.sleep(1)
        assert not waiting.done()
        await waiting
        return loop.time() - began

    async def scenario(cluster: simulation.Cluster) -> None:
        loop = asyncio.get_running_loop()
        began = loop.time()
        blocked = cluster.process("worker").run(block())
        await asyncio.sleep(1)
        assert loop.time() - began < 1.1
        assert await blocked == pytest.approx(30, abs=0.01)
        assert await cluster.process("worker").run(block_in_a_thread()) == pytest.approx(30, abs=0.1)

    simulation.run(scenario, seed=1, nodes=1)
