"""The addresses of the brokers of a cluster: by the listener that the client uses, without dead brokers."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from barnabas.api import describe_cluster, describe_topic_partitions, metadata
from barnabas.api.serving.context import ConnectionInfo, RequestContext
from barnabas.config.endpoints import Listener
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import (
    DescribeClusterRequest,
    DescribeTopicPartitionsRequest,
    MetadataRequest,
    PartitionRecord,
    RegisterBrokerRecord,
    TopicRecord,
)
from barnabas.steps import step
from tests.replication.hosting import NODE, Hosting, topic_id

LEADERS = (NODE, 2, 3, -1)
REPLICAS = [1, 2, 3, 4]
DIALLED = ("dialled", 19092)


def register(hosting: Hosting, broker_id: int, *listeners: str, fenced: bool = False) -> None:
    endpoints = [
        RegisterBrokerRecord.BrokerEndpoint(name=name, host=f"{name}-{broker_id}", port=broker_id) for name in listeners
    ]
    hosting.replay(RegisterBrokerRecord(broker_id=broker_id, end_points=endpoints, fenced=fenced))


@pytest.fixture
def cluster(hosting: Hosting) -> Hosting:
    """Broker 2 has both listeners, 3 only one of them, and 4 is fenced."""
    hosting.services.cluster_id = "c"
    hosting.services.config = SimpleNamespace(
        advertised_listeners=None, auto_create_topics_enable=False, int_value=lambda name: 2_000
    )
    register(hosting, NODE, "PLAINTEXT", "INSIDE")
    register(hosting, 2, "PLAINTEXT", "INSIDE")
    register(hosting, 3, "INSIDE")
    register(hosting, 4, "PLAINTEXT", "INSIDE", fenced=True)
    hosting.replay(
        TopicRecord(name="t", topic_id=topic_id(1)),
        *(
            PartitionRecord(partition_id=index, topic_id=topic_id(1), replicas=REPLICAS, isr=[1, 2], leader=leader)
            for index, leader in enumerate(LEADERS)
        ),
    )
    return hosting


def context(hosting: Hosting, api_key: int, version: int, listener: str) -> RequestContext:
    connection = ConnectionInfo("c", listener, local_host=DIALLED[0], local_port=DIALLED[1])
    return RequestContext(hosting.services, connection, api_key, version)


def brokers(answer: Any) -> dict[int, tuple[str, int]]:
    return {broker.node_id: (broker.host, broker.port) for broker in answer.brokers}


def ask(hosting: Hosting, version: int = 13, listener: str = "PLAINTEXT") -> Any:
    request = MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(name="t")])
    return step(metadata.handle(context(hosting, 3, version, listener), request), hosting.loop)


@pytest.mark.parametrize("version", [5, 13])
def test_metadata_names_the_brokers_that_the_client_can_reach(cluster: Hosting, version: int) -> None:
    answer = ask(cluster, version)
    assert brokers(answer) == {1: DIALLED, 2: ("PLAINTEXT-2", 2)}
    assert answer.controller_id == NODE
    (topic,) = answer.topics
    not_found = ErrorCode.LISTENER_NOT_FOUND if version >= 6 else ErrorCode.LEADER_NOT_AVAILABLE
    assert [(part.error_code, part.leader_id) for part in topic.partitions] == [
        (ErrorCode.NONE, 1),
        (ErrorCode.NONE, 2),
        (not_found, -1),
        (ErrorCode.LEADER_NOT_AVAILABLE, -1),
    ]
    assert {tuple(part.replica_nodes) for part in topic.partitions} == {tuple(REPLICAS)}
    assert {tuple(part.isr_nodes) for part in topic.partitions} == {(1, 2)}
    assert {tuple(part.offline_replicas) for part in topic.partitions} == {(3, 4)}


def test_each_listener_has_its_own_addresses(cluster: Hosting) -> None:
    answer = ask(cluster, listener="INSIDE")
    assert brokers(answer) == {1: DIALLED, 2: ("INSIDE-2", 2), 3: ("INSIDE-3", 3)}
    assert [part.error_code for part in answer.topics[0].partitions][:3] == [0, 0, 0]
    assert answer.topics[0].partitions[0].offline_replicas == [4]
    cluster.services.config.advertised_listeners = (Listener("INSIDE", "advertised", 7),)
    assert brokers(ask(cluster, listener="INSIDE"))[NODE] == ("advertised", 7)
    assert NODE not in brokers(ask(cluster)), "it advertises no address for this listener"
    assert ask(cluster).controller_id == 2


def test_describe_cluster_has_fenced_brokers_on_request(cluster: Hosting) -> None:
    def described(include_fenced: bool) -> dict[int, tuple[str, int, bool]]:
        request = DescribeClusterRequest(include_fenced_brokers=include_fenced, endpoint_type=1)
        answer = step(describe_cluster.handle(context(cluster, 60, 2, "PLAINTEXT"), request), cluster.loop)
        assert answer.controller_id == NODE
        return {broker.broker_id: (broker.host, broker.port, broker.is_fenced) for broker in answer.brokers}

    alive = {1: (*DIALLED, False), 2: ("PLAINTEXT-2", 2, False)}
    assert described(include_fenced=False) == alive
    assert described(include_fenced=True) == {**alive, 4: ("PLAINTEXT-4", 4, True)}


def test_describe_topic_partitions_finds_the_same_leaders(cluster: Hosting) -> None:
    request = DescribeTopicPartitionsRequest(
        topics=[DescribeTopicPartitionsRequest.TopicRequest(name="t")], response_partition_limit=100
    )
    answer: Any = step(describe_topic_partitions.handle(context(cluster, 75, 0, "PLAINTEXT"), request), cluster.loop)
    parts = answer.topics[0].partitions
    assert [(part.error_code, part.leader_id) for part in parts] == [
        (ErrorCode.NONE, 1),
        (ErrorCode.NONE, 2),
        (ErrorCode.LISTENER_NOT_FOUND, -1),
        (ErrorCode.LEADER_NOT_AVAILABLE, -1),
    ]
    assert {tuple(part.offline_replicas) for part in parts} == {(3, 4)}
