"""DescribeTopicPartitions over an image with four brokers, of which one is fenced and one has no listener for clients."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from barnabas.api import describe_topic_partitions
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    PartitionRecord,
    RegisterBrokerRecord,
    TopicRecord,
)
from tests.replication.hosting import NODE, Hosting, topic_id

FENCED, INTERNAL_ONLY, OTHER, GONE = 2, 3, 4, 9
MOST = 5
"""max.request.partition.size.limit"""


def broker(broker_id: int, listener: str = "PLAINTEXT") -> RegisterBrokerRecord:
    endpoint = RegisterBrokerRecord.BrokerEndpoint(name=listener, host=f"host{broker_id}", port=9092)
    return RegisterBrokerRecord(broker_id=broker_id, fenced=broker_id == FENCED, end_points=[endpoint])


def partition(number: int, index: int, leader: int = NODE, **fields: Any) -> PartitionRecord:
    values: dict[str, Any] = {"replicas": [NODE, FENCED, OTHER], "isr": [NODE, OTHER], "leader_epoch": 7} | fields
    return PartitionRecord(topic_id=topic_id(number), partition_id=index, leader=leader, **values)


@pytest.fixture
def hosting(hosting: Hosting) -> Hosting:
    """Topics a, b and c with 3, 1 and 2 partitions."""
    hosting.services.config = SimpleNamespace(
        advertised_listeners=None, int_value={"max.request.partition.size.limit": MOST}.__getitem__
    )
    hosting.replay(
        broker(NODE), broker(FENCED), broker(INTERNAL_ONLY, "INTERNAL"), broker(OTHER),
        *(TopicRecord(name=name, topic_id=topic_id(number)) for number, name in enumerate("abc", 1)),
        *(partition(1, index) for index in range(3)),
        partition(2, 0),
        *(partition(3, index) for index in range(2)),
    )  # fmt: skip
    return hosting


def describe(
    hosting: Hosting, *names: str, limit: int = 2000, cursor: tuple[str, int] | None = None
) -> DescribeTopicPartitionsResponse:
    made = DescribeTopicPartitionsRequest
    request = made(
        topics=[made.TopicRequest(name=name) for name in names],
        response_partition_limit=limit,
        cursor=None if cursor is None else made.Cursor(topic_name=cursor[0], partition_index=cursor[1]),
    )
    asked = made.decode(request.encode(0), 0)
    response = hosting.loop.run_until_complete(describe_topic_partitions.handle(hosting.context(75, 0), asked))
    return DescribeTopicPartitionsResponse.decode(response.encode(0), 0)


def described(response: DescribeTopicPartitionsResponse) -> list[str]:
    return [f"{topic.name}{each.partition_index}" for topic in response.topics for each in topic.partitions]


def next_page(response: DescribeTopicPartitionsResponse) -> tuple[str, int] | None:
    cursor = response.next_cursor
    return None if cursor is None else (cursor.topic_name, cursor.partition_index)


@pytest.mark.parametrize(
    ("limit", "found", "cursor"),
    [
        (2, ["a0", "a1"], ("a", 2)),
        (3, ["a0", "a1", "a2"], ("b", 0)),
        (4, ["a0", "a1", "a2", "b0"], ("c", 0)),
        (2000, ["a0", "a1", "a2", "b0", "c0"], ("c", 1)),
        (0, ["a0"], ("a", 1)),
        (-7, ["a0"], ("a", 1)),
    ],
)
def test_a_page_ends_at_the_smaller_limit_and_has_at_least_one_partition(
    hosting: Hosting, limit: int, found: list[str], cursor: tuple[str, int]
) -> None:
    """2000 is above the broker's own limit."""
    page = describe(hosting, limit=limit)
    assert described(page) == found
    assert next_page(page) == cursor


def test_a_last_page_that_is_full_has_no_cursor(hosting: Hosting) -> None:
    page = describe(hosting, limit=3, cursor=("b", 0))
    assert described(page) == ["b0", "c0", "c1"]
    assert next_page(page) is None


def test_a_cursor_may_name_what_is_gone_if_all_topics_are_asked_for(hosting: Hosting) -> None:
    """A topic is deleted between two pages, or the last partition of the cursor's topic was on the page before."""
    assert described(describe(hosting, cursor=("abc", 1))) == ["b0", "c0", "c1"]
    beyond = describe(hosting, "a", "c", cursor=("a", 3))
    assert [topic.name for topic in beyond.topics] == ["a", "c"]
    assert described(beyond) == ["c0", "c1"]


def test_a_cursor_outside_of_the_request_is_rejected(hosting: Hosting) -> None:
    with pytest.raises(KafkaError, match="should contain the cursor topic: b") as raised:
        describe(hosting, "a", "c", cursor=("b", 0))
    assert raised.value.code is ErrorCode.INVALID_REQUEST
    with pytest.raises(KafkaError, match="cursor partition must be valid"):
        describe(hosting, cursor=("a", -1))


def test_topics_are_in_the_order_of_their_names_once_each(hosting: Hosting) -> None:
    page = describe(hosting, "nobody", "b", "a", "b", "b/d")
    assert [(topic.name, ErrorCode(topic.error_code).name) for topic in page.topics] == [
        ("a", "NONE"),
        ("b", "NONE"),
        ("b/d", "INVALID_TOPIC_EXCEPTION"),
        ("nobody", "UNKNOWN_TOPIC_OR_PARTITION"),
    ]


@pytest.mark.parametrize(
    ("leader", "shown", "code"),
    [
        (NODE, NODE, ErrorCode.NONE),
        (OTHER, OTHER, ErrorCode.NONE),
        (INTERNAL_ONLY, -1, ErrorCode.LISTENER_NOT_FOUND),
        (FENCED, -1, ErrorCode.LEADER_NOT_AVAILABLE),
        (GONE, -1, ErrorCode.LEADER_NOT_AVAILABLE),
        (-1, -1, ErrorCode.LEADER_NOT_AVAILABLE),
    ],
)
def test_a_leader_that_the_client_cannot_reach(hosting: Hosting, leader: int, shown: int, code: ErrorCode) -> None:
    hosting.replay(TopicRecord(name="d", topic_id=topic_id(4)), partition(4, 0, leader))
    (found,) = describe(hosting, "d").topics[0].partitions
    assert (found.leader_id, found.error_code, found.leader_epoch) == (shown, code, 7)


def test_replicas_that_the_client_cannot_reach_are_offline(hosting: Hosting) -> None:
    replicas = [OTHER, INTERNAL_ONLY, FENCED, NODE, GONE]
    lost = {"eligible_leader_replicas": [FENCED], "last_known_elr": [GONE]}
    hosting.replay(
        TopicRecord(name="d", topic_id=topic_id(4)), partition(4, 0, NODE, replicas=replicas, isr=[NODE], **lost)
    )
    (found,) = describe(hosting, "d").topics[0].partitions
    assert (found.replica_nodes, found.isr_nodes) == (replicas, [NODE])
    assert found.offline_replicas == [INTERNAL_ONLY, FENCED, GONE]
    assert (found.eligible_leader_replicas, found.last_known_elr) == ([FENCED], [GONE])
