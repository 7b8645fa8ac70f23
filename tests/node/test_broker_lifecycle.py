"""Registration and heartbeats, as the controller receives them."""

from __future__ import annotations

import asyncio
import logging
import random
import socket
from collections.abc import Callable, Coroutine, Iterator, Sequence
from itertools import pairwise
from typing import Any

import pytest

from barnabas.config.config import BrokerConfig
from barnabas.log.meta_properties import MetaProperties
from barnabas.net.listener import Listener
from barnabas.net.renewed_stores import RenewedStores
from barnabas.node.broker_lifecycle import BrokerLifecycle
from barnabas.node.membership import membership_of
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages import BrokerHeartbeatRequest, BrokerHeartbeatResponse, BrokerRegistrationResponse
from tests.api.quiet_clock import QuietClock
from tests.node.runtimes import runtime_of

REGISTERED = BrokerRegistrationResponse(broker_epoch=42)
BEHIND = BrokerHeartbeatResponse(is_caught_up=False, is_fenced=True)
CAUGHT_UP = BrokerHeartbeatResponse(is_caught_up=True, is_fenced=True)
UNFENCED = BrokerHeartbeatResponse(is_caught_up=True, is_fenced=False)
LEADS_STILL = BrokerHeartbeatResponse(is_caught_up=True, is_fenced=False)
MAY_STOP = BrokerHeartbeatResponse(is_caught_up=True, is_fenced=True, should_shut_down=True)
AWAY = KafkaError(ErrorCode.REQUEST_TIMED_OUT, "the controller is away")
CLUSTER = {
    "controller_quorum_voters": "1@10.0.0.1:9093,2@10.0.0.2:9093",
    "controller_listener_names": "CONTROLLER",
    "process_roles": "broker",
}


class Controller:
    """Keeps requests and their times; answers them in turn, the last answer for ever."""

    def __init__(self, loop: asyncio.AbstractEventLoop, *answers: Any) -> None:
        self.requests: list[tuple[int, Any]] = []
        self.seconds: list[float] = []
        self.answers = list(answers)
        self._loop = loop

    def handle(self, key: int, version: int, request: Any, **_: Any) -> asyncio.Future[Any]:
        self.requests.append((key, request))
        self.seconds.append(self._loop.time())
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, asyncio.Future):
            return answer
        future = self._loop.create_future()
        if isinstance(answer, Exception):
            future.set_exception(answer)
        else:
            future.set_result(answer)
        return future

    def wants(self, what: str) -> list[bool]:
        return [getattr(request, what) for key, request in self.requests if key == ApiKey.BROKER_HEARTBEAT]


@pytest.fixture
def loop() -> Iterator[QuietClock]:
    loop = QuietClock()
    yield loop
    loop.close()


def make(
    loop: asyncio.AbstractEventLoop,
    *answers: Any,
    logs: Sequence[BrokerHeartbeatRequest.ReplicaLog] = (),
    **settings: str,
) -> tuple[BrokerLifecycle, Controller]:
    properties = {name.replace("_", "."): value for name, value in settings.items()}
    config = BrokerConfig.from_properties({"listeners": "PLAINTEXT://:9092", "node.id": "3", **properties})
    controller = Controller(loop, *(answers or (REGISTERED,)))
    meta = MetaProperties("cluster", 3, "AAAAAAAAAAAAAAAAAAAAAw")
    membership = membership_of(config, runtime_of(loop), RenewedStores(loop, 3))
    dice = random.Random(1)
    return BrokerLifecycle(
        config, membership, meta, controller, lambda: 77, dice, loop, lambda: [*logs], [bytes(16)]
    ), controller


def play(loop: QuietClock, lifecycle: BrokerLifecycle, *story: Coroutine[Any, Any, None]) -> float:
    """Run coroutines after each other and close; return how long they took."""
    began = loop.time()

    async def told() -> None:
        try:
            for part in story:
                await part
        finally:
            lifecycle.close()
            await asyncio.sleep(0)

    loop.run_until_complete(told())
    return loop.time() - began


def registered(loop: QuietClock, host: str, **settings: str) -> Any:
    lifecycle, controller = make(loop, **settings)
    loop.run_until_complete(lifecycle.register([Listener(loop, host=host, port=1234)]))
    assert lifecycle.epoch == 42
    ((key, request),) = controller.requests
    assert key == ApiKey.BROKER_REGISTRATION
    return request


# Registration


def test_a_registration_names_the_broker_and_its_directory(loop: QuietClock) -> None:
    request = registered(loop, "10.0.0.1", broker_rack="r1")
    assert (request.broker_id, request.cluster_id, request.rack) == (3, "cluster", "r1")
    assert len(request.log_dirs) == 1
    assert {feature.name for feature in request.features} >= {"metadata.version"}


def test_a_registration_names_the_last_run_that_stopped_in_order(loop: QuietClock) -> None:
    lifecycle, controller = make(loop)
    loop.run_until_complete(lifecycle.register([], 41))
    loop.run_until_complete(lifecycle.register([]))
    assert [request.previous_broker_epoch for _, request in controller.requests] == [41, -1]


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
def test_the_registered_address(loop: QuietClock, host: str, advertised: str, expected: tuple[str, int]) -> None:
    protocols = "PLAINTEXT:PLAINTEXT,OTHER:PLAINTEXT,CONTROLLER:PLAINTEXT"
    listeners = "PLAINTEXT://:9092,OTHER://:9093"
    given = {"advertised_listeners": advertised, "listener_security_protocol_map": protocols, "listeners": listeners}
    request = registered(loop, host, **given)
    (listener,) = request.listeners
    assert (listener.host, listener.port) == expected


def test_a_broker_of_a_cluster_registers_until_it_succeeds(loop: QuietClock, caplog: pytest.LogCaptureFixture) -> None:
    duplicate = KafkaError(ErrorCode.DUPLICATE_BROKER_REGISTRATION)
    lifecycle, controller = make(loop, AWAY, AWAY, duplicate, REGISTERED, **CLUSTER)
    with caplog.at_level(logging.INFO, "barnabas.node.broker_lifecycle"):
        took = play(loop, lifecycle, lifecycle.register([]))
    assert lifecycle.epoch == 42
    assert took == pytest.approx(0.1 + 0.2 + 0.4, rel=0.02)
    assert len({request.incarnation_id for _, request in controller.requests}) == 1
    assert [record.levelname for record in caplog.records] == ["WARNING", "WARNING", "INFO"]
    assert caplog.messages[0] == "This broker cannot register yet: REQUEST_TIMED_OUT: the controller is away"


def test_a_registration_gives_up_after_its_timeout(loop: QuietClock) -> None:
    lifecycle, controller = make(loop, AWAY, initial_broker_registration_timeout_ms="7000", **CLUSTER)
    with pytest.raises(KafkaError, match="the controller is away"):
        play(loop, lifecycle, lifecycle.register([]))
    assert 7 <= controller.seconds[-1] < 7.51
    assert max(after - before for before, after in pairwise(controller.seconds)) == pytest.approx(0.5)


@pytest.mark.parametrize("code", [ErrorCode.INCONSISTENT_CLUSTER_ID, ErrorCode.UNSUPPORTED_VERSION])
def test_a_registration_that_can_never_succeed_fails_at_once(loop: QuietClock, code: ErrorCode) -> None:
    lifecycle, controller = make(loop, KafkaError(code), **CLUSTER)
    with pytest.raises(KafkaError):
        play(loop, lifecycle, lifecycle.register([]))
    assert len(controller.requests) == 1


# A node alone


def test_a_node_alone_is_unfenced_by_one_heartbeat_on_the_spot(loop: QuietClock) -> None:
    lifecycle, controller = make(loop, REGISTERED, UNFENCED)
    for part in (lifecycle.register([]), lifecycle.unfence()):
        with pytest.raises(StopIteration):
            part.send(None)
    ((_, request),) = controller.requests[1:]
    assert (request.broker_id, request.broker_epoch, request.current_metadata_offset) == (3, 42, 77)
    assert (request.want_fence, request.want_shut_down) == (False, False)
    lifecycle.close()


@pytest.mark.parametrize("answers", [(AWAY,), (REGISTERED, AWAY)], ids=["registration", "first heartbeat"])
def test_the_start_of_a_node_alone_fails_with_its_controller(loop: QuietClock, answers: tuple[Any, ...]) -> None:
    lifecycle, controller = make(loop, *answers)
    with pytest.raises(KafkaError, match="the controller is away"):
        play(loop, lifecycle, lifecycle.register([]), lifecycle.unfence())
    assert len(controller.requests) == len(answers)


def test_heartbeats_come_at_their_interval(loop: QuietClock) -> None:
    lifecycle, controller = make(loop, UNFENCED, broker_heartbeat_interval_ms="1500")
    play(loop, lifecycle, lifecycle.unfence(), asyncio.sleep(5))
    assert controller.seconds == pytest.approx([0, 1.5, 3, 4.5])


# A broker of a cluster


def test_a_broker_wants_to_be_fenced_until_it_has_caught_up_and_is_ready(loop: QuietClock) -> None:
    lifecycle, controller = make(loop, BEHIND, BEHIND, CAUGHT_UP, CAUGHT_UP, UNFENCED, **CLUSTER)
    play(loop, lifecycle, lifecycle.catch_up())
    assert controller.wants("want_fence") == [True] * 3
    assert controller.seconds == pytest.approx([0, 0.01, 0.02])

    lifecycle, controller = make(loop, BEHIND, CAUGHT_UP, CAUGHT_UP, UNFENCED, **CLUSTER)
    play(loop, lifecycle, lifecycle.catch_up(), asyncio.sleep(1), lifecycle.unfence())
    assert controller.wants("want_fence") == [True, True, False, False]
    assert "unfenced" in repr(lifecycle)


def test_the_heartbeat_that_says_that_it_is_ready_does_not_wait_for_the_interval(loop: QuietClock) -> None:
    lifecycle, controller = make(loop, CAUGHT_UP, UNFENCED, **CLUSTER)
    took = play(loop, lifecycle, lifecycle.catch_up(), asyncio.sleep(0.5), lifecycle.unfence())
    assert took == pytest.approx(0.5)
    assert len(controller.requests) == 2


def test_a_heartbeat_under_way_is_followed_by_the_one_that_says_that_it_is_ready(loop: QuietClock) -> None:
    slow = loop.create_future()
    lifecycle, controller = make(loop, CAUGHT_UP, slow, UNFENCED, broker_heartbeat_interval_ms="1000", **CLUSTER)
    loop.call_later(3, slow.set_result, CAUGHT_UP)
    play(loop, lifecycle, lifecycle.catch_up(), asyncio.sleep(2), lifecycle.unfence())
    assert controller.wants("want_fence") == [True, True, False]
    assert controller.seconds == pytest.approx([0, 1, 3])


def test_a_broker_that_was_fenced_asks_soon_again(loop: QuietClock) -> None:
    lifecycle, controller = make(loop, UNFENCED, CAUGHT_UP, UNFENCED, **CLUSTER)
    play(loop, lifecycle, lifecycle.unfence(), asyncio.sleep(3))
    assert controller.seconds == pytest.approx([0, 2, 2.01])


def test_a_heartbeat_that_fails_is_repeated_and_logged_once(loop: QuietClock, caplog: pytest.LogCaptureFixture) -> None:
    lifecycle, controller = make(loop, UNFENCED, AWAY, AWAY, AWAY, UNFENCED, **CLUSTER)
    with caplog.at_level(logging.INFO, "barnabas.node.broker_lifecycle"):
        play(loop, lifecycle, lifecycle.unfence(), asyncio.sleep(3.5))
    assert controller.seconds == pytest.approx([0, 2, 2.1, 2.3, 2.7], rel=0.01)
    assert caplog.messages == [
        "A heartbeat failed: REQUEST_TIMED_OUT: the controller is away",
        "The controller answers again",
    ]


def test_heartbeats_that_fail_are_not_rarer_than_others(loop: QuietClock) -> None:
    """Else the session of the broker would expire after the controller is back."""
    lifecycle, controller = make(loop, UNFENCED, AWAY, **CLUSTER)
    play(loop, lifecycle, lifecycle.unfence(), asyncio.sleep(60))
    assert max(after - before for before, after in pairwise(controller.seconds)) <= 2.04


def test_a_broker_that_nobody_knows_any_more_does_not_register_again(loop: QuietClock) -> None:
    stale = KafkaError(ErrorCode.STALE_BROKER_EPOCH)
    lifecycle, controller = make(loop, REGISTERED, UNFENCED, stale, **CLUSTER)
    play(loop, lifecycle, lifecycle.register([]), lifecycle.unfence(), asyncio.sleep(10))
    assert [key for key, _ in controller.requests].count(ApiKey.BROKER_REGISTRATION) == 1
    assert len(controller.requests) > 5


@pytest.mark.parametrize("story", [BrokerLifecycle.catch_up, BrokerLifecycle.unfence])
def test_nothing_is_sent_after_it_is_closed(
    loop: QuietClock, story: Callable[[BrokerLifecycle], Coroutine[Any, Any, None]]
) -> None:
    lifecycle, controller = make(loop, BEHIND, **CLUSTER)

    async def told() -> None:
        waiting = asyncio.ensure_future(story(lifecycle))
        await asyncio.sleep(0.05)
        lifecycle.close()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        sent = len(controller.requests)
        await asyncio.sleep(10)
        assert len(controller.requests) == sent

    loop.run_until_complete(told())


# The end


def test_a_broker_asks_until_it_may_stop(loop: QuietClock) -> None:
    lifecycle, controller = make(loop, UNFENCED, LEADS_STILL, LEADS_STILL, LEADS_STILL, LEADS_STILL, MAY_STOP)
    play(loop, lifecycle, lifecycle.unfence(), lifecycle.shut_down(), asyncio.sleep(10))
    assert controller.wants("want_shut_down") == [False] + [True] * 5
    assert controller.seconds == pytest.approx([0, 0, 0.01, 0.03, 0.07, 0.12])


def test_a_controller_that_is_away_may_come_back_before_the_broker_stops(loop: QuietClock) -> None:
    lifecycle, controller = make(loop, UNFENCED, LEADS_STILL, AWAY, AWAY, AWAY, MAY_STOP, **CLUSTER)
    play(loop, lifecycle, lifecycle.unfence(), lifecycle.shut_down())
    assert controller.wants("want_shut_down") == [False] + [True] * 5


def test_a_broker_stops_without_a_controller_after_half_a_session(loop: QuietClock) -> None:
    lifecycle, _ = make(loop, AWAY, **CLUSTER)
    began = loop.time()
    with pytest.raises(KafkaError, match="the controller is away"):
        play(loop, lifecycle, lifecycle.shut_down())
    assert 4.5 <= loop.time() - began < 6.5


@pytest.mark.parametrize(
    ("settings", "error"), [(CLUSTER, KafkaError(ErrorCode.STALE_BROKER_EPOCH)), ({}, AWAY)], ids=["unknown", "alone"]
)
def test_a_broker_that_cannot_hand_over_learns_it_at_once(
    loop: QuietClock, settings: dict[str, str], error: KafkaError
) -> None:
    lifecycle, controller = make(loop, error, **settings)
    with pytest.raises(KafkaError):
        play(loop, lifecycle, lifecycle.shut_down())
    assert len(controller.requests) == 1


def test_producer_ids_are_allocated_for_the_brokers_epoch(loop: QuietClock) -> None:
    lifecycle, _ = make(loop)
    lifecycle.epoch = 5
    controller = Controller(loop, None)
    lifecycle.allocate_producer_ids(controller)
    ((key, request),) = controller.requests
    assert (key, request.broker_id, request.broker_epoch) == (ApiKey.ALLOCATE_PRODUCER_IDS, 3, 5)


# Logs of partitions without a leader


def test_heartbeats_say_what_the_logs_have_once_the_broker_is_ready(loop: QuietClock) -> None:
    log = BrokerHeartbeatRequest.ReplicaLog(partition=3)
    lifecycle, controller = make(loop, CAUGHT_UP, UNFENCED, logs=[log])
    lifecycle.beat_soon()  # Nothing beats yet.

    async def more() -> None:
        lifecycle.beat_soon()
        await asyncio.sleep(0.1)

    play(loop, lifecycle, lifecycle.catch_up(), lifecycle.unfence(), more())
    assert controller.wants("replica_logs") == [[], [log], [log]]
    assert controller.seconds[-1] - controller.seconds[0] < 1
