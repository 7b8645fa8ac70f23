"""Which brokers are fenced: by their heartbeats, by their wish, or by their silence. `test_controlled_shutdown` has the orderly end."""

from __future__ import annotations

import pytest

from barnabas.protocol import messages
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.errors import ErrorCode, KafkaError
from tests.metadata.controller_harness import ControllerHarness


def test_a_broker_that_has_died_is_fenced_at_once() -> None:
    harness = ControllerHarness()
    epoch = harness.register(2)
    active = harness.controller.active
    assert active is not None
    for other in (2, 3):
        active.broker_has_died(other, epoch + 1)
    assert not harness.controller.image.cluster.brokers[2].fenced
    active.broker_has_died(2, epoch)
    assert harness.controller.image.cluster.brokers[2].fenced
    assert not harness.heartbeat(2, epoch).is_fenced


def test_a_heartbeat_of_an_unknown_broker_or_epoch_is_stale() -> None:
    harness = ControllerHarness()
    epoch = harness.register(2)
    for broker_id, wrong, message in [
        (3, 0, "No broker registration found for broker id 3"),
        (2, epoch + 1, f"Expected broker epoch {epoch + 1}, but got broker epoch {epoch}"),
    ]:
        with pytest.raises(KafkaError, match=message) as caught:
            harness.heartbeat(broker_id, wrong)
        assert caught.value.code is ErrorCode.STALE_BROKER_EPOCH


@pytest.mark.parametrize(("behind", "caught_up"), [(0, True), (1, False)])
def test_a_broker_stays_fenced_until_it_has_read_its_registration(behind: int, caught_up: bool) -> None:
    harness = ControllerHarness()
    epoch = harness.register(2, unfence=False)
    beat = messages.BrokerHeartbeatRequest(broker_id=2, broker_epoch=epoch, current_metadata_offset=epoch - behind)
    answer = harness.send(ApiKey.BROKER_HEARTBEAT, beat)
    assert (answer.is_caught_up, answer.is_fenced, answer.should_shut_down) == (caught_up, not caught_up, False)
    assert harness.controller.image.cluster.brokers[2].fenced is not caught_up


def test_a_fenced_broker_that_wants_to_stay_fenced_does() -> None:
    harness = ControllerHarness()
    epoch = harness.register(2, unfence=False)
    end = harness.log.end_offset
    assert harness.heartbeat(2, epoch, want_fence=True).is_fenced
    assert harness.log.end_offset == end


def test_a_fenced_broker_may_shut_down_at_once() -> None:
    harness = ControllerHarness()
    epoch = harness.register(2, unfence=False)
    end = harness.log.end_offset
    answer = harness.heartbeat(2, epoch, want_shut_down=True)
    assert (answer.should_shut_down, answer.is_fenced) == (True, True)
    assert harness.log.end_offset == end


def test_a_heartbeat_keeps_the_session() -> None:
    harness = ControllerHarness()
    epoch = harness.register(2)
    timeout_ms = harness.settings.broker_session_timeout_ms
    for _ in range(3):
        harness.now_ms += timeout_ms - 1
        harness.heartbeat(2, epoch)
        harness.controller.tick()
    assert not harness.controller.image.cluster.brokers[2].fenced
    harness.now_ms += timeout_ms
    harness.controller.tick()
    assert harness.controller.image.cluster.brokers[2].fenced


def test_all_brokers_whose_session_expired_are_fenced_in_one_tick() -> None:
    harness = ControllerHarness()
    for broker_id in (2, 3, 4):
        harness.register(broker_id)
    harness.now_ms += harness.settings.broker_session_timeout_ms
    harness.controller.tick()
    assert all(broker.fenced for broker in harness.controller.image.cluster.brokers.values())


@pytest.mark.parametrize("jump_ms", [3_600_000, -3_600_000])
def test_a_wall_clock_that_jumps_ends_no_session_and_extends_none(jump_ms: int) -> None:
    harness = ControllerHarness()
    epoch = harness.register(2)
    timeout_ms = harness.settings.broker_session_timeout_ms
    harness.wall_jump_ms = jump_ms
    harness.controller.tick()
    assert not harness.controller.image.cluster.brokers[2].fenced
    harness.heartbeat(2, epoch)
    harness.now_ms += timeout_ms
    harness.controller.tick()
    assert harness.controller.image.cluster.brokers[2].fenced
