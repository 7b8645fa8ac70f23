"""The controller's listeners on sockets: requests are answered, the controller registers itself, and all of it stops."""

from __future__ import annotations

import asyncio
import random
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from barnabas.client.channel import Channel
from barnabas.client.errors import ConnectionLost
from barnabas.config.cannot_start import CannotStart
from barnabas.config.config import BrokerConfig
from barnabas.config.runtime import Runtime
from barnabas.metadata.acl_publisher import AclPublisher
from barnabas.net.connections import Connections
from barnabas.net.renewed_stores import RenewedStores
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages import (
    ApiVersionsRequest,
    BrokerRegistrationRequest,
    DescribeClusterRequest,
    DescribeClusterResponse,
    MetadataRequest,
)
from barnabas.quorum.controller_server import ControllerServer
from barnabas.security.authorizer import StandardAuthorizer
from barnabas.simulation.disk import SimDisk
from tests.metadata.controller_harness import CLUSTER_ID
from tests.node.only_voter import opened_quorum


def config_of(listener: str = "CONTROLLER://127.0.0.1:0", **settings: str) -> BrokerConfig:
    return BrokerConfig.from_properties(
        {
            "listeners": f"PLAINTEXT://127.0.0.1:0,{listener}",
            "controller.listener.names": "CONTROLLER",
            "log.dirs": "/data",
            "barnabas.metadata.flush": "false",
            **{name.replace("_", "."): value for name, value in settings.items()},
        }
    )


def runtime(loop: asyncio.AbstractEventLoop) -> Runtime:
    random_ids = random.Random(1)
    return Runtime(loop, SimDisk(), lambda: 7_000, random_ids, lambda: 0, lambda work: loop.run_in_executor(None, work))


@asynccontextmanager
async def serving(config: BrokerConfig) -> AsyncIterator[ControllerServer]:
    loop = asyncio.get_running_loop()
    server = ControllerServer(config, runtime(loop), RenewedStores(loop, 1))
    await server.bind()
    with opened_quorum(config, loop) as (quorum, resolver):
        server.serve(quorum, CLUSTER_ID, resolver)
        quorum.start()
        try:
            yield server
        finally:
            await server.stop()


def channel_to(server: ControllerServer) -> Channel:
    listener = server.listeners[0]
    return Channel(asyncio.get_running_loop(), "127.0.0.1", listener.port, client_id="test")


async def described(channel: Channel) -> DescribeClusterResponse:
    answer = await channel.request(DescribeClusterRequest(endpoint_type=2))
    assert isinstance(answer, DescribeClusterResponse)
    return answer


def test_it_answers_and_registers_its_controller() -> None:
    async def story() -> None:
        async with serving(config_of()) as server:
            channel = channel_to(server)
            while not server.registration.is_registered:
                await asyncio.sleep(0)
            answer = await described(channel)
            (controller,) = answer.brokers
            assert (answer.cluster_id, answer.controller_id, controller.broker_id) == (CLUSTER_ID, 1, 1)
            assert (controller.host, controller.port) == ("127.0.0.1", server.listeners[0].port)
            rejected = await channel.request(BrokerRegistrationRequest(broker_id=2, cluster_id="another"))
            assert rejected.error_code == ErrorCode.INCONSISTENT_CLUSTER_ID
            assert repr(server).startswith("<ControllerServer 1 on [<Listener CONTROLLER 127.0.0.1:")
            channel.close()

    asyncio.run(story())


def test_a_request_of_brokers_listeners_closes_the_connection() -> None:
    async def story() -> None:
        async with serving(config_of()) as server:
            channel = channel_to(server)
            with pytest.raises(KafkaError):
                await channel.request(MetadataRequest())
            channel.close()

    asyncio.run(story())


def test_a_request_that_comes_early_waits() -> None:
    async def story() -> None:
        loop = asyncio.get_running_loop()
        config = config_of()
        server = ControllerServer(config, runtime(loop), RenewedStores(loop, 1))
        await server.bind()
        channel = channel_to(server)
        asked = asyncio.ensure_future(described(channel))
        while not server.listeners[0].connection_count:
            await asyncio.sleep(0)
        assert not asked.done()
        with opened_quorum(config, loop) as (quorum, resolver):
            server.serve(quorum, CLUSTER_ID, resolver)
            quorum.start()
            assert (await asked).cluster_id == CLUSTER_ID
            await server.stop()
            with pytest.raises(ConnectionLost):
                await described(channel)
            channel.close()

    asyncio.run(story())


@pytest.mark.parametrize(("given", "is_early"), [({}, True), ({"early.start.listeners": "PLAINTEXT"}, False)])
def test_a_listener_that_may_not_start_early_waits_for_the_access_control_lists(
    given: dict[str, str], is_early: bool
) -> None:
    async def story() -> None:
        loop = asyncio.get_running_loop()
        config = config_of(**given)
        server = ControllerServer(config, runtime(loop), RenewedStores(loop, 1))
        await server.bind()
        authorizer = StandardAuthorizer({"User:ANONYMOUS"})
        with opened_quorum(config, loop) as (quorum, resolver):
            quorum.loader.add_publisher(AclPublisher(authorizer).publish)
            server.serve(quorum, CLUSTER_ID, resolver, authorizer=authorizer)
            channel = channel_to(server)
            asked = asyncio.ensure_future(channel.request(ApiVersionsRequest()))
            for _ in range(200):
                await asyncio.sleep(0)
            assert (asked.done(), authorizer.is_ready) == (is_early, False)
            quorum.start()
            assert (await described(channel)).cluster_id == CLUSTER_ID
            await asked
            assert authorizer.is_ready
            await server.stop()
            channel.close()

    asyncio.run(story())


def test_a_start_that_fails_can_be_stopped() -> None:
    async def story() -> None:
        loop = asyncio.get_running_loop()
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
            config = config_of(f"CONTROLLER://127.0.0.1:{port}")
            server = ControllerServer(config, runtime(loop), RenewedStores(loop, 1))
            with pytest.raises(CannotStart, match=f"cannot listen on 127.0.0.1:{port}"):
                await server.bind()
            await server.stop()

    asyncio.run(story())


def test_it_counts_its_connections_apart_from_the_brokers_but_not_their_memory() -> None:
    async def story() -> None:
        loop = asyncio.get_running_loop()
        config = config_of(max_connections="2")
        brokers = Connections(config, [], loop, 0)
        server = ControllerServer(config, runtime(loop), RenewedStores(loop, 1), beside=brokers)
        await server.bind()
        assert server.connections.quotas is not brokers.quotas
        assert server.connections.memory is brokers.memory
        assert server.connections.descriptors is brokers.descriptors
        assert server.connections.quotas.limits.listeners.keys() == {"CONTROLLER"}
        await server.stop()

    asyncio.run(story())
