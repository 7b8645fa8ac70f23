"""FindCoordinator in every version, and the first request that creates `__consumer_offsets`."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages import CreateTopicsResponse, FindCoordinatorRequest, RegisterBrokerRecord
from tests.api.group_hosting import PARTITIONS, GroupHosting
from tests.api.transaction_hosting import TransactionHosting
from tests.replication.hosting import NODE, Hosting


def find(version: int, *keys: str, kind: int = 0) -> FindCoordinatorRequest:
    if version >= 4:
        return FindCoordinatorRequest(coordinator_keys=list(keys), key_type=kind)
    return FindCoordinatorRequest(key=keys[0], key_type=kind)


def answers(response: Any, version: int) -> list[tuple[str, int, str, int, ErrorCode]]:
    found = response.coordinators if version >= 4 else [response]
    return [(getattr(c, "key", ""), c.node_id, c.host, c.port, ErrorCode(c.error_code)) for c in found]


@pytest.mark.parametrize("version", range(7))
def test_groups(hosting: Hosting, version: int) -> None:
    host = GroupHosting(hosting)
    keys = ("g", "h") if version >= 4 else ("",)
    response = host.ask(10, find(version, *(keys if version >= 4 else ("g",))), version)
    assert answers(response, version) == [(key, NODE, "127.0.0.1", 9092, ErrorCode.NONE) for key in keys]


@pytest.mark.parametrize("version", range(1, 7))
@pytest.mark.parametrize("kind", [1, 2, 3, -1])
def test_other_types(hosting: Hosting, version: int, kind: int) -> None:
    host = GroupHosting(hosting)
    hosting.create_topic("__transaction_state", 3)
    hosting.create_topic("__share_group_state", 3)
    for asked in ("g", "g:topic:0"):
        known = kind == 1 or (kind == 2 and version >= 6 and ":" in asked)
        found = (NODE, "127.0.0.1", 9092, ErrorCode.NONE) if known else (-1, "", -1, ErrorCode.INVALID_REQUEST)
        response = host.ask(10, find(version, asked, kind=kind), version)
        assert answers(response, version) == [(asked if version >= 4 else "", *found)]


def test_the_topic_of_transactions_is_created_with_its_settings(hosting: Hosting) -> None:
    host = TransactionHosting(hosting, create=False)
    waiting = host.ask(10, find(4, "tx", kind=1), 4)
    ((request, created),) = host.asked
    (topic,) = request.topics
    assert (topic.name, topic.num_partitions, topic.replication_factor) == ("__transaction_state", 2, 1)
    assert {config.name: config.value for config in topic.configs} == {
        "cleanup.policy": "compact",
        "compression.type": "uncompressed",
        "min.insync.replicas": "2",
        "segment.bytes": "104857600",
        "unclean.leader.election.enable": "false",
    }
    created.set_result(CreateTopicsResponse())
    host.create_transaction_topic()
    hosting.advance(10)
    assert answers(waiting.result(), 4) == [("tx", NODE, "127.0.0.1", 9092, ErrorCode.NONE)]


def test_the_topic_is_created_once_with_replicas_that_exist(hosting: Hosting) -> None:
    host = GroupHosting(hosting, create=False)
    first, second = host.ask(10, find(4, "g"), 4), host.ask(10, find(4, "h"), 4)
    assert asyncio.isfuture(first)
    ((request, created),) = host.asked
    (topic,) = request.topics
    assert (topic.name, topic.num_partitions, topic.replication_factor) == ("__consumer_offsets", PARTITIONS, 1)
    assert {config.name: config.value for config in topic.configs} == {
        "cleanup.policy": "compact",
        "compression.type": "producer",
        "segment.bytes": "104857600",
    }
    created.set_result(CreateTopicsResponse())
    hosting.spin()
    assert not first.done(), "created, but nobody leads it yet"
    host.create_offsets_topic()
    hosting.advance(10)
    assert [answers(future.result(), 4)[0][1] for future in (first, second)] == [NODE, NODE]
    assert hosting.services.creating_topics == {}


def test_a_topic_that_is_not_created_in_time(hosting: Hosting) -> None:
    host = GroupHosting(hosting, create=False)
    waiting = host.ask(10, find(4, "g"), 4)
    host.asked[0][1].set_exception(KafkaError(ErrorCode.REQUEST_TIMED_OUT))
    hosting.advance(2000)
    assert answers(waiting.result(), 4) == [("g", -1, "", -1, ErrorCode.COORDINATOR_NOT_AVAILABLE)]
    host.ask(10, find(4, "g"), 4)
    assert len(host.asked) == 2, "the next request tries again"


def test_a_partition_without_a_leader_makes_nobody_wait(hosting: Hosting) -> None:
    host = GroupHosting(hosting)
    topic = hosting.image.topics.by_name["__consumer_offsets"]
    hosting.change(topic.topic_id, host.coordinator.partition_of("g"), leader=-1)
    response = host.ask(10, find(3, "g"), 3)
    assert answers(response, 3) == [("", -1, "", -1, ErrorCode.COORDINATOR_NOT_AVAILABLE)]
    assert response.error_message == ErrorCode.COORDINATOR_NOT_AVAILABLE.default_message
    response = host.ask(10, find(4, "g", "h"), 4)
    assert response.coordinators[0].error_message == "", "words are for answers about one coordinator"
    assert [c.node_id for c in response.coordinators] == [-1, NODE], "the other partition has a leader"


def register(hosting: Hosting, **fields: Any) -> None:
    endpoint = RegisterBrokerRecord.BrokerEndpoint(name="PLAINTEXT", host="second", port=9, security_protocol=0)
    hosting.replay(RegisterBrokerRecord(broker_id=2, end_points=[endpoint], **fields))


def test_a_coordinator_on_another_broker(hosting: Hosting) -> None:
    host = GroupHosting(hosting)
    register(hosting, fenced=False)
    topic = hosting.image.topics.by_name["__consumer_offsets"]
    hosting.change(topic.topic_id, host.coordinator.partition_of("g"), leader=2)
    found = [("g", 2, "second", 9, ErrorCode.NONE), ("h", NODE, "127.0.0.1", 9092, ErrorCode.NONE)]
    assert answers(host.ask(10, find(4, "g", "h"), 4), 4) == found
    register(hosting, fenced=True)
    assert answers(host.ask(10, find(4, "g"), 4), 4) == [("g", -1, "", -1, ErrorCode.COORDINATOR_NOT_AVAILABLE)]


def test_in_a_cluster_the_topic_waits_for_as_many_brokers_as_it_has_replicas(hosting: Hosting) -> None:
    host = GroupHosting(hosting, create=False)
    hosting.services.config.is_alone = False
    waiting = host.ask(10, find(4, "g"), 4)
    ((request, created),) = host.asked
    assert request.topics[0].replication_factor == 3
    rejected = CreateTopicsResponse.CreatableTopicResult(
        name="__consumer_offsets", error_code=ErrorCode.INVALID_REPLICATION_FACTOR
    )
    created.set_result(CreateTopicsResponse(topics=[rejected]))
    hosting.advance(2000)
    assert answers(waiting.result(), 4) == [("g", -1, "", -1, ErrorCode.COORDINATOR_NOT_AVAILABLE)]
