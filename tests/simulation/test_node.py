"""Several machines in one world: what happens to one leaves the others alone, and the same seed gives the same history.

Two brokers that know nothing of each other, each a cluster of one, and a client for each.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from barnabas.client.channel import Channel
from barnabas.client.errors import BrokerNotAvailable, ConnectionLost, RequestTimedOut
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import (
    CreateTopicsRequest,
    CreateTopicsResponse,
    MetadataRequest,
    MetadataResponse,
    ProduceRequest,
    ProduceResponse,
)
from barnabas.records.builder import build_batch
from barnabas.simulation.broker_node import BrokerNode
from barnabas.simulation.node import Node, NodeDied
from barnabas.simulation.world import World
from barnabas.simulation.world_loop import Crash, Stuck
from tests.simulation.client import Client
from tests.simulation.history import Partition
from tests.simulation.workload import fetch

P = Partition("t", 0)
SOON = 0.2
"""More seconds than a request and its answer ever travel when nothing holds them."""
PROPERTIES = {"offsets.topic.num.partitions": "1", "group.initial.rebalance.delay.ms": "0"}


class Side:
    """One broker with the topic t, and its client."""

    def __init__(self, world: World, name: str) -> None:
        self.broker: BrokerNode = world.add_broker(name, PROPERTIES)
        self.node: Node = world.add_node(f"client of {name}")
        self.client = Client(self.broker.address, "c", timeout=60.0)
        self._world = world

    async def begin(self) -> None:
        await self.broker.start()
        await self.node.run(self.create("t"))

    async def create(self, topic: str) -> None:
        wanted = CreateTopicsRequest.CreatableTopic(name=topic, num_partitions=1, replication_factor=1)
        request = CreateTopicsRequest(topics=[wanted], timeout_ms=30_000)
        answer = await self.client.request(ApiKey.CREATE_TOPICS, 5, request, CreateTopicsResponse)
        assert answer.topics[0].error_code == ErrorCode.NONE

    async def produce(self, value: bytes, client: Client | None = None) -> int:
        """Append one record with acks=all and return its offset."""
        records = bytes(build_batch([(self.node.now_ms(), None, value, [])]))
        partition = ProduceRequest.PartitionProduceData(index=0, records=records)
        topic = ProduceRequest.TopicProduceData(name="t", partition_data=[partition])
        request = ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=[topic])
        answer = await (client or self.client).request(ApiKey.PRODUCE, 9, request, ProduceResponse)
        result = answer.responses[0].partition_responses[0]
        assert result.error_code == ErrorCode.NONE
        return int(result.base_offset)

    async def values(self) -> list[bytes]:
        """Read the topic through a connection of its own."""
        error, records = await fetch(Client(self.broker.address, "reader"), P, 0)
        assert error == ErrorCode.NONE
        return [value for _, value in records]

    async def ask_metadata(self) -> None:
        client = Client(self.broker.address, "other")
        await client.request(ApiKey.METADATA, 9, MetadataRequest(topics=[]), MetadataResponse)

    async def seconds(self, asked: Coroutine[Any, Any, object]) -> float:
        """Return how long the client waits for something."""
        began = self._world.loop.time()
        await self.node.run(asked)
        return self._world.loop.time() - began


Story = Callable[[World, Side, Side], Coroutine[Any, Any, None]]


def played(story: Story, seed: int = 1) -> World:
    """Play a story in which both brokers have started."""
    world = World(seed)
    a, b = Side(world, "a"), Side(world, "b")

    async def whole() -> None:
        await a.begin()
        await b.begin()
        await story(world, a, b)

    world.play(whole(), seconds=3600)
    assert world.errors == []
    return world


def test_a_broker_that_dies_in_a_write_leaves_the_other_one_running() -> None:
    async def story(world: World, a: Side, b: Side) -> None:
        assert await a.node.run(a.produce(b"one")) == 0
        a.broker.disk.end_in_write = Crash
        with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
            await a.node.run(a.produce(b"lost"))
        assert not a.broker.is_up
        assert b.broker.is_up
        with pytest.raises(ConnectionRefusedError):
            await a.node.run(a.produce(b"refused"))
        assert await b.seconds(b.produce(b"other")) < SOON
        a.broker.disk.end_in_write = None
        await a.broker.start()
        assert (await a.node.run(a.values()))[:1] == [b"one"]
        assert await b.node.run(b.values()) == [b"other"]

    played(story)


def test_a_dead_broker_has_no_timers_left() -> None:
    async def story(world: World, a: Side, b: Side) -> None:
        for side in (a, b):
            side.broker.kill()
            side.node.kill()
        died.append((world, world.loop.time()))
        await world.loop.create_future()

    died: list[tuple[World, float]] = []
    with pytest.raises(Stuck, match="nothing is scheduled"):
        played(story)
    world, at = died[0]
    assert world.loop.time() - at < SOON, "what travels still arrives, and that is all"


def test_what_a_dead_node_was_asked_fails() -> None:
    async def story(world: World, a: Side, b: Side) -> None:
        asked = a.node.run(asyncio.sleep(60))
        a.node.kill()
        with pytest.raises(NodeDied):
            await asked

    played(story)


def test_a_power_cut_tells_nobody_and_loses_what_was_not_synced() -> None:
    async def story(world: World, a: Side, b: Side) -> None:
        a.broker.disk.random.choice = lambda ways: ways[0]  # type: ignore[assignment,method-assign]  # keeps nothing
        await a.node.run(a.produce(b"one"))
        a.broker.lose_power()
        waiting = a.node.run(a.ask_metadata())
        await asyncio.sleep(5)
        assert not waiting.done()
        await a.broker.start()
        await waiting
        assert await a.node.run(a.values()) == []
        # The new process knows nothing of the old connection.
        with pytest.raises(ConnectionResetError):
            await asyncio.wait_for(a.node.run(a.produce(b"two")), SOON)

    played(story)


def test_a_paused_broker_answers_nothing_and_then_goes_on() -> None:
    async def story(world: World, a: Side, b: Side) -> None:
        a.broker.pause()
        known, new = a.node.run(a.produce(b"one")), a.node.run(a.ask_metadata())
        await asyncio.sleep(5)
        assert not known.done()
        assert not new.done()
        assert await b.seconds(b.produce(b"other")) < SOON
        a.broker.go_on()
        assert await asyncio.wait_for(known, SOON) == 0
        await asyncio.wait_for(new, SOON)

    played(story)


def test_a_one_way_cut_lets_requests_through_and_no_answers() -> None:
    async def story(world: World, a: Side, b: Side) -> None:
        other = world.nodes[-1]
        await a.node.run(a.produce(b"one"))
        world.network.cut(a.broker.host, a.node.host)
        asked = a.node.run(a.produce(b"two"))
        await asyncio.sleep(1)
        assert not asked.done()
        # Another client sees that the request was carried out.
        assert await other.run(a.values()) == [b"one", b"two"]
        connecting = a.node.run(a.ask_metadata())
        await asyncio.sleep(5)
        assert not connecting.done()
        world.network.heal(a.broker.host, a.node.host)
        assert await asyncio.wait_for(asked, SOON) == 1
        await connecting

    played(story)


def test_a_cut_of_the_other_way_holds_requests() -> None:
    async def story(world: World, a: Side, b: Side) -> None:
        await a.node.run(a.produce(b"one"))
        world.network.cut(a.node.host, a.broker.host)
        asked = a.node.run(a.produce(b"two"))
        await asyncio.sleep(1)
        assert await world.nodes[-1].run(a.values()) == [b"one"]
        world.network.heal_all()
        assert await asyncio.wait_for(asked, SOON) == 1

    played(story)


def test_a_cut_of_one_service_leaves_the_others_open() -> None:
    async def story(world: World, a: Side, b: Side) -> None:
        port = a.broker.address[1]
        world.network.cut(a.broker.host, a.node.host, port + 1)
        assert await a.seconds(a.produce(b"one")) < SOON
        world.network.cut(a.broker.host, a.node.host, port)
        asked = a.node.run(a.produce(b"two"))
        await asyncio.sleep(1)
        assert not asked.done()
        world.network.heal(a.broker.host, a.node.host, port)
        assert await asyncio.wait_for(asked, SOON) == 1
        world.network.slow_down(a.broker.host, a.node.host, 3.0, port)
        assert await a.seconds(a.produce(b"three")) > 3.0

    played(story)


def test_a_parted_network_works_within_its_halves() -> None:
    async def story(world: World, a: Side, b: Side) -> None:
        world.network.part([a.broker.host, a.node.host], [b.broker.host, b.node.host])
        assert await a.seconds(a.produce(b"one")) < SOON
        assert await b.seconds(b.produce(b"other")) < SOON
        across = b.node.run(a.values())
        with pytest.raises(TimeoutError):
            await across
        world.network.heal_all()
        assert await b.node.run(a.values()) == [b"one"]

    played(story)


def test_a_slow_way_delays_what_travels_on_it() -> None:
    async def story(world: World, a: Side, b: Side) -> None:
        world.network.slow_down(a.broker.host, a.node.host, 2.0)
        await a.node.run(a.produce(b"one"))
        assert 2.0 <= await a.seconds(a.produce(b"two")) < 2.0 + SOON
        assert await b.seconds(b.produce(b"other")) < SOON

    played(story)


def test_a_slow_sync_delays_only_the_append_that_waits_for_it() -> None:
    async def story(world: World, a: Side, b: Side) -> None:
        a.broker.disk.duration = lambda call, path: 3.0 if call == "sync" and "__cluster_metadata" in path else 0.0
        # The controller answers when its log is synced, which a thread does; a partition's log is not synced for a producer.
        waiting = asyncio.ensure_future(a.seconds(a.create("u")))
        await asyncio.sleep(0.5)
        assert await b.seconds(a.values()) < SOON
        assert await a.seconds(a.produce(b"one", Client(a.broker.address, "other"))) < SOON
        assert await b.seconds(b.create("u")) < SOON
        assert not waiting.done()
        assert 3.0 <= await waiting < 3.0 + SOON

    played(story)


def test_a_slow_call_outside_a_thread_blocks_its_whole_broker() -> None:
    async def story(world: World, a: Side, b: Side) -> None:
        a.broker.disk.duration = lambda call, path: 3.0 if call == "pwrite" and path.endswith(".log") else 0.0
        waiting = asyncio.ensure_future(a.seconds(a.produce(b"one")))
        await asyncio.sleep(SOON)
        assert 3.0 - 2 * SOON < await b.seconds(a.ask_metadata()) < 3.0 + SOON
        assert 3.0 <= await waiting < 3.0 + SOON
        assert await b.seconds(b.produce(b"other")) < SOON

    played(story)


def test_a_clock_that_jumps_is_its_nodes_own() -> None:
    async def story(world: World, a: Side, b: Side) -> None:
        before_ms, began = a.broker.now_ms(), a.broker.monotonic_ns()
        a.broker.set_clock(+3600.0)
        assert a.broker.now_ms() - before_ms == 3_600_000
        assert b.broker.now_ms() == before_ms
        assert a.broker.monotonic_ns() == began
        await a.node.run(a.produce(b"one"))
        log = next(path for path in a.broker.disk.paths() if "/t-0/" in path and path.endswith(".log"))
        assert a.broker.disk.modified_ms(log) >= before_ms + 3_600_000

    played(story)


def test_each_connection_comes_from_its_nodes_address() -> None:
    async def story(world: World, a: Side, b: Side) -> None:
        peers = [{c.info.peer_host for c in side.broker.server.broker.listeners[0].connections} for side in (a, b)]
        assert peers == [{a.node.host}, {b.node.host}]
        assert len({node.host for node in world.nodes}) == 4

    played(story)


def test_one_broker_asks_another_through_its_channel() -> None:
    async def story(world: World, a: Side, b: Side) -> None:
        channel = Channel(a.broker.loop, *b.broker.address, client_id="a", timeout_ms=5_000)

        def ask() -> asyncio.Future[Any]:
            return a.broker.run(channel.request(MetadataRequest(topics=[])))

        assert (await ask()).brokers[0].port == b.broker.address[1]
        assert a.broker.host in {c.info.peer_host for c in b.broker.server.broker.listeners[0].connections}
        b.broker.pause()
        with pytest.raises(RequestTimedOut):
            await ask()
        b.broker.kill()
        with pytest.raises(BrokerNotAvailable, match="connection refused"):
            await ask()
        world.network.part([a.broker.host], [b.broker.host])
        with pytest.raises(BrokerNotAvailable, match="no answer within 5000 ms"):
            await ask()
        world.network.heal_all()
        await b.broker.start()
        assert (await ask()).brokers[0].port == b.broker.address[1]
        waiting = ask()
        b.broker.kill()
        with pytest.raises(ConnectionLost):
            await waiting

    played(story)


async def _eventful(world: World, a: Side, b: Side) -> None:
    rng = world.random("story")
    for side in (a, b):
        side.broker.executor.max_seconds = 0.1
    asked = [side.node.run(side.produce(b"%d" % n)) for side in (a, b) for n in range(5)]
    await asyncio.sleep(rng.random() * 0.05)
    a.broker.pause()
    world.network.cut(b.broker.host, b.node.host)
    await asyncio.sleep(rng.random())
    a.broker.go_on()
    b.broker.kill()
    await b.broker.start()
    world.network.heal_all()
    await asyncio.wait(asked)
    for future in asked:
        future.exception()


def test_the_same_seed_gives_the_same_history() -> None:
    first, again, other = played(_eventful, 5), played(_eventful, 5), played(_eventful, 6)
    assert first.timeline.digest() == again.timeline.digest()
    assert first.timeline.page(details=True) == again.timeline.page(details=True)
    assert first.timeline.digest() != other.timeline.digest()


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture) -> None:
    """Brokers that are killed have much to say."""
    caplog.set_level("CRITICAL", "barnabas")
