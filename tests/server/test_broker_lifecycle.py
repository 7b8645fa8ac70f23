"""Registration and heartbeats, as the controller receives them."""

from __future__ import annotations

import asyncio
import logging
import random
import socket
from collections.abc import Iterator
from typing import Any

import pytest

from barnabas.log.meta_properties import MetaProperties
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages import BrokerHeartbeatResponse, BrokerRegistrationResponse
from barnabas.server.broker_lifecycle import BrokerLifecycle
from barnabas.server.config import BrokerConfig
from barnabas.server.listener import Listener


class Controller:
    """Keeps requests; `answers` says what the next one returns."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.requests: list[tuple[int, Any]] = []
        self.answer: Any = BrokerRegistrationResponse(broker_epoch=42)
        self._loop = loop

    def handle(self, key: int, version: int, request: Any) -> asyncio.Future[Any]:
        self.requests.append((key, request))
        future = self._loop.create_future()
        if isinstance(self.answer, Exception):
            future.set_exception(self.answer)
        else:
            future.set_result(self.answer)
        return future


@pytest.fixture
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    loop = asyncio.new_event_loop()
    yield loop
    loop.close()


def make(loop: asyncio.AbstractEventLoop, **settings: str) -> tuple[BrokerLifecycle, Controller]:
    properties = {name.replace("_", "."): value for name, value in settings.items()}
    config = BrokerConfig.from_properties({"listeners": "PLAINTEXT://:9092", "node.id": "3", **properties})
    controller = Controller(loop)
    meta = MetaProperties("cluster", 3, "AAAAAAAAAAAAAAAAAAAAAw")
    return BrokerLifecycle(config, meta, controller, lambda: 77, random.Random(1)), controller  # type: ignore[arg-type]


def registered(loop: asyncio.AbstractEventLoop, host: str, **settings: str) -> Any:
    lifecycle, controller = make(loop, **settings)
    loop.run_until_complete(lifecycle.register([Listener(loop, host=host, port=1234)]))
    assert lifecycle.epoch == 42
    ((key, request),) = controller.requests
    assert key == ApiKey.BROKER_REGISTRATION
    return request


def test_a_registration_names_the_broker_and_its_directory(loop: asyncio.AbstractEventLoop) -> None:
    request = registered(loop, "10.0.0.1", broker_rack="r1")
    assert (request.broker_id, request.cluster_id, request.rack) == (3, "cluster", "r1")
    assert len(request.log_dirs) == 1
    assert {feature.name for feature in request.features} >= {"metadata.version"}


def test_a_registration_names_the_last_run_that_stopped_in_order(loop: asyncio.AbstractEventLoop) -> None:
    lifecycle, controller = make(loop)
    loop.run_until_complete(lifecycle.register([], 41))
    loop.run_until_complete(lifecycle.register([]))
    assert [request.previous_broker_epoch for _, request in controller.requests] == [41, -1]


def test_a_broker_asks_until_it_may_stop(loop: asyncio.AbstractEventLoop) -> None:
    lifecycle, controller = make(loop)
    answers = iter([False, False, True])

    def handle(key: int, version: int, request: Any) -> asyncio.Future[Any]:
        controller.answer = BrokerHeartbeatResponse(should_shut_down=next(answers))
        return Controller.handle(controller, key, version, request)

    controller.handle = handle  # type: ignore[method-assign]
    loop.run_until_complete(lifecycle.shut_down())
    assert [request.want_shut_down for _, request in controller.requests] == [True] * 3


@pytest.mark.parametrize(
    ("host", "advertised", "expected"),
    [
        ("10.0.0.1", "auto", ("10.0.0.1", 1234)),
        ("", "auto", (socket.gethostname(), 1234)),
        ("", "PLAINTEXT://public.example:9999", ("public.example", 9999)),
        ("10.0.0.1", "OTHER://public.example:9999", ("10.0.0.1", 1234)),
    ],
    ids=["bound address", "every address", "advertised", "advertised for another listener"],
)
def test_the_registered_address(
    loop: asyncio.AbstractEventLoop, host: str, advertised: str, expected: tuple[str, int]
) -> None:
    protocols = "PLAINTEXT:PLAINTEXT,OTHER:PLAINTEXT,CONTROLLER:PLAINTEXT"
    listeners = "PLAINTEXT://:9092,OTHER://:9093"
    given = {"advertised_listeners": advertised, "listener_security_protocol_map": protocols, "listeners": listeners}
    request = registered(loop, host, **given)
    (listener,) = request.listeners
    assert (listener.host, listener.port) == expected


def test_a_heartbeat_carries_epoch_and_offset(loop: asyncio.AbstractEventLoop) -> None:
    lifecycle, controller = make(loop)
    lifecycle.epoch = 5
    lifecycle.heartbeat()
    ((key, request),) = controller.requests
    assert key == ApiKey.BROKER_HEARTBEAT
    assert (request.broker_id, request.broker_epoch, request.current_metadata_offset) == (3, 5, 77)


@pytest.mark.parametrize(("is_closed", "lines"), [(False, 1), (True, 0)])
def test_a_rejected_heartbeat_is_logged_until_the_broker_closes(
    loop: asyncio.AbstractEventLoop, is_closed: bool, lines: int, caplog: pytest.LogCaptureFixture
) -> None:
    lifecycle, controller = make(loop)
    controller.answer = KafkaError(ErrorCode.STALE_BROKER_EPOCH)
    with caplog.at_level(logging.WARNING, "barnabas.server.broker_lifecycle"):
        lifecycle.beat()
        if is_closed:
            lifecycle.close()
        loop.run_until_complete(asyncio.sleep(0))
    assert len(caplog.records) == lines
