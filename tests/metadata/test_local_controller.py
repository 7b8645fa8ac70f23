"""When the controller of a node is active: after its election, once the node has read everything before its epoch."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.errors import ErrorCode
from barnabas.turns import REPLICA
from tests.api.held_executor import HeldExecutor
from tests.api.quiet_clock import QuietClock
from tests.metadata.controller_harness import ControllerHarness
from tests.metadata.test_quorum_controller import create, registered
from tests.short_turns import set_turn


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> Iterator[ControllerHarness]:
    """A node with three topics, whose next loader reads one record in a turn of the loop."""
    harness = registered()
    harness.create("a", "b", "c")
    set_turn(monkeypatch, REPLICA)
    harness.loop = QuietClock()
    yield harness
    harness.loop.close()


def ask(harness: ControllerHarness, name: str) -> Any:
    return harness.later(ApiKey.CREATE_TOPICS, create(name))


def run(harness: ControllerHarness) -> None:
    harness.loop.run_until_complete(asyncio.sleep(1))


def test_a_leader_that_has_not_read_its_log_is_not_active_yet(slow: ControllerHarness) -> None:
    slow.restart()
    assert slow.driver.node.is_leader
    assert not slow.controller.is_active
    waiting, refused = ask(slow, "d"), ask(slow, "a")
    assert not waiting.done()
    run(slow)
    assert slow.controller.is_active
    assert waiting.result().topics[0].error_code == ErrorCode.NONE
    assert refused.result().topics[0].error_code == ErrorCode.TOPIC_ALREADY_EXISTS


def test_a_leader_that_resigns_before_it_has_read_its_log_is_never_active(slow: ControllerHarness) -> None:
    slow.restart()
    waiting = ask(slow, "d")
    slow.driver.resign()
    assert waiting.exception().code is ErrorCode.NOT_CONTROLLER
    run(slow)
    assert not slow.controller.is_active
    assert sorted(slow.controller.image.topics.by_name) == ["a", "b", "c"]


def test_a_leader_that_is_closed_before_it_has_read_its_log_is_never_active(slow: ControllerHarness) -> None:
    slow.restart()
    slow.controller.close()
    run(slow)
    assert not slow.controller.is_active
    assert slow.faults == []


def test_each_time_of_leadership_has_a_controller_of_its_own() -> None:
    harness = registered()
    first = harness.active
    harness.driver.resign()
    assert harness.controller.active is None
    harness.driver.campaign()
    assert harness.active is not first
    assert not first.is_active
    assert first.sessions is not harness.active.sessions


def test_a_long_request_of_an_earlier_leadership_is_not_answered_by_the_next() -> None:
    loop = HeldExecutor()
    harness = ControllerHarness(loop=loop)
    harness.register()
    loop.held = []
    computing = harness.later(ApiKey.CREATE_TOPICS, create("a"), is_long=True)
    harness.driver.resign()
    harness.driver.campaign()
    end = harness.log.end_offset
    loop.let_go()
    loop.run_until_complete(asyncio.sleep(0.001))
    assert computing.exception().code is ErrorCode.NOT_CONTROLLER
    assert harness.log.end_offset == end
    loop.close()
