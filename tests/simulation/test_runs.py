"""Scenarios with a client of another project, aiokafka, on the simulated loop: their values, their failures, and that a seed replays."""

from __future__ import annotations

import asyncio
import logging
import os
import random
import re
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

import barnabas
from barnabas import simulation
from barnabas.simulation.world_loop import TURNS_AT_ONCE_MAX

DAY = 86_400


@pytest.fixture(autouse=True)
def quiet() -> Any:
    """Clients of nodes that are killed have much to say."""
    logger = logging.getLogger("aiokafka")
    before = logger.level
    logger.setLevel(logging.CRITICAL)
    yield
    logger.setLevel(before)


@asynccontextmanager
async def consumer_of(cluster: simulation.Cluster, group: str | None = "g") -> AsyncIterator[Any]:
    consumer = AIOKafkaConsumer(
        "orders", bootstrap_servers=cluster.bootstrap_servers, group_id=group, auto_offset_reset="earliest"
    )
    async with consumer:
        yield consumer


async def send(cluster: simulation.Cluster, *values: bytes) -> list[Any]:
    async with AIOKafkaProducer(bootstrap_servers=cluster.bootstrap_servers) as producer:
        return [await producer.send_and_wait("orders", value) for value in values]


def now() -> float:
    return asyncio.get_running_loop().time()


async def eventful(cluster: simulation.Cluster) -> list[bytes]:
    """Send and read while a worker and a node die."""
    await cluster.create_topic("orders", 3)
    done: list[bytes] = []

    async def work() -> None:
        async with consumer_of(cluster) as consumer:
            async for record in consumer:
                done.append(record.value)

    workers = [cluster.process("one"), cluster.process("two")]
    for worker in workers:
        worker.run(work())
    cluster.process("shop").run(send(cluster, *(b"%d" % number for number in range(20))))
    await asyncio.sleep(cluster.random.uniform(1, 5))
    cluster.random.choice(workers).kill()
    cluster.kill(await cluster.leader("orders"))
    while len(set(done)) < 20:
        await asyncio.sleep(1)
    return done


async def sending(cluster: simulation.Cluster) -> None:
    await cluster.create_topic("orders", 3)
    await send(cluster, *(b"%d" % number for number in range(10)))


@pytest.mark.slow
def test_a_seed_replays_its_run() -> None:
    first, again = (simulation.run(eventful, seed=3) for _ in range(2))
    assert first == again
    assert first.seed == 3
    assert "is killed" in first.timeline


def test_another_seed_gives_another_run() -> None:
    one, other = (simulation.run(sending, seed=seed, nodes=1) for seed in (1, 2))
    assert one.digest != other.digest


@pytest.mark.long
def test_a_seed_replays_its_run_in_another_process() -> None:
    code = "from tests.simulation import test_runs; print(test_runs.simulation.run(test_runs.sending, seed=3).digest)"
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", code], text=True, stdout=subprocess.PIPE, env={**os.environ, "PYTHONHASHSEED": "0"}
        )
        for _ in range(2)
    ]
    digests = {process.communicate()[0] for process in processes}
    assert [process.returncode for process in processes] == [0, 0]
    assert len(digests) == 1


@pytest.mark.slow
def test_a_dead_member_keeps_its_partition_for_its_session_of_45_seconds() -> None:
    async def scenario(cluster: simulation.Cluster) -> tuple[float, list[bytes]]:
        await cluster.create_topic("orders")
        await send(cluster, b"one")
        seen: list[bytes] = []

        async def work() -> None:
            async with AIOKafkaConsumer(
                "orders",
                bootstrap_servers=cluster.bootstrap_servers,
                group_id="g",
                auto_offset_reset="earliest",
                session_timeout_ms=45_000,
                enable_auto_commit=False,
            ) as consumer:
                async for record in consumer:
                    seen.append(record.value)

        first, second = cluster.process("first"), cluster.process("second")
        first.run(work())
        while not seen:
            await asyncio.sleep(0.1)
        first.kill()
        killed_at = now()
        second.run(work())
        while len(seen) < 2:
            await asyncio.sleep(0.1)
        return now() - killed_at, seen

    waited, seen = simulation.run(scenario, seed=1, nodes=1).value
    assert 40 < waited < 50  # the last heartbeat was up to 3 s before the kill
    assert seen == [b"one", b"one"]


@pytest.mark.slow
def test_retention_of_seven_days_deletes_what_is_older() -> None:
    async def scenario(cluster: simulation.Cluster) -> list[int]:
        await cluster.create_topic("orders", config={"retention.ms": 7 * DAY * 1000})
        await send(cluster, b"old")
        began = time.time()
        cluster.move_clock(6 * DAY)
        await asyncio.sleep(400)
        first = [await beginning(cluster)]
        cluster.move_clock(DAY)
        await asyncio.sleep(400)  # more than log.retention.check.interval.ms
        assert 7 * DAY < time.time() - began < 7 * DAY + 900
        (sent,) = await send(cluster, b"new")
        return [*first, await beginning(cluster), sent.offset]

    assert simulation.run(scenario, seed=1, nodes=1).value == [0, 1, 1]


async def beginning(cluster: simulation.Cluster) -> int:
    async with consumer_of(cluster, group=None) as consumer:
        (partition,) = consumer.assignment()
        found: dict[Any, int] = await consumer.beginning_offsets([partition])
        return found[partition]


def test_what_a_scenario_returns_and_how_long_it_took() -> None:
    async def scenario(cluster: simulation.Cluster) -> str:
        await asyncio.sleep(100)
        return cluster.bootstrap_servers

    ran = simulation.run(scenario, seed=1, nodes=1)
    assert ran.value == "host-1.invalid:9092"
    assert 100 < ran.seconds < 110


def test_an_exception_comes_out_and_names_the_seed() -> None:
    async def scenario(cluster: simulation.Cluster) -> None:
        cluster.kill(1)
        raise KeyError("order 7")

    with pytest.raises(KeyError, match="order 7") as caught:
        simulation.run(scenario, seed=77, nodes=1)
    (note,) = caught.value.__notes__
    assert note.startswith("seed 77, after ")
    assert "node 1      is killed" in note


def test_an_exception_in_a_callback_ends_the_run_with_an_error() -> None:
    async def scenario(cluster: simulation.Cluster) -> None:
        asyncio.get_running_loop().call_later(1, lambda: 1 // 0)
        await asyncio.sleep(2)

    with pytest.raises(RuntimeError, match=r"seed 1: .*ZeroDivisionError"):
        simulation.run(scenario, seed=1, nodes=1)


def test_a_scenario_that_hangs_says_where_it_waits() -> None:
    async def wait_for_nothing() -> None:
        await asyncio.Event().wait()

    async def scenario(cluster: simulation.Cluster) -> None:
        cluster.process("worker").run(wait_for_nothing())
        await wait_for_nothing()

    with pytest.raises(simulation.Hung) as caught:
        simulation.run(scenario, seed=1, nodes=1, seconds=200)
    place = r"test_runs\.py:\d+, 'await asyncio.Event\(\).wait\(\)'"
    assert re.fullmatch(
        rf"seed 1: .* still goes on at 20\d s; scenario waits in {place}, worker waits in {place}", str(caught.value)
    )


def test_a_scenario_that_waits_without_time_is_not_an_endless_loop() -> None:
    async def scenario(cluster: simulation.Cluster) -> None:
        while True:
            await asyncio.sleep(0)

    with pytest.raises(simulation.Hung, match=rf"no time passes in the simulation: {TURNS_AT_ONCE_MAX:,} turns"):
        simulation.run(scenario, seed=1, nodes=1)


def test_a_scenario_whose_cluster_is_dead_ends_at_once() -> None:
    async def scenario(cluster: simulation.Cluster) -> None:
        cluster.kill(1)
        await asyncio.Event().wait()

    with pytest.raises(simulation.Hung, match="nothing is scheduled in the simulation; scenario waits in"):
        simulation.run(scenario, seed=1, nodes=1)


def test_chance_follows_from_the_seed_and_is_put_back() -> None:
    async def scenario(cluster: simulation.Cluster) -> tuple[float, float]:
        return random.random(), cluster.random.random()

    random.seed(5)
    expected = random.random()
    random.seed(5)
    one, again, other = (simulation.run(scenario, seed=seed, nodes=1).value for seed in (1, 1, 2))
    assert random.random() == expected
    assert one == again != other


def test_what_leaves_the_simulation_says_so() -> None:
    async def scenario(cluster: simulation.Cluster) -> None:
        loop = asyncio.get_running_loop()
        with pytest.raises(NotImplementedError, match=r"^loop.subprocess_exec is not in the simulation: "):
            await asyncio.create_subprocess_exec("true")
        with pytest.raises(NotImplementedError, match="no TLS"):
            await asyncio.open_connection("host-1.invalid", 9092, ssl=True)
        with socket.socket() as own, pytest.raises(NotImplementedError, match="sock_connect"):
            await loop.sock_connect(own, ("host-1.invalid", 9092))
        assert (await loop.getaddrinfo("host-1.invalid", 9092))[0][4] == ("host-1.invalid", 9092)

    simulation.run(scenario, seed=1, nodes=1)


async def nothing(cluster: simulation.Cluster) -> None:
    """Do nothing."""


def test_a_run_inside_a_loop_is_an_error() -> None:
    async def inside() -> None:
        simulation.run(nothing, seed=1)

    with pytest.raises(RuntimeError, match="call it from a function that is not async"):
        asyncio.run(inside())


def test_mistakes_in_the_arguments() -> None:
    with pytest.raises(TypeError, match="is not an async function: pass one that takes the cluster"):
        simulation.run(lambda cluster: None, seed=1)  # type: ignore[arg-type,return-value]
    with pytest.raises(ValueError, match="brokers=0: pass 1 to 99"):
        simulation.run(nothing, seed=1, nodes=0)
    with pytest.raises(barnabas.ConfigError, match=r"log\.retention\.msx is not a setting of the broker"):
        simulation.run(nothing, seed=1, config={"log.retention.msx": 1})
    with pytest.raises(barnabas.ConfigError, match=r"node\.id is not a setting of a cluster: each node has its own"):
        simulation.run(nothing, seed=1, config={"node.id": 1})
