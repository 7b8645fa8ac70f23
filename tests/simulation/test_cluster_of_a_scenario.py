"""The faults of `barnabas.simulation.Cluster`, each as a client of another project sees it."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import pytest
from aiokafka import AIOKafkaProducer

import barnabas
from barnabas import simulation

pytestmark = pytest.mark.slow

Scenario = Callable[[simulation.Cluster], Coroutine[Any, Any, None]]


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """Clients of nodes that are killed have much to say."""
    logger = logging.getLogger("aiokafka")
    before = logger.level
    logger.setLevel(logging.CRITICAL)
    yield
    logger.setLevel(before)


def run(scenario: Scenario, **options: Any) -> simulation.Run[None]:
    return simulation.run(scenario, seed=1, **options)


def now() -> float:
    return asyncio.get_running_loop().time()


def producer_of(cluster: simulation.Cluster, patience_ms: int = 120_000) -> AIOKafkaProducer:
    return AIOKafkaProducer(
        bootstrap_servers=cluster.bootstrap_servers, enable_idempotence=True, request_timeout_ms=patience_ms
    )


async def seconds_to_send(producer: AIOKafkaProducer) -> float:
    began = now()
    await producer.send_and_wait("orders", b"one", partition=0)
    return now() - began


async def leader_apart(cluster: simulation.Cluster) -> int:
    """Create the topic orders; return its leader, which is not the controller."""
    await cluster.create_topic("orders")
    controller = await cluster.controller()
    leader = await cluster.leader("orders")
    if leader == controller:
        leader = await cluster.move_leader("orders")
    assert leader == await cluster.leader("orders") != controller
    return leader


def test_its_faults_have_the_names_of_those_of_a_real_cluster() -> None:
    own, real = (
        {name: each for name, each in inspect.getmembers(of, inspect.isfunction) if not name.startswith("_")}
        for of in (simulation.Cluster, barnabas.Cluster)
    )
    assert real.keys() - own.keys() == {
        *("start", "reset"),  # each run has a new cluster, which has started
        *("client_settings", "librdkafka_settings"),
        *("wipe", "fill_disk", "slow_disk"),
    }
    assert own.keys() - real.keys() == {"process", "lose_power"}
    for name in real.keys() & own.keys():
        assert [*inspect.signature(real[name]).parameters] == [*inspect.signature(own[name]).parameters], name


def test_a_leader_is_killed_and_returns() -> None:
    async def scenario(cluster: simulation.Cluster) -> None:
        assert cluster.nodes == cluster.running_nodes == (1, 2, 3)
        killed = await leader_apart(cluster)
        assert sorted(cluster.in_sync("orders")) == [1, 2, 3]
        async with producer_of(cluster) as producer:
            cluster.kill(killed)
            assert killed not in cluster.running_nodes
            await seconds_to_send(producer)
            assert await cluster.leader("orders") != killed
            with pytest.raises(RuntimeError, match=rf"^node {killed} is down: call restart\({killed}\) first$"):
                await cluster.wait_until_in_sync()
            await cluster.restart(killed)
            await cluster.wait_until_in_sync()
            assert sorted(cluster.in_sync("orders")) == [1, 2, 3]
            await cluster.stop(killed)
            assert killed not in cluster.running_nodes
            await cluster.restart(killed)
            await cluster.restart(killed)
            await cluster.wait_until_in_sync()
            assert await cluster.move_leader("orders", to=killed) == killed

    assert "is killed" in run(scenario).timeline


def test_a_pause_is_noticed_after_the_session_of_a_broker() -> None:
    async def scenario(cluster: simulation.Cluster) -> None:
        paused = await leader_apart(cluster)
        async with producer_of(cluster) as producer:
            await seconds_to_send(producer)
            began = now()
            cluster.pause(paused)
            with pytest.raises(RuntimeError, match=rf"node {paused} stands still: call resume\({paused}\) first"):
                await cluster.wait_until_in_sync()
            await cluster.leader("orders")
            assert 6 < now() - began < 12  # broker.session.timeout.ms is 9 s
            cluster.resume(paused)
            await cluster.wait_until_in_sync()

    run(scenario)


def test_a_partition_of_nodes_moves_the_leader_and_a_heal_brings_it_back() -> None:
    async def scenario(cluster: simulation.Cluster) -> None:
        leader = await leader_apart(cluster)
        cluster.partition(leader, [node for node in cluster.nodes if node != leader])
        other = next(node for node in cluster.nodes if node != leader)
        while leader in cluster.in_sync("orders") and await cluster.leader("orders") == leader:
            await asyncio.sleep(1)
        assert leader in cluster.running_nodes
        cluster.heal()
        await cluster.wait_until_in_sync()
        cluster.cut(other, leader)
        cluster.heal()

    run(scenario)


def test_a_client_can_be_cut_off_and_slowed_down() -> None:
    async def scenario(cluster: simulation.Cluster) -> None:
        await cluster.create_topic("orders")
        async with producer_of(cluster) as producer:
            assert await seconds_to_send(producer) < 1
            cluster.delay(("scenario", 1), 2.0)
            assert 4 <= await seconds_to_send(producer) < 5
            cluster.delay("scenario", 1.0)
            assert 2 <= await seconds_to_send(producer) < 3
            cluster.delay(1, 3.0)
            assert 4 <= await seconds_to_send(producer) < 5  # 3 s there, and still 1 s back
            cluster.heal()
            assert await seconds_to_send(producer) < 1
            cluster.partition("scenario", 1)
            asyncio.get_running_loop().call_later(50, cluster.heal)
            assert 50 <= await seconds_to_send(producer) < 52

    run(scenario, nodes=1)


def test_answers_fail_and_are_lost() -> None:
    async def scenario(cluster: simulation.Cluster) -> None:
        await cluster.create_topic("orders")
        failing = cluster.fail("Produce", "NOT_LEADER_OR_FOLLOWER", times=2)
        async with producer_of(cluster) as producer:
            await seconds_to_send(producer)
            assert failing.hits == 2
            lost = cluster.drop_response_after_write()
            sent = await producer.send_and_wait("orders", b"two", partition=0)
            assert (lost.hits, sent.offset) == (1, 1)
            every = cluster.fail("Produce", "NOT_LEADER_OR_FOLLOWER", times=None, node=1)
            asyncio.get_running_loop().call_later(20, cluster.heal)
            assert await seconds_to_send(producer) >= 20
            assert every.hits > 10
            cluster.fail("Produce", "NOT_LEADER_OR_FOLLOWER")
            cluster.kill(1)
            await cluster.restart(1)
            await seconds_to_send(producer)

    run(scenario, nodes=1)


def test_a_node_loses_its_power() -> None:
    async def scenario(cluster: simulation.Cluster) -> None:
        leader = await leader_apart(cluster)
        async with producer_of(cluster, patience_ms=20_000) as producer:
            await seconds_to_send(producer)
            cluster.lose_power(leader)
            assert 6 < await seconds_to_send(producer) < 60
            await cluster.restart(leader)
            await cluster.wait_until_in_sync()

    assert "loses its power" in run(scenario).timeline


def test_mistakes_are_one_sentence() -> None:
    async def scenario(cluster: simulation.Cluster) -> None:
        for mistake, text in (
            (lambda: cluster.kill(9), r"^there is no node 9: the nodes are 1 to 3$"),
            (lambda: cluster.partition([], 1), r"^one side is empty: name nodes or processes on both sides$"),
            (lambda: cluster.cut(1, [1, 2]), r"^node 1 is on both sides: a machine always reaches itself$"),
            (
                lambda: cluster.cut("worker", 1),
                r"^there is no process 'worker': the processes are scenario, and nodes are numbers$",
            ),
            (lambda: cluster.delay(1, -1), r"^seconds=-1: pass 0 or more$"),
        ):
            with pytest.raises(ValueError, match=text):
                mistake()
        with pytest.raises(TypeError, match=r"^7 is not the name of a process: pass text$"):
            cluster.process(7)  # type: ignore[arg-type]
        with pytest.raises(TypeError, match="is not a coroutine: call the async function"):
            cluster.process("worker").run(scenario)  # type: ignore[arg-type]
        cluster.kill(1)
        with pytest.raises(RuntimeError, match=r"^node 1 is down: call restart\(1\) first$"):
            cluster.pause(1)
        with pytest.raises(barnabas.KafkaError, match="INVALID_REPLICATION_FACTOR"):
            await cluster.create_topic("orders", replicas=4)
        with pytest.raises(TimeoutError, match=r"^after 5 s nowhere-0 has no leader that runs$"):
            await cluster.leader("nowhere", timeout=5)

    run(scenario)


def test_a_node_that_finds_no_quorum_cannot_start() -> None:
    async def scenario(cluster: simulation.Cluster) -> None:
        for node in cluster.nodes:
            cluster.kill(node)
        with pytest.raises(barnabas.CannotStart, match="no active controller is known"):
            await cluster.restart(1)
        assert cluster.running_nodes == ()

    run(scenario)
