"""Dynamic configurations by resource.

A resource is a pair of type and name; the cluster-wide default of brokers is the broker resource with an empty name.

Sources: Kafka's `ConfigurationsImage`, ConfigRecord; KIP-226.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from barnabas.metadata.config_schema import ConfigResourceType
from barnabas.metadata.nothing import NOTHING
from barnabas.protocol import messages

ConfigResource = tuple[int, str]


class ConfigurationsImage(NamedTuple):
    """Values by resource, then by setting; resources without a value are absent."""

    by_resource: Mapping[ConfigResource, Mapping[str, str]] = NOTHING

    def for_resource(self, resource_type: int, name: str) -> Mapping[str, str]:
        return self.by_resource.get((int(resource_type), name), NOTHING)

    def names_of(self, resource_type: int) -> list[str]:
        """Return the resources of a type that have a value, in name order."""
        return sorted(name for kind, name in self.by_resource if kind == resource_type)

    def records(self) -> Iterator[messages.ConfigRecord]:
        for kind, name in sorted(self.by_resource):
            for key, value in sorted(self.by_resource[kind, name].items()):
                yield messages.ConfigRecord(resource_type=kind, resource_name=name, name=key, value=value)


class ConfigurationsDelta:
    """The changes of records since `image`; `changed` maps a resource to its settings, None meaning removed."""

    def __init__(self, image: ConfigurationsImage) -> None:
        self.image = image
        self.changed: dict[ConfigResource, dict[str, str | None]] = {}

    def replay(self, record: messages.ConfigRecord) -> None:
        resource = (record.resource_type, record.resource_name)
        self.changed.setdefault(resource, {})[record.name] = record.value

    def replay_remove_topic(self, record: messages.RemoveTopicRecord, topic: str) -> None:
        """Remove a topic's settings with the topic."""
        resource = (int(ConfigResourceType.TOPIC), topic)
        gone: dict[str, str | None] = dict.fromkeys(self.image.for_resource(*resource))
        gone.update(dict.fromkeys(self.changed.get(resource, {})))
        if gone:
            self.changed[resource] = gone

    def apply(self) -> ConfigurationsImage:
        data = dict(self.image.by_resource)
        for resource, changes in self.changed.items():
            merged = {**data.get(resource, NOTHING), **changes}
            kept = {name: value for name, value in merged.items() if value is not None}
            if kept:
                data[resource] = kept
            else:
                data.pop(resource, None)
        return ConfigurationsImage(data)
