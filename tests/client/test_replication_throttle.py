"""The settings by which the moves of replicas are throttled."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.client.admin import Admin, ConfigResource, ResourceType, TopicPartition
from barnabas.client.configs import ConfigOperation
from barnabas.client.replication_throttle import Moving, Throttle
from barnabas.protocol import messages
from tests.client.scripted_broker import MemoryCluster

DYNAMIC, DEFAULT = 2, 5


@pytest.fixture
def throttled(memory: MemoryCluster) -> MemoryCluster:
    """A broker with rates, and topics t (with throttled replicas) and u (without)."""
    response = messages.DescribeConfigsResponse
    values = {"t": ("0:1", "0:2")}

    def describe(_: int, request: Any, version: int) -> Any:
        results = []
        for resource in request.resources:
            is_broker = resource.resource_type == ResourceType.BROKER
            pair = ("500", "500") if is_broker else values.get(resource.resource_name, ("", ""))
            configs = [
                response.DescribeConfigsResourceResult(
                    name=name, value=value, config_source=DYNAMIC if value else DEFAULT
                )
                for name, value in zip(resource.configuration_keys, pair, strict=True)
            ]
            results.append(
                response.DescribeConfigsResult(
                    resource_type=resource.resource_type, resource_name=resource.resource_name, configs=configs
                )
            )
        return response(results=results)

    def alter(_: int, request: Any, version: int) -> Any:
        answer = messages.IncrementalAlterConfigsResponse
        return answer(
            responses=[
                answer.AlterConfigsResourceResponse(resource_type=each.resource_type, resource_name=each.resource_name)
                for each in request.resources
            ]
        )

    def cluster(*_: object) -> Any:
        answer = messages.DescribeClusterResponse
        return answer(
            brokers=[answer.DescribeClusterBroker(broker_id=each, host="h", port=each) for each in memory.broker_ids]
        )

    memory.handlers["DescribeClusterRequest"] = cluster
    memory.handlers |= {"DescribeConfigsRequest": describe, "IncrementalAlterConfigsRequest": alter}
    memory.topics = {"t": [1], "u": [1]}
    return memory


def altered(memory: MemoryCluster) -> dict[tuple[int, str], list[tuple[str, str | None, int]]]:
    return {
        (resource.resource_type, resource.resource_name): [
            (each.name, each.value, each.config_operation) for each in resource.configs
        ]
        for request in memory.asked("IncrementalAlterConfigsRequest")
        for resource in request.resources
    }


def test_brokers_get_rates_and_topics_the_replicas_that_count(throttled: MemoryCluster, admin: Admin) -> None:
    moves = {TopicPartition("t", 0): Moving([1, 2], [3]), TopicPartition("t", 1): Moving([2], [1, 3])}
    outcomes = admin.set_throttle(500, moves)
    assert set(outcomes.values()) == {None}
    found = altered(throttled)
    rates = [(f"{side}.replication.throttled.rate", "500", ConfigOperation.SET) for side in ("leader", "follower")]
    assert all(found[ResourceType.BROKER, str(each)] == rates for each in throttled.broker_ids)
    assert found[ResourceType.TOPIC, "t"] == [
        ("leader.replication.throttled.replicas", "0:1,0:2,1:2", ConfigOperation.SET),
        ("follower.replication.throttled.replicas", "0:3,1:1,1:3", ConfigOperation.SET),
    ]


def test_what_is_throttled_is_shown(throttled: MemoryCluster, admin: Admin) -> None:
    rates: dict[int, tuple[int | None, int | None]] = dict.fromkeys(throttled.broker_ids, (500, 500))
    assert admin.describe_throttle() == Throttle(rates, {"t": ("0:1", "0:2")})


def test_only_what_somebody_set_is_removed(throttled: MemoryCluster, admin: Admin) -> None:
    outcomes = admin.remove_throttle()
    brokers = [ConfigResource(ResourceType.BROKER, str(each)) for each in throttled.broker_ids]
    assert outcomes == dict.fromkeys([*brokers, ConfigResource(ResourceType.TOPIC, "t")])
    operations = {operation for changes in altered(throttled).values() for _, _, operation in changes}
    assert operations == {ConfigOperation.DELETE}
