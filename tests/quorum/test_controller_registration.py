"""When a controller registers itself: as soon as the metadata allows it, once in a run, again after failures and losses."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator
from typing import Any

import pytest

from barnabas.config.config import BrokerConfig
from barnabas.metadata.delta import MetadataDelta
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.metadata_version import CONTROLLER_REGISTRATION_SINCE
from barnabas.net.listener import Listener
from barnabas.protocol import messages
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.quorum.controller_registration import BACKOFF_MS_MAX, ControllerRegistrationManager
from tests.api.quiet_clock import QuietClock


class Registering:
    """A manager whose controller the test plays."""

    def __init__(self) -> None:
        self.loop = QuietClock()
        self.requests: list[messages.ControllerRegistrationRequest] = []
        self.sent_at: list[float] = []
        self.answers: list[asyncio.Future[Any]] = []
        self.image = MetadataImage()
        config = BrokerConfig.from_properties(
            {
                "listeners": "PLAINTEXT://:9092,CONTROLLER://:9093",
                "advertised.listeners": "PLAINTEXT://b.example:9092,CONTROLLER://c.example:19093",
                "controller.listener.names": "CONTROLLER",
                "node.id": "3",
            }
        )
        self.manager = ControllerRegistrationManager(
            config,
            [Listener(self.loop, name="CONTROLLER", port=9093)],
            self,
            loop=self.loop,
            random=random.Random(1),
        )

    def handle(self, api_key: int, version: int, request: Any, **_: Any) -> asyncio.Future[Any]:
        self.requests.append(request)
        self.sent_at.append(self.loop.time())
        self.answers.append(self.loop.create_future())
        return self.answers[-1]

    def commit(self, *records: Any) -> None:
        delta = MetadataDelta(self.image)
        for record in records:
            delta.replay(record)
        self.image = delta.apply()
        self.manager.on_metadata(delta, self.image)
        self.pass_time(0)

    def pass_time(self, seconds: float) -> None:
        self.loop.run_until_complete(asyncio.sleep(seconds))

    def level(self, level: int) -> None:
        self.commit(messages.FeatureLevelRecord(name="metadata.version", feature_level=level))

    def registered(self, incarnation_id: bytes) -> None:
        self.commit(messages.RegisterControllerRecord(controller_id=3, incarnation_id=incarnation_id))


@pytest.fixture
def registering() -> Iterator[Registering]:
    made = Registering()
    yield made
    made.manager.close()
    made.loop.close()


def test_it_registers_what_is_advertised_once_the_metadata_allows_it(registering: Registering) -> None:
    registering.level(CONTROLLER_REGISTRATION_SINCE - 1)
    assert registering.requests == []
    registering.level(CONTROLLER_REGISTRATION_SINCE)
    (request,) = registering.requests
    assert request.controller_id == 3
    assert [(each.name, each.host, each.port) for each in request.listeners] == [("CONTROLLER", "c.example", 19093)]
    assert {feature.name for feature in request.features} >= {"metadata.version", "kraft.version"}
    # One at a time, and none after the registration.
    registering.commit(messages.NoOpRecord())
    registering.answers[0].set_result(None)
    registering.registered(request.incarnation_id)
    registering.pass_time(1000)
    assert len(registering.requests) == 1
    assert registering.manager.is_registered
    assert repr(registering.manager) == "<ControllerRegistrationManager 3 registered>"


def test_after_a_failure_it_waits_twice_as_long_each_time(registering: Registering) -> None:
    registering.level(CONTROLLER_REGISTRATION_SINCE)
    for _ in range(12):
        registering.answers[-1].set_exception(KafkaError(ErrorCode.NOT_CONTROLLER))
        registering.pass_time(BACKOFF_MS_MAX / 1000)
    waits = [after - before for before, after in zip(registering.sent_at, registering.sent_at[1:], strict=False)]
    assert len(registering.requests) == 13
    assert waits[0] < waits[1] < waits[2]
    assert max(waits) <= 2 * BACKOFF_MS_MAX / 1000


def test_it_registers_again_when_another_run_or_nobody_is_registered(registering: Registering) -> None:
    registering.level(CONTROLLER_REGISTRATION_SINCE)
    registering.answers[0].set_result(None)
    registering.registered(registering.manager.incarnation_id)
    registering.registered(b"o" * 16)
    assert len(registering.requests) == 2
    registering.answers[1].set_result(None)
    registering.registered(registering.manager.incarnation_id)
    registering.commit(messages.UnregisterControllerRecord(controller_id=3))
    assert len(registering.requests) == 3


def test_after_the_end_nothing_is_sent(registering: Registering) -> None:
    registering.level(CONTROLLER_REGISTRATION_SINCE)
    registering.manager.close()
    registering.pass_time(1000)
    assert len(registering.requests) == 1
    assert registering.answers[0].cancelled()
