"""Settings of topics, brokers, groups and client metrics: describe, change one by one.

Sources: DescribeConfigs (32), IncrementalAlterConfigs (44), ListConfigResources (74); KIP-226, KIP-339, KIP-569, KIP-714, KIP-848,
KIP-1142.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import IntEnum
from typing import NamedTuple

from barnabas.client.cluster import Cluster
from barnabas.client.outcome import outcome_of
from barnabas.client.wire import BlockingConnection
from barnabas.protocol import messages
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.errors import ErrorCode, KafkaError, error_for


class ResourceType(IntEnum):
    """The owner of a setting; values as on the wire."""

    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


class ConfigSource(IntEnum):
    """Where a value comes from; values as on the wire."""

    UNKNOWN = 0
    DYNAMIC_TOPIC_CONFIG = 1
    DYNAMIC_BROKER_CONFIG = 2
    DYNAMIC_DEFAULT_BROKER_CONFIG = 3
    STATIC_BROKER_CONFIG = 4
    DEFAULT_CONFIG = 5
    DYNAMIC_BROKER_LOGGER_CONFIG = 6
    DYNAMIC_CLIENT_METRICS_CONFIG = 7
    DYNAMIC_GROUP_CONFIG = 8


OWN_SOURCES = {
    ResourceType.TOPIC: ConfigSource.DYNAMIC_TOPIC_CONFIG,
    ResourceType.BROKER: ConfigSource.DYNAMIC_BROKER_CONFIG,
    ResourceType.CLIENT_METRICS: ConfigSource.DYNAMIC_CLIENT_METRICS_CONFIG,
    ResourceType.GROUP: ConfigSource.DYNAMIC_GROUP_CONFIG,
}
"""The source of a value that was set for the resource itself; loggers, which have no settings, are left out."""


class ConfigOperation(IntEnum):
    """How a setting changes."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class ConfigResource(NamedTuple):
    """A topic, broker, … that has settings; type BROKER with the name "" means every broker."""

    type: ResourceType
    name: str


class ConfigChange(NamedTuple):
    """One change of one setting; DELETE needs no value and returns to the default."""

    name: str
    value: str | None = None
    operation: ConfigOperation = ConfigOperation.SET


class ConfigSynonym(NamedTuple):
    """One value that a setting has somewhere; a broker lists them by precedence."""

    name: str
    value: str | None
    source: ConfigSource


class ConfigEntry(NamedTuple):
    """A setting as a broker describes it; `value` is None if it is sensitive or not set."""

    name: str
    value: str | None
    source: ConfigSource
    read_only: bool
    sensitive: bool
    type: str
    synonyms: list[ConfigSynonym]
    documentation: str | None

    @property
    def is_default(self) -> bool:
        """Whether it is not set, so that the program's own value holds."""
        return self.source == ConfigSource.DEFAULT_CONFIG


_TYPES = ("unknown", "boolean", "string", "int", "short", "long", "double", "list", "class", "password")


def describe_configs(
    cluster: Cluster,
    resources: Iterable[ConfigResource],
    *,
    names: Sequence[str] | None = None,
    synonyms: bool = False,
    documentation: bool = False,
) -> dict[ConfigResource, list[ConfigEntry] | KafkaError]:
    """Return each resource's settings, sorted by name.

    Args:
        names: only these settings; None for all.
        synonyms: also return the values that are overridden.
        documentation: also return a sentence about each setting.
    """
    request_class = messages.DescribeConfigsRequest

    def ask(
        connection: BlockingConnection, batch: list[ConfigResource]
    ) -> dict[ConfigResource, list[ConfigEntry] | KafkaError]:
        request = request_class(
            resources=[
                request_class.DescribeConfigsResource(
                    resource_type=resource.type,
                    resource_name=resource.name,
                    configuration_keys=None if names is None else list(names),
                )
                for resource in batch
            ],
            include_synonyms=synonyms,
            include_documentation=documentation,
        )
        return {
            ConfigResource(ResourceType(each.resource_type), each.resource_name): outcome_of(
                each.error_code, each.error_message
            )
            or sorted(map(_entry, each.configs))
            for each in connection.request(request).results
        }

    return cluster.ask_each(resources, _route(cluster, cluster.to_any), ask)


def list_config_resources(cluster: Cluster, kind: ResourceType) -> list[str]:
    """Return the names of the resources of a type that have settings, sorted.

    Raises:
        KafkaError: UNSUPPORTED_VERSION before Kafka 4.1, but for client metrics.
    """
    # Version 0 lists the client metrics alone.
    version = 0 if kind == ResourceType.CLIENT_METRICS else 1
    request = messages.ListConfigResourcesRequest(resource_types=[kind] if version else [])

    def ask() -> list[str]:
        connection = cluster.any_connection()
        if not connection.supports(ApiKey.LIST_CONFIG_RESOURCES, version):
            raise error_for(ErrorCode.UNSUPPORTED_VERSION, "the broker is too old to list them")
        response = connection.request(request, version=version)
        if response.error_code:
            raise error_for(response.error_code, None)
        return sorted(each.resource_name for each in response.config_resources if each.resource_type == kind)

    return cluster.retry(ask)


def alter_configs(
    cluster: Cluster, changes: Mapping[ConfigResource, Sequence[ConfigChange]], *, validate_only: bool = False
) -> dict[ConfigResource, KafkaError | None]:
    """Change single settings and leave the others; None for each changed resource."""
    request_class = messages.IncrementalAlterConfigsRequest

    def ask(connection: BlockingConnection, batch: list[ConfigResource]) -> dict[ConfigResource, KafkaError | None]:
        request = request_class(
            resources=[
                request_class.AlterConfigsResource(
                    resource_type=resource.type,
                    resource_name=resource.name,
                    configs=[
                        request_class.AlterableConfig(
                            name=change.name, config_operation=change.operation, value=change.value
                        )
                        for change in changes[resource]
                    ],
                )
                for resource in batch
            ],
            validate_only=validate_only,
        )
        return {
            ConfigResource(ResourceType(each.resource_type), each.resource_name): outcome_of(
                each.error_code, each.error_message
            )
            for each in connection.request(request).responses
        }

    return cluster.ask_each(changes, _route(cluster, cluster.to_controller), ask)


def _route(
    cluster: Cluster, otherwise: Callable[[list[ConfigResource]], dict[ConfigResource, int | KafkaError]]
) -> Callable[[list[ConfigResource]], dict[ConfigResource, int | KafkaError]]:
    """Route a broker's settings to itself: only it knows its effective settings and its loggers."""
    own = (ResourceType.BROKER, ResourceType.BROKER_LOGGER)

    def route(resources: list[ConfigResource]) -> dict[ConfigResource, int | KafkaError]:
        named = {each: int(each.name) for each in resources if each.type in own and each.name.isdecimal()}
        others = [each for each in resources if each not in named]
        return {**named, **(otherwise(others) if others else {})}

    return route


def _source(value: int) -> ConfigSource:
    return ConfigSource(value) if 0 <= value <= ConfigSource.DYNAMIC_GROUP_CONFIG else ConfigSource.UNKNOWN


def _entry(config: messages.DescribeConfigsResponse.DescribeConfigsResourceResult) -> ConfigEntry:
    return ConfigEntry(
        config.name,
        config.value,
        _source(config.config_source),
        config.read_only,
        config.is_sensitive,
        _TYPES[config.config_type] if 0 <= config.config_type < len(_TYPES) else _TYPES[0],
        [ConfigSynonym(each.name, each.value, _source(each.source)) for each in config.synonyms],
        config.documentation or None,
    )
