"""Brokers and a controller on nodes of their own, from registration to the last heartbeat, in a simulated world."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from barnabas.config.cannot_start import CannotStart
from barnabas.metadata.partition_registration import PartitionRegistration
from barnabas.node.broker import BrokerServer
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    CreateTopicsRequest,
    CreateTopicsResponse,
    InitProducerIdRequest,
    InitProducerIdResponse,
    MetadataRequest,
    MetadataResponse,
)
from barnabas.replication.partition import Partition
from barnabas.simulation.world import World
from tests.simulation.client import Client
from tests.simulation.judged_node import JudgedNode

SESSION_SECONDS = 9


class Cluster:
    """One controller, two brokers, and a client of each."""

    def __init__(self, world: World, properties: dict[str, str]) -> None:
        self.world = world
        hosts = {100: "127.0.0.1", 1: "127.0.0.2", 2: "127.0.0.3"}
        roles = {100: ("controller",), 1: ("broker",), 2: ("broker",)}
        self.controller, *self.brokers = [
            world.add(JudgedNode(world, each, hosts[each], roles[each], [(100, hosts[100])], properties))
            for each in roles
        ]
        for node in (self.controller, *self.brokers):
            node.format()
        self._clients = world.add_node("clients")

    async def start(self) -> None:
        await asyncio.gather(*(node.start() for node in (self.controller, *self.brokers)))

    async def ask(self, broker: int, request: Any, response: Any, version: int, client_id: str = "app") -> Any:
        client = Client(self.brokers[broker].address, client_id, timeout=100.0)
        return await self._clients.run(client.request(ApiKey(request.API_KEY), version, request, response))

    async def create(self, name: str, partitions: int = 1, broker: int = 0, timeout_ms: int = 30_000) -> Any:
        topic = CreateTopicsRequest.CreatableTopic(name=name, num_partitions=partitions, replication_factor=1)
        request = CreateTopicsRequest(topics=[topic], timeout_ms=timeout_ms)
        return await self.ask(broker, request, CreateTopicsResponse, 7)

    def is_unfenced(self, broker_id: int) -> bool:
        registered = self.controller.server.quorum.loader.image.cluster.brokers.get(broker_id)
        return registered is not None and not registered.fenced

    async def until(self, condition: Callable[[], bool]) -> float:
        """Return after how many seconds something is so."""
        began = self.world.loop.time()
        while not condition():
            await asyncio.sleep(0.01)
        return self.world.loop.time() - began


def play(story: Callable[[Cluster], Coroutine[Any, Any, None]], seed: int = 11, **properties: str) -> Cluster:
    world = World(seed)
    cluster = Cluster(world, {name.replace("_", "."): value for name, value in properties.items()})
    world.play(story(cluster), seconds=600)
    assert world.errors == []
    return cluster


@pytest.mark.parametrize("seed", range(5))
def test_a_broker_that_has_started_finds_itself_in_the_metadata(seed: int) -> None:
    """The controller's answer and the change itself come over two connections, in any order."""

    async def story(cluster: Cluster) -> None:
        async def started(place: int) -> None:
            node = cluster.brokers[place]
            await node.start()
            known = await cluster.ask(place, MetadataRequest(), MetadataResponse, 9)
            assert node.node_id in [broker.node_id for broker in known.brokers]

        await asyncio.gather(cluster.controller.start(), started(0), started(1))

    play(story, seed)


@pytest.fixture
def said(caplog: pytest.LogCaptureFixture) -> Callable[[], list[str]]:
    """Returns what nodes have said about their last runs since the last call."""
    caplog.set_level(logging.INFO, "barnabas.directory.start_report")

    def said() -> list[str]:
        lines = [line for line in caplog.messages if "run" in line]
        caplog.clear()
        return lines

    return said


def test_the_first_run_of_a_node_is_no_run_that_failed(said: Callable[[], list[str]]) -> None:
    """A node of a cluster joins its quorum before it recovers its logs: the traces of that are not an earlier run's."""

    async def story(cluster: Cluster) -> None:
        await cluster.start()
        assert said() == ["This is the first run in this directory"] * 3
        await cluster.brokers[0].stop()
        await cluster.brokers[0].start()
        assert said() == ["The last run stopped cleanly: 0 partitions, nothing to recover"]
        cluster.brokers[0].kill("is killed")
        await cluster.brokers[0].start()
        assert said() == ["The last run was killed or failed: 0 partitions to recover"]

    play(story)


def test_a_start_that_was_given_up_is_no_run_that_failed(said: Callable[[], list[str]]) -> None:
    """Its logs were whole, and it has closed them; so has a start after a crash that had recovered them."""

    async def story(cluster: Cluster) -> None:
        node = cluster.brokers[0]

        async def give_up() -> None:
            with pytest.raises(CannotStart, match="cannot register this broker"):
                await node.start()
            node.kill("has given up")

        await give_up()
        assert said() == ["This is the first run in this directory"]
        await cluster.start()
        assert "The last run stopped cleanly: 0 partitions, nothing to recover" in said()
        cluster.controller.kill("is killed")
        node.kill("is killed")
        await give_up()
        assert said() == ["The last run was killed or failed: 0 partitions to recover"]
        await give_up()
        assert said() == ["The last run stopped cleanly: 0 partitions, nothing to recover"]

    play(story, initial_broker_registration_timeout_ms="5000")


def test_a_topic_that_one_broker_is_asked_for_is_everywhere() -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.start()
        assert cluster.is_unfenced(1)
        assert cluster.is_unfenced(2)
        created = (await cluster.create("t", partitions=4)).topics[0]
        assert (created.error_code, created.num_partitions) == (0, 4)
        await asyncio.sleep(1)
        wanted = MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(name="t")])
        for broker in (0, 1):
            (topic,) = (await cluster.ask(broker, wanted, MetadataResponse, 9)).topics
            assert {partition.leader_id for partition in topic.partitions} == {1, 2}

    play(story)


def test_brokers_allocate_producer_ids_that_differ() -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.start()
        request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000)
        answers = [await cluster.ask(broker, request, InitProducerIdResponse, 4) for broker in (0, 1, 0)]
        assert [answer.error_code for answer in answers] == [0, 0, 0]
        assert len({answer.producer_id for answer in answers}) == 3

    play(story)


def test_a_broker_that_is_back_never_leads_in_an_epoch_of_its_last_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """A crash may have taken its last records; others at their offsets, in the same epoch, would be different logs that look alike."""
    led: list[int] = []
    update = Partition.update

    def recorded(partition: Partition, registration: PartitionRegistration) -> None:
        update(partition, registration)
        if partition.is_leader:
            led.append(partition.leader_epoch)

    monkeypatch.setattr(Partition, "update", recorded)

    async def story(cluster: Cluster) -> None:
        await cluster.start()
        await cluster.create("t")
        await asyncio.sleep(1)
        assert led
        image = cluster.controller.server.quorum.loader.image
        leader = cluster.brokers[image.topics.by_name["t"].partitions[0].leader - 1]
        before = max(led)
        led.clear()
        leader.kill()
        await leader.start()
        await asyncio.sleep(1)
        assert led
        assert min(led) > before

    play(story)


def test_a_broker_that_fails_while_it_starts_says_so() -> None:
    """What it waits for would never come: it takes part in the quorum no more."""

    async def story(cluster: Cluster) -> None:
        await cluster.start()
        broker = cluster.brokers[0]
        broker.kill()
        broker.disk.capacity = broker.disk.used
        await cluster.create("t", broker=1)
        with pytest.raises(CannotStart, match=r"^this node has failed while it started: .*No space left on device$"):
            await broker.start()
        broker.kill()
        broker.disk.capacity = None
        await broker.start()

    play(story)


def test_the_controller_counts_the_partitions_that_a_client_creates() -> None:
    """Through both brokers, in the name of the client (KIP-599)."""

    async def story(cluster: Cluster) -> None:
        await cluster.start()
        kind = AlterClientQuotasRequest
        entry = kind.EntryData(
            entity=[kind.EntityData(entity_type="client-id", entity_name="app")],
            ops=[kind.OpData(key="controller_mutation_rate", value=1.0)],
        )
        await cluster.ask(0, kind(entries=[entry]), AlterClientQuotasResponse, 1)
        await asyncio.sleep(1)
        assert (await cluster.create("a", partitions=100)).topics[0].error_code == 0
        second = await cluster.create("b", partitions=100, broker=1)
        assert second.topics[0].error_code == ErrorCode.THROTTLING_QUOTA_EXCEEDED
        assert second.throttle_time_ms > 10_000

    play(story)


def test_a_request_waits_for_a_controller_that_is_away() -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.start()
        cluster.controller.kill()
        creating = asyncio.ensure_future(cluster.create("t"))
        await asyncio.sleep(20)
        assert not creating.done()
        await cluster.controller.start()
        assert (await creating).topics[0].error_code == 0
        assert await cluster.until(lambda: cluster.is_unfenced(1) and cluster.is_unfenced(2)) < SESSION_SECONDS

    play(story)


def test_a_request_without_a_controller_times_out() -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.start()
        cluster.controller.kill()
        began = cluster.world.loop.time()
        response = await cluster.create("t", timeout_ms=15_000)
        assert response.topics[0].error_code == ErrorCode.REQUEST_TIMED_OUT
        assert 15 <= cluster.world.loop.time() - began < 16

    play(story)


def test_brokers_that_start_before_their_controller_wait_for_it() -> None:
    async def story(cluster: Cluster) -> None:
        starting = [asyncio.ensure_future(broker.start()) for broker in cluster.brokers]
        await asyncio.sleep(30)
        assert not any(start.done() for start in starting)
        await cluster.controller.start()
        for start in starting:
            await start
        assert cluster.world.loop.time() < 40

    play(story)


def test_a_broker_takes_no_request_before_it_knows_the_access_control_lists(monkeypatch: pytest.MonkeyPatch) -> None:
    knew: list[bool] = []
    serve = vars(BrokerServer)["_serve"]

    def recorded(broker: BrokerServer) -> None:
        assert broker.services.authorizer is not None
        knew.append(broker.services.authorizer.is_ready)
        serve(broker)

    monkeypatch.setattr(BrokerServer, "_serve", recorded)

    async def story(cluster: Cluster) -> None:
        starting = [asyncio.ensure_future(broker.start()) for broker in cluster.brokers]
        await asyncio.sleep(1)
        early = asyncio.ensure_future(cluster.ask(0, MetadataRequest(), MetadataResponse, 9))
        await asyncio.sleep(4)
        assert not early.done(), "the listener is bound, and its requests wait"
        await cluster.controller.start()
        await early
        for start in starting:
            await start
        assert knew == [True, True]

    authorizer = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
    play(story, authorizer_class_name=authorizer, super_users="User:ANONYMOUS")


def test_a_broker_that_never_hears_of_a_controller_does_not_start() -> None:
    async def story(cluster: Cluster) -> None:
        words = "no active controller is known .start the controllers that controller.quorum.voters names"
        with pytest.raises(CannotStart, match=words):
            await cluster.brokers[0].start()
        assert 20 <= cluster.world.loop.time() < 30

    play(story, initial_broker_registration_timeout_ms="20000")


def test_a_broker_that_was_fenced_is_unfenced_when_it_goes_on() -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.start()
        cluster.brokers[0].pause()
        assert await cluster.until(lambda: not cluster.is_unfenced(1)) > SESSION_SECONDS - 2
        cluster.brokers[0].go_on()
        assert await cluster.until(lambda: cluster.is_unfenced(1)) < 5

    play(story)


def test_a_broker_that_stops_is_fenced_before_it_is_gone() -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.start()
        await cluster.create("t", partitions=4)
        stopping = cluster.brokers[0]
        await stopping.run(stopping.server.stop())
        assert not cluster.is_unfenced(1)
        assert cluster.is_unfenced(2)

    play(story)
