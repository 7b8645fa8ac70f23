"""Channels to other brokers: their address by registration and listener, one a purpose, and none that is out of date."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from barnabas.client.errors import ConnectionLost
from barnabas.config.config import BrokerConfig
from barnabas.metadata.cluster_image import BrokerRegistration, ClusterImage, Endpoint
from barnabas.metadata.image import MetadataImage
from barnabas.net.renewed_stores import RenewedStores
from barnabas.node.inter_broker import InterBrokerChannels
from barnabas.protocol import messages
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.errors import ErrorCode, KafkaError
from tests.client.scripted_broker import SILENCE, ScriptedBroker, answer, versions_response

PLAINTEXT = Endpoint("PLAINTEXT", "one.example", 9092, 0)
INSIDE = Endpoint("INSIDE", "inside.example", 9094, 0)
SECURE = Endpoint("SECURE", "secure.example", 9095, 1)
RANGES: dict[int, tuple[int, int]] = {ApiKey.API_VERSIONS: (0, 4), ApiKey.METADATA: (0, 12)}


def registration(*listeners: Endpoint, epoch: int = 5, broker_id: int = 2, fenced: bool = False) -> BrokerRegistration:
    return BrokerRegistration(broker_id, epoch, b"i" * 16, listeners, {}, None, fenced, False, ())


class Subject:
    """The channels of broker 1, in a cluster that the test changes."""

    def __init__(self, loop: asyncio.AbstractEventLoop, *brokers: BrokerRegistration, **properties: str) -> None:
        self.register(*brokers)
        named = {name.replace("_", "."): value for name, value in properties.items()}
        config = BrokerConfig.from_properties({"node.id": "1", **named})
        self.channels = InterBrokerChannels(lambda: self.image, config, loop, RenewedStores(loop, 1))

    def register(self, *brokers: BrokerRegistration) -> None:
        self.image = MetadataImage(cluster=ClusterImage({broker.id: broker for broker in brokers}))


def run(then: Callable[[asyncio.AbstractEventLoop], Coroutine[Any, Any, None]]) -> None:
    async def inside() -> None:
        await then(asyncio.get_running_loop())

    asyncio.run(inside())


def addresses(*brokers: BrokerRegistration, **properties: str) -> str:
    loop = asyncio.new_event_loop()
    try:
        return Subject(loop, *brokers, **properties).channels.channel(2, "test").address
    finally:
        loop.close()


def test_the_address_is_that_of_the_listener_between_brokers() -> None:
    both = registration(INSIDE, PLAINTEXT)
    assert addresses(both) == "one.example:9092"
    assert addresses(both, inter_broker_listener_name="inside") == "inside.example:9094"
    assert addresses(registration(PLAINTEXT, fenced=True)) == "one.example:9092", "a fenced broker has an address too"


@pytest.mark.parametrize(
    ("brokers", "properties", "words"),
    [
        ((), {}, "broker 2 is not registered"),
        ((registration(),), {}, "broker 2 has no listener PLAINTEXT"),
        ((registration(SECURE),), {}, "broker 2 has no listener PLAINTEXT"),
        ((registration(SECURE, INSIDE),), {}, "broker 2 has no listener PLAINTEXT"),
        ((registration(PLAINTEXT),), {"inter_broker_listener_name": "INSIDE"}, "broker 2 has no listener INSIDE"),
    ],
)
def test_a_broker_without_an_address_has_no_channel(
    brokers: tuple[BrokerRegistration, ...], properties: dict[str, str], words: str
) -> None:
    with pytest.raises(KafkaError, match=words) as caught:
        addresses(*brokers, **properties)
    assert caught.value.code is ErrorCode.BROKER_NOT_AVAILABLE


def test_each_purpose_has_a_channel_of_its_own() -> None:
    async def then(loop: asyncio.AbstractEventLoop) -> None:
        subject = Subject(loop, registration(PLAINTEXT))
        markers = subject.channels.channel(2, "markers")
        assert subject.channels.channel(2, "markers") is markers
        assert subject.channels.channel(2, "share") is not markers
        subject.register(registration(PLAINTEXT), registration(INSIDE, broker_id=3))
        subject.channels.drop_outdated()
        assert subject.channels.channel(2, "markers") is markers, "another broker's registration changes nothing"
        assert repr(subject.channels) == "<InterBrokerChannels of=1 channels=2>"

    run(then)


@pytest.mark.parametrize(
    "now",
    [
        (),
        (registration(PLAINTEXT, epoch=6),),
        (registration(PLAINTEXT._replace(port=1)),),
        (registration(PLAINTEXT._replace(host="other.example")),),
    ],
)
@pytest.mark.parametrize("is_told", [True, False])
def test_a_channel_ends_with_its_registration(now: tuple[BrokerRegistration, ...], is_told: bool) -> None:
    async def then(loop: asyncio.AbstractEventLoop) -> None:
        subject = Subject(loop, registration(PLAINTEXT))
        before = subject.channels.channel(2, "test")
        subject.register(*now)
        if is_told:
            subject.channels.drop_outdated()
            assert "closed" in repr(before)
        if now:
            after = subject.channels.channel(2, "test")
            assert after is not before
            assert after.address == f"{now[0].listeners[0].host}:{now[0].listeners[0].port}"
            assert "closed" in repr(before)

    run(then)


def test_a_request_reaches_the_broker_under_this_brokers_name() -> None:
    async def then(loop: asyncio.AbstractEventLoop) -> None:
        subject = Subject(loop, registration(Endpoint("PLAINTEXT", "127.0.0.1", broker.port, 0)))
        try:
            request = messages.MetadataRequest(topics=None)
            response = await subject.channels.request(2, "markers", request, highest=9)
            assert response.cluster_id == "c"
        finally:
            subject.channels.close()

    script = (answer(versions_response(RANGES)), answer(messages.MetadataResponse(cluster_id="c")))
    with ScriptedBroker(*script) as broker:
        run(then)
    assert (broker.seen[1].client_id, broker.seen[1].version) == ("broker-1-markers", 9)


def test_after_the_end_requests_fail() -> None:
    async def then(loop: asyncio.AbstractEventLoop) -> None:
        subject = Subject(loop, registration(Endpoint("PLAINTEXT", "127.0.0.1", broker.port, 0)))
        request = messages.MetadataRequest(topics=None)
        waiting = asyncio.ensure_future(subject.channels.request(2, "markers", request))
        while "unanswered=1" not in repr(subject.channels.channel(2, "markers")):
            await asyncio.sleep(0)
        subject.channels.close()
        with pytest.raises(ConnectionLost):
            await waiting
        with pytest.raises(KafkaError, match="broker 1 is stopping"):
            await subject.channels.request(2, "markers", request)

    with ScriptedBroker(answer(versions_response(RANGES)), SILENCE) as broker:
        run(then)
