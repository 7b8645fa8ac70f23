"""A controller that loses its leadership, with requests pending or without, and leads again."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.metadata.record_codec import encode_record
from barnabas.protocol import messages
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.records.builder import build_batch
from tests.metadata.controller_harness import ControllerHarness
from tests.metadata.test_quorum_controller import create, registered


def ask(harness: ControllerHarness, name: str) -> Any:
    return harness.later(ApiKey.CREATE_TOPICS, create(name))


def is_not_controller(future: Any) -> bool:
    error = future.exception()
    return isinstance(error, KafkaError) and error.code is ErrorCode.NOT_CONTROLLER


def topics(harness: ControllerHarness) -> list[str]:
    return sorted(harness.controller.image.topics.by_name)


def test_requests_that_are_pending_fail_when_the_controller_resigns() -> None:
    harness = registered()
    harness.log.hold = True
    # The second request has no records: it waits for the commit of the first.
    pending = [ask(harness, "a"), ask(harness, "a")]
    harness.driver.resign()
    assert not harness.controller.is_active
    assert all(is_not_controller(future) for future in (*pending, ask(harness, "b")))
    assert topics(harness) == []


def test_a_request_that_waits_for_the_epoch_fails_when_the_controller_resigns() -> None:
    harness = registered()
    harness.log.hold = True
    harness.restart()
    future = ask(harness, "a")
    harness.driver.resign()
    assert is_not_controller(future)


def test_a_controller_that_leads_again_does_not_replay_its_own_commits() -> None:
    harness = registered()
    harness.create("a", "b")
    harness.driver.resign()
    harness.commits.clear()
    harness.driver.campaign()
    assert harness.controller.is_active
    assert harness.faults == []
    assert [delta.topics for delta, _ in harness.commits] == [None]
    harness.create("c")
    assert topics(harness) == ["a", "b", "c"]


def test_what_was_pending_takes_effect_once_if_it_is_committed_later() -> None:
    harness = registered()
    harness.create("a")
    harness.log.hold = True
    pending = ask(harness, "b")
    harness.driver.resign()
    harness.driver.campaign()
    waiting = ask(harness, "c")
    harness.log.hold = False
    harness.log.release()
    harness.log.release()
    assert is_not_controller(pending)
    assert waiting.result().topics[0].error_code == ErrorCode.NONE
    assert topics(harness) == ["a", "b", "c"]
    before = harness.controller.image
    harness.restart()
    assert harness.controller.image.topics == before.topics


def test_what_was_pending_and_is_overwritten_by_another_leader_never_takes_effect() -> None:
    harness = registered()
    end = harness.log.end_offset
    harness.log.hold = True
    pending = ask(harness, "lost")
    harness.driver.resign()
    harness.log.truncate_to(end)
    of_the_other = [
        messages.TopicRecord(name="other", topic_id=b"o" * 16),
        messages.PartitionRecord(partition_id=0, topic_id=b"o" * 16, replicas=[1], isr=[1], leader=1),
    ]
    values = [(7, None, encode_record(record, 33), ()) for record in of_the_other]
    harness.log.append(build_batch(values, base_offset=end, leader_epoch=2), 2)
    harness.loader.on_high_watermark(harness.log.end_offset)
    assert is_not_controller(pending)
    assert topics(harness) == ["other"]


@pytest.mark.parametrize("times", [1, 3])
def test_commits_reach_listeners_once_and_in_order_across_resignations(times: int) -> None:
    harness = registered()
    for number in range(times):
        harness.create(f"t{number}")
        harness.driver.resign()
        harness.driver.campaign()
    offsets = [image.provenance.offset for _, image in harness.commits]
    assert offsets == sorted(set(offsets))
    created = [t.name for delta, _ in harness.commits if delta.topics is not None for t in delta.topics.created()]
    assert created == [f"t{number}" for number in range(times)]


def test_a_broker_has_a_full_session_when_the_controller_leads_again() -> None:
    harness = registered()
    harness.driver.resign()
    harness.now_ms += 10 * harness.settings.broker_session_timeout_ms
    harness.controller.tick()
    harness.driver.campaign()
    harness.controller.tick()
    assert not harness.controller.image.cluster.brokers[1].fenced
