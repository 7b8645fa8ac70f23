"""Settings: described in every version, altered one by one."""

from typing import Any

import pytest

from barnabas.client.admin import Admin, ConfigChange, ConfigResource, ConfigSource, ResourceType, result
from barnabas.client.configs import ConfigOperation
from barnabas.protocol import messages
from barnabas.protocol.errors import KafkaError
from tests.client.scripted_broker import MemoryCluster
from tests.client.versions import every_version, only


@pytest.mark.parametrize("version", every_version(messages.DescribeConfigsRequest))
def test_describe_configs(memory: MemoryCluster, admin: Admin, version: int) -> None:
    only(memory, messages.DescribeConfigsRequest, version)
    response = messages.DescribeConfigsResponse

    def describe(broker_id: int, request: Any, version: int) -> Any:
        return response(
            results=[
                response.DescribeConfigsResult(
                    resource_type=each.resource_type,
                    resource_name=each.resource_name,
                    configs=[
                        response.DescribeConfigsResourceResult(name="b", value=str(broker_id), config_source=5),
                        response.DescribeConfigsResourceResult(
                            name="a", value=None, config_source=77, is_sensitive=True, config_type=3
                        ),
                    ],
                )
                for each in request.resources
            ]
        )

    memory.handlers["DescribeConfigsRequest"] = describe
    topic, broker = ConfigResource(ResourceType.TOPIC, "t"), ConfigResource(ResourceType.BROKER, "2")
    found = admin.describe_configs([topic, broker], synonyms=True)
    first, second = result(found[broker])
    assert (first.name, first.value, first.source, first.sensitive) == ("a", None, ConfigSource.UNKNOWN, True)
    assert (second.name, second.value, second.is_default) == ("b", "2", True)
    assert first.type == ("int" if version >= 3 else "unknown")
    assert result(found[topic])[1].value == "1"


def test_alter_configs(memory: MemoryCluster, admin: Admin) -> None:
    response = messages.IncrementalAlterConfigsResponse

    def alter(broker_id: int, request: Any, version: int) -> Any:
        return response(
            responses=[
                response.AlterConfigsResourceResponse(
                    resource_type=each.resource_type,
                    resource_name=each.resource_name,
                    error_code=0 if each.resource_name == "t" else 40,
                    error_message="no such setting",
                )
                for each in request.resources
            ]
        )

    memory.handlers["IncrementalAlterConfigsRequest"] = alter
    good, bad = ConfigResource(ResourceType.TOPIC, "t"), ConfigResource(ResourceType.TOPIC, "u")
    outcome = admin.alter_configs(
        {
            good: [ConfigChange("a", "1"), ConfigChange("b", operation=ConfigOperation.DELETE)],
            bad: [ConfigChange("x", "")],
        },
        validate_only=True,
    )
    assert outcome[good] is None
    assert str(outcome[bad]) == "INVALID_CONFIG: no such setting"
    (request,) = memory.asked("IncrementalAlterConfigsRequest")
    assert request.validate_only
    assert [(config.name, config.config_operation, config.value) for config in request.resources[0].configs] == [
        ("a", 0, "1"),
        ("b", 1, None),
    ]


def test_what_has_settings_of_a_type(memory: MemoryCluster, admin: Admin) -> None:
    response = messages.ListConfigResourcesResponse

    def listed(broker_id: int, request: Any, version: int) -> Any:
        kinds = request.resource_types if version else [ResourceType.CLIENT_METRICS]
        names = [response.ConfigResource(resource_name=name, resource_type=kind) for kind in kinds for name in "ba"]
        return response(config_resources=names)

    memory.handlers["ListConfigResourcesRequest"] = listed
    assert admin.list_config_resources(ResourceType.CLIENT_METRICS) == ["a", "b"]
    assert admin.list_config_resources(ResourceType.GROUP) == ["a", "b"]


def test_an_older_broker_lists_client_metrics_alone(memory: MemoryCluster, admin: Admin) -> None:
    response = messages.ListConfigResourcesResponse
    only(memory, messages.ListConfigResourcesRequest, 0)
    memory.handlers["ListConfigResourcesRequest"] = lambda *_: response(
        config_resources=[response.ConfigResource(resource_name="a")]
    )
    assert admin.list_config_resources(ResourceType.CLIENT_METRICS) == ["a"]
    with pytest.raises(KafkaError, match="too old to list them"):
        admin.list_config_resources(ResourceType.GROUP)
