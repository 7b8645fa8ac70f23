"""What no group needs is rejected before the coordinator works on it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.api.serving.excess import ELEMENTS_MAX, MISSING_TOPICS_MAX
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import ConsumerGroupHeartbeatRequest, StreamsGroupHeartbeatRequest
from tests.api.quiet_clock import QuietClock
from tests.api.served_node import Serving

MEMBER = "AAAAAAAAAAAAAAAAAAAAAQ"


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Serving]:
    made = Serving(tmp_path, loop=QuietClock(), offsets_topic_num_partitions="1")
    yield made
    made.close()


def subscribe(node: Serving, missing: int, group_id: str) -> tuple[int, str | None]:
    request = ConsumerGroupHeartbeatRequest(
        group_id=group_id,
        member_id=MEMBER,
        member_epoch=0,
        rebalance_timeout_ms=10_000,
        topic_partitions=[],
        subscribed_topic_names=["t", "t", *(f"missing-{number}" for number in range(missing))],
    )
    response = node.ask(request)
    return response.error_code, response.error_message


def test_a_subscription_may_name_topics_that_do_not_exist_but_not_thousands(node: Serving) -> None:
    node.create_topic("t")
    subscribe(node, 1, "g")  # The coordinator's topic is created.
    assert subscribe(node, MISSING_TOPICS_MAX, "h")[0] in (0, ErrorCode.NOT_COORDINATOR)
    assert subscribe(node, MISSING_TOPICS_MAX + 1, "i") == (
        ErrorCode.INVALID_REQUEST,
        "The subscription names 1001 topics that do not exist; 1000 are allowed.",
    )


@pytest.mark.parametrize(("tasks", "is_refused"), [(ELEMENTS_MAX // 2, False), (ELEMENTS_MAX // 2 + 1, True)])
def test_a_heartbeat_of_a_streams_member_has_a_bounded_number_of_elements(
    node: Serving, tasks: int, is_refused: bool
) -> None:
    task = StreamsGroupHeartbeatRequest.TaskIds(subtopology_id="0", partitions=[0])
    request = StreamsGroupHeartbeatRequest(
        group_id="g", member_id=MEMBER, member_epoch=1, active_tasks=[task] * tasks, standby_tasks=[], warmup_tasks=[]
    )
    response = node.ask(request)
    assert (response.error_message == "The request's arrays have more than 5000 elements.") == is_refused
