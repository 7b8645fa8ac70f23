"""ConsumerGroupHeartbeat and ConsumerGroupDescribe: what is wrong with a request itself, versions, switches, and a life in bytes."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.config.config_table import config_schema
from barnabas.group.group_config import GroupConfigs, assignor_names
from barnabas.metadata.config_entries import ConfigResolver
from barnabas.metadata.features_image import FeaturesImage
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupHeartbeatRequest,
    DescribeConfigsRequest,
)
from tests.api.group_hosting import GroupHosting
from tests.coordinator.shards import context_of
from tests.replication.hosting import Hosting

Part = ConsumerGroupHeartbeatRequest.TopicPartitions


def host_of(hosting: Hosting, *, protocols: tuple[str, ...] = ("classic", "consumer"), level: int = 1) -> GroupHosting:
    host = GroupHosting(hosting)
    services: Any = hosting.services
    services.config.list_value = {"group.coordinator.rebalance.protocols": protocols}.__getitem__
    image = hosting.image
    features = FeaturesImage(finalized={"group.version": level})
    services.image = lambda: image._replace(features=features)  # type: ignore[arg-type]
    configs = GroupConfigs(ConfigResolver(config_schema(), 1, {}, {}), lambda: hosting.image.configs)
    for partition in range(2):
        context = context_of(host.coordinator, partition)
        context.shard.environment.group_configs = configs
        context.shard.environment.image = lambda: hosting.image
    return host


def joining(**changed: Any) -> ConsumerGroupHeartbeatRequest:
    fields: dict[str, Any] = {
        "group_id": "g",
        "member_id": "m",
        "rebalance_timeout_ms": 1000,
        "subscribed_topic_names": ["t"],
        "topic_partitions": [],
    }
    return ConsumerGroupHeartbeatRequest(**{**fields, **changed})


INVALID = {
    "no member id": {"member_id": ""},
    "no group id": {"group_id": ""},
    "a blank group id": {"group_id": " "},
    "an empty instance id": {"instance_id": ""},
    "an empty rack": {"rack_id": ""},
    "no rebalance timeout": {"rebalance_timeout_ms": -1},
    "owns when it joins": {"topic_partitions": [Part(topic_id=bytes(16), partitions=[0])]},
    "does not say what it owns": {"topic_partitions": None},
    "subscribes to nothing": {"subscribed_topic_names": None},
    "leaves for a while without an instance id": {"member_epoch": -2},
    "no such epoch": {"member_epoch": -3},
}


@pytest.mark.parametrize("case", INVALID)
def test_a_request_that_no_group_could_accept(hosting: Hosting, case: str) -> None:
    response = host_of(hosting).ask(68, joining(**INVALID[case]), 1)
    assert response.error_code == ErrorCode.INVALID_REQUEST
    assert response.error_message


def test_an_assignor_that_is_not_there(hosting: Hosting) -> None:
    response = host_of(hosting).ask(68, joining(server_assignor="sticky"), 1)
    assert response.error_code == ErrorCode.UNSUPPORTED_ASSIGNOR
    assert response.error_message == "ServerAssignor sticky is not supported. Supported assignors: uniform, range."


def test_assignors_may_be_named_by_kafkas_classes() -> None:
    classes = ["org.apache.kafka.coordinator.group.assignor.RangeAssignor", "uniform"]
    assert assignor_names(classes) == ("range", "uniform")


@pytest.mark.parametrize("switch", [{"protocols": ("classic",)}, {"level": 0}])
@pytest.mark.parametrize("api_key", [68, 69])
def test_switched_off(hosting: Hosting, switch: dict[str, Any], api_key: int) -> None:
    request = joining() if api_key == 68 else ConsumerGroupDescribeRequest(group_ids=["g"])
    with pytest.raises(KafkaError) as raised:
        host_of(hosting, **switch).ask(api_key, request, 1)
    assert raised.value.code is ErrorCode.UNSUPPORTED_VERSION


def test_the_coordinator_makes_the_member_id_in_version_0(hosting: Hosting) -> None:
    hosting.create_topic("t", 1)
    response = host_of(hosting).ask(68, joining(member_id=""), 0)
    assert response.error_code == ErrorCode.NONE
    assert len(response.member_id) == 22


@pytest.mark.parametrize("version", [0, 1])
def test_join_describe_and_leave(hosting: Hosting, version: int) -> None:
    hosting.create_topic("t", 2)
    host = host_of(hosting)
    joined = host.ask(68, joining(instance_id="i"), version)
    assert (joined.error_code, joined.member_epoch, joined.heartbeat_interval_ms) == (ErrorCode.NONE, 2, 5000)
    assert [part.partitions for part in joined.assignment.topic_partitions] == [[0, 1]]

    request = ConsumerGroupDescribeRequest(group_ids=["g", "", "none"], include_authorized_operations=True)
    described, empty, none = host.ask(69, request, version).groups
    assert (described.group_state, described.group_epoch, described.assignor_name) == ("Stable", 2, "uniform")
    (member,) = described.members
    assert (member.client_id, member.client_host, member.instance_id) == ("client", "/127.0.0.9", "i")
    assert member.member_type == (1 if version else -1)
    assert [(part.topic_name, part.partitions) for part in member.assignment.topic_partitions] == [("t", [0, 1])]
    assert described.authorized_operations == 0b110101001000
    assert empty.error_code == ErrorCode.INVALID_GROUP_ID
    assert (none.error_code, none.error_message) == (ErrorCode.GROUP_ID_NOT_FOUND, "Group none not found.")

    left = host.ask(68, ConsumerGroupHeartbeatRequest(group_id="g", member_id="m", member_epoch=-1, instance_id="i"), 1)
    assert (left.error_code, left.member_epoch) == (ErrorCode.NONE, -1)
    gone = host.ask(68, ConsumerGroupHeartbeatRequest(group_id="g", member_id="m", member_epoch=2, instance_id="i"), 1)
    assert (gone.error_code, gone.error_message) == (ErrorCode.UNKNOWN_MEMBER_ID, "Instance id i is unknown.")


def test_the_history_is_given_to_who_names_it(hosting: Hosting) -> None:
    hosting.create_topic("t", 1)
    host = host_of(hosting)
    services: Any = hosting.services
    services.config_resolver = ConfigResolver(config_schema(), 1, {}, {})
    Resource = DescribeConfigsRequest.DescribeConfigsResource
    host.ask(68, joining(), 1)

    def ask(name: str, keys: list[str] | None) -> Any:
        resource = Resource(resource_type=32, resource_name=name, configuration_keys=keys)
        (result,) = host.ask(32, DescribeConfigsRequest(resources=[resource]), 4).results
        return result

    (entry,) = ask("g", ["barnabas.rebalances"]).configs
    assert entry.read_only
    assert '"cause": "member m joined"' in entry.value
    assert "barnabas.rebalances" not in [each.name for each in ask("g", None).configs]
    assert ask("none", ["barnabas.rebalances"]).error_code == ErrorCode.GROUP_ID_NOT_FOUND
