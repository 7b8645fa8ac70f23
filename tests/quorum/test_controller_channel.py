"""The way to the active controller: here, there, after a move, and when nobody answers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from types import SimpleNamespace
from typing import Any

import pytest

from barnabas.api.serving.context import Client
from barnabas.clock import Clock
from barnabas.protocol import messages
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.framing import parse_request_header
from barnabas.protocol.principal import read_principal
from barnabas.quorum.controller_channel import ControllerChannel
from barnabas.raft.voters import VoterEndpoint
from barnabas.security.principal import ANONYMOUS, Principal
from barnabas.simulation.world import World
from tests.client.scripted_broker import frame_response
from tests.quorum.scripted_controller import Asked, Close, ScriptedController

HEARTBEAT = messages.BrokerHeartbeatRequest(broker_id=1, broker_epoch=5)
ALIVE = messages.BrokerHeartbeatResponse(is_caught_up=True, is_fenced=False)
NOT_CONTROLLER = messages.BrokerHeartbeatResponse(error_code=ErrorCode.NOT_CONTROLLER)
APP = Client("app", "10.1.2.3", 77)
DELETE = messages.DeleteTopicsRequest(topics=[messages.DeleteTopicsRequest.DeleteTopicState(name="orders")])
DELETED = messages.DeleteTopicsResponse(
    responses=[messages.DeleteTopicsResponse.DeletableTopicResult(name="orders", error_code=3)]
)
SECOND = 1000


class LocalController:
    """This node's own controller, of which the test says whether it leads."""

    def __init__(self, answers: list[Any]) -> None:
        self.driver = SimpleNamespace(node=SimpleNamespace(is_leader=True))
        self.asked: list[dict[str, Any]] = []
        self._answers = answers

    def handle(self, api_key: int, version: int, request: Any, **options: Any) -> asyncio.Future[Any]:
        self.asked.append(options)
        answer = self._answers.pop(0)
        if isinstance(answer, asyncio.Future):
            return answer
        future = asyncio.get_running_loop().create_future()
        if isinstance(answer, Exception):
            future.set_exception(answer)
        else:
            future.set_result(answer)
        return future


class Cluster:
    """A broker, and two controllers of which `leader` leads."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.broker = world.add_node("broker")
        self.one = ScriptedController(world, "one", lambda asked: ALIVE)
        self.two = ScriptedController(world, "two", lambda asked: ALIVE)
        self.leader: VoterEndpoint | None = self.one.endpoint
        self.local: Any = None
        self.channel: ControllerChannel

    def make(self, **options: int) -> ControllerChannel:
        loop = self.broker.loop
        self.channel = ControllerChannel(
            self.local,
            lambda: self.leader,
            loop=loop,
            clock=Clock(self.broker.now_ms, lambda: int(loop.time() * 1000)),
            random=self.world.random("channel"),
            client_id="3",
            **options,
        )
        return self.channel

    async def beat(self, **options: Any) -> Any:
        return await self.channel.handle(ApiKey.BROKER_HEARTBEAT, 1, HEARTBEAT, **options)

    async def delete(self, **options: Any) -> Any:
        alice = Principal("User", "alice")
        return await self.channel.handle(ApiKey.DELETE_TOPICS, 6, DELETE, principal=alice, client=APP, **options)


def play(story: Callable[[Cluster], Coroutine[Any, Any, None]], **options: int) -> Cluster:
    """Play a story in the broker's process, once both controllers listen."""
    world = World(7)
    cluster = Cluster(world)

    async def told() -> None:
        await cluster.one.listen()
        await cluster.two.listen()
        cluster.make(**options)

        async def in_the_process() -> None:
            try:
                await story(cluster)
            finally:
                cluster.channel.close()

        await cluster.broker.run(in_the_process())

    world.play(told(), seconds=600)
    assert world.errors == []
    return cluster


def enveloped(inner: Any = DELETED, code: int = 0) -> Callable[[Asked], Any]:
    def answer(asked: Asked) -> Any:
        if code:
            return messages.EnvelopeResponse(error_code=code)
        header, _ = parse_request_header(asked.request.request_data)
        data = frame_response(header.api_key, header.api_version, header.correlation_id, inner)[4:]
        return messages.EnvelopeResponse(response_data=data)

    return answer


# Here


def test_a_node_that_leads_answers_on_the_spot() -> None:
    async def story(cluster: Cluster) -> None:
        cluster.local = LocalController([ALIVE])
        cluster.make()
        quota: Any = object()
        future = cluster.channel.handle(
            ApiKey.BROKER_HEARTBEAT, 1, HEARTBEAT, deadline_ms=9, mutation_quota=quota, is_long=True, client=APP
        )
        assert future.done()
        assert future.result() is ALIVE
        assert "here" in repr(cluster.channel)
        expected = {
            "principal": ANONYMOUS,
            "deadline_ms": 9,
            "mutation_quota": quota,
            "is_long": True,
            "client": APP,
        }
        assert cluster.local.asked == [expected]

    assert play(story).one.asked == []


@pytest.mark.parametrize("is_at_once", [True, False])
def test_what_this_node_has_not_answered_when_it_loses_its_office_goes_to_the_next_leader(is_at_once: bool) -> None:
    async def story(cluster: Cluster) -> None:
        lost = KafkaError(ErrorCode.NOT_CONTROLLER)
        waiting = asyncio.get_running_loop().create_future()
        cluster.local = LocalController([lost if is_at_once else waiting])
        cluster.make()
        asked = asyncio.ensure_future(cluster.beat())
        await asyncio.sleep(0)
        cluster.local.driver.node.is_leader = False
        if not is_at_once:
            waiting.set_exception(lost)
        assert await asked == ALIVE

    assert play(story).one.keys == [ApiKey.BROKER_HEARTBEAT]


def test_an_error_of_this_nodes_controller_is_raised() -> None:
    async def story(cluster: Cluster) -> None:
        cluster.local = LocalController([KafkaError(ErrorCode.STALE_BROKER_EPOCH)])
        cluster.make()
        with pytest.raises(KafkaError) as raised:
            await cluster.beat()
        assert raised.value.code == ErrorCode.STALE_BROKER_EPOCH

    play(story)


# There


def test_the_brokers_own_request_travels_as_it_is() -> None:
    async def story(cluster: Cluster) -> None:
        assert await cluster.beat() == ALIVE
        assert await cluster.beat() == ALIVE
        assert "127.0.0.2:9093 connected" in repr(cluster.channel)

    cluster = play(story)
    assert [(asked.api_key, asked.version, asked.client_id) for asked in cluster.one.asked] == [(63, 1, "3")] * 2
    assert cluster.one.connections == 1


def test_an_error_of_the_whole_request_is_raised() -> None:
    async def story(cluster: Cluster) -> None:
        response = messages.BrokerHeartbeatResponse(error_code=ErrorCode.STALE_BROKER_EPOCH)
        cluster.one.answer = lambda asked: response
        with pytest.raises(KafkaError) as raised:
            await cluster.beat()
        assert raised.value.code == ErrorCode.STALE_BROKER_EPOCH

    assert len(play(story).one.asked) == 1


@pytest.mark.parametrize("is_long", [False, True])
def test_a_clients_request_travels_in_an_envelope(is_long: bool) -> None:
    async def story(cluster: Cluster) -> None:
        cluster.one.answer = enveloped()
        assert await cluster.delete(is_long=is_long) == DELETED

    cluster = play(story)
    (asked,) = cluster.one.asked
    assert (asked.api_key, asked.version, asked.client_id) == (ApiKey.ENVELOPE, 0, "3")
    header, position = parse_request_header(asked.request.request_data)
    assert header == (ApiKey.DELETE_TOPICS, 6, 77, "app")
    assert messages.DeleteTopicsRequest.decode(memoryview(asked.request.request_data)[position:], 6) == DELETE
    assert read_principal(asked.request.request_principal) == Principal("User", "alice")
    assert asked.request.client_host_address == bytes((10, 1, 2, 3))


async def ask_to_create(cluster: Cluster, version: int) -> Any:
    topic = messages.CreateTopicsRequest.CreatableTopic(name="orders", num_partitions=1, replication_factor=1)
    request = messages.CreateTopicsRequest(topics=[topic], timeout_ms=1)
    return await cluster.channel.handle(ApiKey.CREATE_TOPICS, version, request, client=APP)


def test_a_controller_that_is_older_gets_a_clients_request_in_the_version_that_it_knows() -> None:
    created = messages.CreateTopicsResponse(
        topics=[messages.CreateTopicsResponse.CreatableTopicResult(name="orders", num_partitions=1)]
    )

    async def story(cluster: Cluster) -> None:
        cluster.one.apis[ApiKey.CREATE_TOPICS] = (2, 5)
        cluster.one.answer = enveloped(created)
        assert await ask_to_create(cluster, 7) == created

    (asked,) = play(story).one.asked
    header, _ = parse_request_header(asked.request.request_data)
    assert (header.api_key, header.api_version) == (ApiKey.CREATE_TOPICS, 5)


@pytest.mark.parametrize("known", [(0, 0), (1, 1)])
def test_a_request_that_the_controllers_version_cannot_carry_is_rejected(known: tuple[int, int]) -> None:
    """Version 0 of AlterPartitionReassignments cannot forbid another replication factor; the client asks for version 0 otherwise."""

    async def story(cluster: Cluster) -> None:
        cluster.one.apis[ApiKey.ALTER_PARTITION_REASSIGNMENTS] = known
        request = messages.AlterPartitionReassignmentsRequest(allow_replication_factor_change=known[1] > 0)
        with pytest.raises(KafkaError) as raised:
            await cluster.channel.handle(ApiKey.ALTER_PARTITION_REASSIGNMENTS, 1 - known[0], request, client=APP)
        assert raised.value.code == ErrorCode.UNSUPPORTED_VERSION

    assert play(story).one.asked == []


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE, ErrorCode.UNKNOWN_SERVER_ERROR),
        (ErrorCode.CLUSTER_AUTHORIZATION_FAILED, ErrorCode.UNKNOWN_SERVER_ERROR),
        (ErrorCode.UNSUPPORTED_VERSION, ErrorCode.UNSUPPORTED_VERSION),
    ],
)
def test_an_error_of_the_envelope_is_not_the_clients(code: ErrorCode, expected: ErrorCode) -> None:
    async def story(cluster: Cluster) -> None:
        cluster.one.answer = enveloped(code=code)
        with pytest.raises(KafkaError) as raised:
            await cluster.delete()
        assert raised.value.code == expected

    assert len(play(story).one.asked) == 1


def test_an_envelope_with_another_response_is_an_error_of_the_server() -> None:
    async def story(cluster: Cluster) -> None:
        cluster.one.answer = lambda asked: messages.EnvelopeResponse(response_data=b"\0\0\0\1")
        with pytest.raises(KafkaError) as raised:
            await cluster.delete()
        assert raised.value.code == ErrorCode.UNKNOWN_SERVER_ERROR

    play(story)


# Again


def test_it_waits_until_a_leader_is_known() -> None:
    async def story(cluster: Cluster) -> None:
        cluster.leader = None
        asked = asyncio.ensure_future(cluster.beat())
        await asyncio.sleep(3)
        assert cluster.one.asked == []
        cluster.leader = cluster.two.endpoint
        assert await asked == ALIVE

    cluster = play(story)
    assert cluster.two.keys == [ApiKey.BROKER_HEARTBEAT]
    assert 3 <= cluster.two.asked[0].seconds < 3.2


def test_not_controller_is_retried_at_the_same_node_until_another_leads() -> None:
    async def story(cluster: Cluster) -> None:
        cluster.one.answer = lambda asked: NOT_CONTROLLER
        asked = asyncio.ensure_future(cluster.beat())
        await asyncio.sleep(0.3)
        cluster.leader = cluster.two.endpoint
        assert await asked == ALIVE

    cluster = play(story)
    assert 3 <= len(cluster.one.asked) <= 8
    assert len(cluster.two.asked) == 1
    assert cluster.one.connections == 1


@pytest.mark.parametrize("is_of_the_envelope", [True, False])
def test_not_controller_about_a_clients_request_is_retried(is_of_the_envelope: bool) -> None:
    """Apache Kafka's controller puts it on the envelope."""

    async def story(cluster: Cluster) -> None:
        answers = [enveloped(code=ErrorCode.NOT_CONTROLLER), enveloped()]
        cluster.one.answer = lambda asked: answers.pop(0)(asked)
        if not is_of_the_envelope:
            parts = messages.CreateTopicsResponse(
                topics=[messages.CreateTopicsResponse.CreatableTopicResult(name="t", error_code=41)]
            )
            responses = [parts, messages.CreateTopicsResponse(topics=[])]
            cluster.one.answer = lambda asked: responses.pop(0)
            request = messages.CreateTopicsRequest(topics=[])
            await cluster.channel.handle(ApiKey.CREATE_TOPICS, 7, request)
        else:
            assert await cluster.delete() == DELETED

    assert len(play(story).one.asked) == 2


def test_a_request_whose_answer_is_lost_is_sent_again() -> None:
    """As by Kafka's channel, of every kind: it may have been carried out."""

    async def story(cluster: Cluster) -> None:
        answers: list[Any] = [Close(), enveloped()]

        def answer(asked: Asked) -> Any:
            next_one = answers.pop(0)
            return next_one if isinstance(next_one, Close) else next_one(asked)

        cluster.one.answer = answer
        assert await cluster.delete() == DELETED

    cluster = play(story)
    assert len(cluster.one.asked) == cluster.one.connections == 2


def test_a_leader_that_is_killed_has_a_successor() -> None:
    async def story(cluster: Cluster) -> None:
        cluster.one.answer = lambda asked: None
        asked = asyncio.ensure_future(cluster.beat())
        await asyncio.sleep(1)
        cluster.one.node.kill()
        await asyncio.sleep(2)
        cluster.leader = cluster.two.endpoint
        assert await asked == ALIVE

    assert len(play(story).two.asked) == 1


def test_a_leader_that_is_paused_is_not_waited_for_once_it_has_a_successor() -> None:
    async def story(cluster: Cluster) -> None:
        cluster.one.node.pause()
        asked = asyncio.ensure_future(cluster.beat())
        await asyncio.sleep(5)
        cluster.leader = cluster.two.endpoint
        assert await asked == ALIVE

    assert 5 <= play(story).two.asked[0].seconds < 6


def test_a_leader_that_does_not_answer_is_asked_again_on_a_new_connection() -> None:
    async def story(cluster: Cluster) -> None:
        cluster.one.answer = lambda asked: None if len(cluster.one.asked) == 1 else ALIVE
        assert await cluster.beat() == ALIVE

    cluster = play(story, request_timeout_ms=4 * SECOND)
    assert cluster.one.connections == 2
    assert cluster.one.asked[1].seconds == pytest.approx(4, abs=0.2)


# The end


@pytest.mark.parametrize(("deadline_ms", "seconds"), [(None, 60), (5 * SECOND, 5), (-1, 0)])
def test_after_its_time_a_request_fails(deadline_ms: int | None, seconds: float) -> None:
    async def story(cluster: Cluster) -> None:
        cluster.leader = None
        began = cluster.world.loop.time()
        until_ms = None if deadline_ms is None else cluster.broker.now_ms() + deadline_ms
        with pytest.raises(KafkaError) as raised:
            await cluster.beat(deadline_ms=until_ms)
        assert raised.value.code == ErrorCode.REQUEST_TIMED_OUT
        assert cluster.world.loop.time() - began == pytest.approx(seconds, abs=0.01)

    play(story)


def test_a_request_with_a_deadline_in_the_past_is_tried_once() -> None:
    async def story(cluster: Cluster) -> None:
        assert await cluster.beat(deadline_ms=cluster.broker.now_ms() - 1) == ALIVE

    play(story)


@pytest.mark.parametrize("is_sent", [True, False])
def test_what_waits_fails_when_the_channel_closes(is_sent: bool) -> None:
    async def story(cluster: Cluster) -> None:
        cluster.one.answer = lambda asked: None
        if not is_sent:
            cluster.leader = None
        asked = asyncio.ensure_future(cluster.beat())
        await asyncio.sleep(1)
        cluster.channel.close()
        for request in (asked, cluster.beat()):
            with pytest.raises(KafkaError) as raised:
                await request
            assert raised.value.code == ErrorCode.BROKER_NOT_AVAILABLE
        assert "closed" in repr(cluster.channel)

    play(story)


def test_a_request_that_is_given_up_leaves_no_timer() -> None:
    async def story(cluster: Cluster) -> None:
        cluster.one.answer = lambda asked: None
        sent = cluster.channel.handle(ApiKey.BROKER_HEARTBEAT, 1, HEARTBEAT)
        await asyncio.sleep(1)
        cluster.leader = None
        waiting = cluster.channel.handle(ApiKey.BROKER_HEARTBEAT, 1, HEARTBEAT)
        await asyncio.sleep(0)
        sent.cancel()
        waiting.cancel()
        await asyncio.sleep(0.01)
        assert sent.cancelled()
        assert waiting.cancelled()
        assert "under_way=0 waiting=0" in repr(cluster.channel)

    play(story)
