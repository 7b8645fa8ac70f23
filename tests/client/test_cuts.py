"""Cuts: which requests take one, in which order, and what the cluster keeps of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import barnabas
from barnabas.client.admin import Admin, Cut, NewTopic, TopicPartition, results
from barnabas.client.cuts import CUTS_TOPIC, is_valid_cut_name
from barnabas.client.offsets import READ_COMMITTED, READ_UNCOMMITTED
from barnabas.protocol import messages
from barnabas.protocol.errors import KafkaError
from tests.client.scripted_broker import MemoryCluster

A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)
LATE_MS = 9_000


@pytest.fixture
def cluster(memory: MemoryCluster) -> MemoryCluster:
    """Every partition ends at 7 (its last stable offset is 5), and has a record at or after 1000 at offset 3, none after 9000."""
    memory.topics = {"a": [1, 2], "b": [1]}

    def list_offsets(broker_id: int, request: Any, version: int) -> Any:
        response = messages.ListOffsetsResponse

        def offset(timestamp: int) -> int:
            if timestamp == -1:
                return 5 if request.isolation_level == READ_COMMITTED else 7
            return 3 if timestamp < LATE_MS else -1

        return response(
            topics=[
                response.ListOffsetsTopicResponse(
                    name=topic.name,
                    partitions=[
                        response.ListOffsetsPartitionResponse(
                            partition_index=each.partition_index, offset=offset(each.timestamp)
                        )
                        for each in topic.partitions
                    ],
                )
                for topic in request.topics
            ]
        )

    memory.handlers["ListOffsetsRequest"] = list_offsets
    return memory


def test_the_topics_are_asked_one_after_the_other_in_the_order_given(cluster: MemoryCluster) -> None:
    taken = Admin(cluster.client()).take_cut(["b", "a"], now_ms=1)
    assert taken.offsets == {B0: 5, A0: 5, A1: 5}
    asked = [topic.name for request in cluster.asked("ListOffsetsRequest") for topic in request.topics]
    assert asked == ["b", "a", "a"], "one request for each leader of a topic"


def test_the_isolation_level_decides_what_an_end_is(cluster: MemoryCluster) -> None:
    taken = Admin(cluster.client()).take_cut(["b"], now_ms=1, isolation="read_uncommitted")
    assert taken.offsets == {B0: 7}
    assert {request.isolation_level for request in cluster.asked("ListOffsetsRequest")} == {READ_UNCOMMITTED}


def test_a_time_is_the_first_record_that_late_or_the_end(cluster: MemoryCluster) -> None:
    admin = Admin(cluster.client())
    assert admin.take_cut(["b"], now_ms=1, at_ms=1_000).offsets == {B0: 3}
    assert admin.take_cut(["b"], now_ms=1, at_ms=LATE_MS).offsets == {B0: 5}


def test_a_topic_that_does_not_exist_makes_no_cut(cluster: MemoryCluster) -> None:
    with pytest.raises(KafkaError, match="topic c does not exist"):
        Admin(cluster.client()).take_cut(["a", "c"], now_ms=1)


def test_a_cut_is_read_as_it_was_written() -> None:
    cut = Cut({B0: 5, A0: 0, A1: 1 << 40}, {"b": "x" * 22, "a": "y" * 22}, "read_committed", 17, 3)
    assert Cut.from_json(cut.to_json()) == cut
    assert Cut.from_json(cut.to_json()).topics == ["b", "a"]


def test_a_cut_of_a_newer_release_is_not_misread() -> None:
    newer = Cut({}, {}, "read_committed", 17).to_json().replace(b'"version":1', b'"version":2')
    with pytest.raises(ValueError, match="this release is too old"):
        Cut.from_json(newer)


def test_names() -> None:
    assert is_valid_cut_name("before-release_2026.11")
    assert not any(map(is_valid_cut_name, ("", "two words", "a:b", "a\n", "é", "a" * 250)))


@pytest.fixture(scope="module")
def broker() -> Iterator[barnabas.Broker]:
    with barnabas.Broker(config={"auto.create.topics.enable": "false"}) as running:
        yield running


@pytest.fixture
def admin(broker: barnabas.Broker) -> Iterator[Admin]:
    broker.reset()
    with Admin(broker.bootstrap_servers) as admin:
        yield admin


def test_the_cluster_keeps_cuts_by_name(admin: Admin) -> None:
    results(admin.create_topics([NewTopic("a", 2)]))
    assert admin.list_cuts() == {}
    taken = admin.take_cut(["a"], now_ms=1_000)
    other = admin.take_cut(["a"], now_ms=2_000, isolation="read_uncommitted")
    admin.store_cut("one", taken)
    admin.store_cut("two", taken)
    admin.store_cut("one", other)
    assert admin.list_cuts() == {"one": other, "two": taken}
    admin.delete_cuts(["two", "never stored"], now_ms=3_000)
    assert admin.list_cuts() == {"one": other}
    (topic,) = results(admin.describe_topics([CUTS_TOPIC])).values()
    assert len(topic.partitions) == 1


def test_a_topic_that_is_created_again_has_another_id(admin: Admin) -> None:
    results(admin.create_topics([NewTopic("a", 1), NewTopic("b", 1)]))
    taken = admin.take_cut(["a", "b"], now_ms=1)
    results(admin.delete_topics(["a", "b"]))
    results(admin.create_topics([NewTopic("a", 1)]))
    now = admin.current_topic_ids(taken)
    assert now["a"] not in (None, taken.topic_ids["a"])
    assert now["b"] is None
