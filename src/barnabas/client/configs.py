"""Settings of topics, brokers, groups and client metrics: describe, change one by one. Shell plane; a part of Admin.

Sources: DescribeConfigs (32), IncrementalAlterConfigs (44); KIP-226, KIP-339, KIP-569, KIP-714, KIP-848.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import IntEnum
from typing import Any, NamedTuple

from barnabas.client.outcome import AdminPart, outcome_of
from barnabas.client.wire import BlockingConnection
from barnabas.protocol import messages
from barnabas.protocol.errors import KafkaError


class ResourceType(IntEnum):
    """What a setting belongs to; values as on the wire."""

    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


class ConfigSource(IntEnum):
    """Where a value comes from, as DescribeConfigs tells."""

    UNKNOWN = 0
    DYNAMIC_TOPIC_CONFIG = 1
    DYNAMIC_BROKER_CONFIG = 2
    DYNAMIC_DEFAULT_BROKER_CONFIG = 3
    STATIC_BROKER_CONFIG = 4
    DEFAULT_CONFIG = 5
    DYNAMIC_BROKER_LOGGER_CONFIG = 6
    DYNAMIC_CLIENT_METRICS_CONFIG = 7
    DYNAMIC_GROUP_CONFIG = 8


class ConfigOperation(IntEnum):
    """How a setting changes."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class ConfigResource(NamedTuple):
    """A topic, broker, … that has settings; the name "" means every broker."""

    type: ResourceType
    name: str


class ConfigChange(NamedTuple):
    """One change of one setting; DELETE needs no value and returns to the default."""

    name: str
    value: str | None = None
    operation: ConfigOperation = ConfigOperation.SET


class ConfigSynonym(NamedTuple):
    """A value that would apply, or is overridden, in order of precedence."""

    name: str
    value: str | None
    source: ConfigSource


class ConfigEntry(NamedTuple):
    """A setting as a broker describes it; ``value`` is None where it is sensitive or unset."""

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
        return self.source == ConfigSource.DEFAULT_CONFIG


_TYPES = ("unknown", "boolean", "string", "int", "short", "long", "double", "list", "class", "password")


class ConfigAdmin(AdminPart):
    """Settings."""

    def describe_configs(
        self,
        resources: Iterable[ConfigResource],
        *,
        names: Sequence[str] | None = None,
        synonyms: bool = False,
        documentation: bool = False,
    ) -> dict[ConfigResource, list[ConfigEntry] | KafkaError]:
        """Each resource's settings by name.

        Args:
            names: only these settings; None for all.
            synonyms: also the values of other places.
            documentation: also a sentence about each.
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

        return self.cluster.ask_each(resources, self._to_described, ask)

    def alter_configs(
        self, changes: Mapping[ConfigResource, Sequence[ConfigChange]], *, validate_only: bool = False
    ) -> dict[ConfigResource, bool | KafkaError]:
        """Changes single settings and leaves the others; True for each resource that was changed."""
        request_class = messages.IncrementalAlterConfigsRequest

        def ask(connection: BlockingConnection, batch: list[ConfigResource]) -> dict[ConfigResource, bool | KafkaError]:
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
                or True
                for each in connection.request(request).responses
            }

        return self.cluster.ask_each(changes, self._to_changed, ask)

    def _to_described(self, resources: list[ConfigResource]) -> dict[ConfigResource, int | KafkaError]:
        return self._route(resources, lambda: next(iter(self.cluster.nodes())))

    def _to_changed(self, resources: list[ConfigResource]) -> dict[ConfigResource, int | KafkaError]:
        return self._route(resources, self.cluster.controller)

    def _route(self, resources: list[ConfigResource], otherwise: Any) -> dict[ConfigResource, int | KafkaError]:
        # Only a broker itself knows its effective settings and its loggers.
        own = (ResourceType.BROKER, ResourceType.BROKER_LOGGER)
        return {
            resource: int(resource.name) if resource.type in own and resource.name.isdigit() else otherwise()
            for resource in resources
        }


def _source(value: int) -> ConfigSource:
    return ConfigSource(value) if 0 <= value <= ConfigSource.DYNAMIC_GROUP_CONFIG else ConfigSource.UNKNOWN


def _entry(config: Any) -> ConfigEntry:
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
