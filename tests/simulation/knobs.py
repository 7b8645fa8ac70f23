"""What a tuner changes through any broker and reads from any broker, one class for each kind of request."""

from __future__ import annotations

import math
import random
from typing import Any, Protocol

from barnabas.metadata.metadata_version import FEATURES
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    ApiVersionsRequest,
    ApiVersionsResponse,
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
    DescribeConfigsRequest,
    DescribeConfigsResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
    MetadataRequest,
    MetadataResponse,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)
from tests.simulation.client import Asks
from tests.simulation.cluster_client import Address, ClusterClient
from tests.simulation.tuning_history import Register, Value

TOPIC, SET, DELETE, OF_TOPIC = 2, 0, 1, 1
"""The type of a topic's configuration, two operations on it, and the source of a value that is set for a topic."""
UPGRADE, SAFE_DOWNGRADE = 1, 2
EXACT = 0
MOST_PARTITIONS = 4
UNSET_RATE = 0.15
"""How often a setting or a quota goes back to its default."""


class Knob(Protocol):
    """One thing that can be changed.

    Attributes:
        initial: its value before the first change.
        done: the errors that say that it has the value already.
    """

    name: str
    initial: Value
    done: frozenset[ErrorCode]

    def draw(self, rng: random.Random, register: Register) -> Value:
        """Return the value to ask for next."""

    async def change(self, client: Asks, value: Value) -> int:
        """Ask any broker for a value, and return the error code."""

    async def look(self, client: ClusterClient, address: Address) -> tuple[int, Value]:
        """Return the error code and the value that one broker names."""


class _Number:
    """A number between two bounds; None is its default."""

    initial: Value = None
    done: frozenset[ErrorCode] = frozenset()

    def __init__(self, what: str, of: str, least: int, most: int) -> None:
        self.name = f"{what} of {of}"
        self._bounds = least, most

    def draw(self, rng: random.Random, register: Register) -> Value:
        return None if rng.random() < UNSET_RATE else rng.randint(*self._bounds)


class TopicSetting(_Number):
    """A setting of a topic."""

    def __init__(self, topic: str, setting: str, least: int, most: int) -> None:
        super().__init__(setting, topic, least, most)
        self._topic, self._setting = topic, setting

    async def change(self, client: Asks, value: Value) -> int:
        config = IncrementalAlterConfigsRequest.AlterableConfig(
            name=self._setting,
            config_operation=DELETE if value is None else SET,
            value=None if value is None else str(value),
        )
        resource = IncrementalAlterConfigsRequest.AlterConfigsResource(
            resource_type=TOPIC, resource_name=self._topic, configs=[config]
        )
        request = IncrementalAlterConfigsRequest(resources=[resource])
        key = ApiKey.INCREMENTAL_ALTER_CONFIGS
        answer = await client.request(key, 1, request, IncrementalAlterConfigsResponse)
        return int(answer.responses[0].error_code)

    async def look(self, client: ClusterClient, address: Address) -> tuple[int, Value]:
        resource = DescribeConfigsRequest.DescribeConfigsResource(
            resource_type=TOPIC, resource_name=self._topic, configuration_keys=[self._setting]
        )
        request = DescribeConfigsRequest(resources=[resource])
        answer = await client.request_at(address, ApiKey.DESCRIBE_CONFIGS, 4, request, DescribeConfigsResponse)
        found = answer.results[0]
        if found.error_code:
            return found.error_code, None
        (config,) = found.configs
        return 0, int(config.value) if config.config_source == OF_TOPIC else None


class PartitionCount:
    """How many partitions a topic has. A count that it has already is refused."""

    initial: Value = 1
    done = frozenset({ErrorCode.INVALID_PARTITIONS})

    def __init__(self, topic: str) -> None:
        self.name = f"partitions of {topic}"
        self._topic = topic

    def draw(self, rng: random.Random, register: Register) -> Value:
        counts = [each.value for each in register.changes if each.ended < math.inf and each.value is not None]
        return min(max(counts) + 1, MOST_PARTITIONS)

    async def change(self, client: Asks, value: Value) -> int:
        assert value is not None
        topic = CreatePartitionsRequest.CreatePartitionsTopic(name=self._topic, count=value, assignments=None)
        request = CreatePartitionsRequest(topics=[topic], timeout_ms=5_000)
        answer = await client.request(ApiKey.CREATE_PARTITIONS, 3, request, CreatePartitionsResponse)
        return int(answer.results[0].error_code)

    async def look(self, client: ClusterClient, address: Address) -> tuple[int, Value]:
        topic = MetadataRequest.MetadataRequestTopic(name=self._topic)
        request = MetadataRequest(topics=[topic], allow_auto_topic_creation=False)
        answer = await client.request_at(address, ApiKey.METADATA, 12, request, MetadataResponse)
        found = answer.topics[0]
        return found.error_code, len(found.partitions)


class ClientQuota(_Number):
    """A limit of a client id."""

    def __init__(self, client_id: str, key: str, least: int, most: int) -> None:
        super().__init__(key, client_id, least, most)
        self._client_id, self._key = client_id, key

    async def change(self, client: Asks, value: Value) -> int:
        made: Any = AlterClientQuotasRequest
        entity = made.EntityData(entity_type="client-id", entity_name=self._client_id)
        change = made.OpData(key=self._key, value=float(value or 0), remove=value is None)
        request = made(entries=[made.EntryData(entity=[entity], ops=[change])])
        answer = await client.request(ApiKey.ALTER_CLIENT_QUOTAS, 1, request, AlterClientQuotasResponse)
        return int(answer.entries[0].error_code)

    async def look(self, client: ClusterClient, address: Address) -> tuple[int, Value]:
        component = DescribeClientQuotasRequest.ComponentData(
            entity_type="client-id", match_type=EXACT, match=self._client_id
        )
        request = DescribeClientQuotasRequest(components=[component], strict=True)
        key = ApiKey.DESCRIBE_CLIENT_QUOTAS
        answer = await client.request_at(address, key, 1, request, DescribeClientQuotasResponse)
        limits = {each.key: int(each.value) for entry in answer.entries or () for each in entry.values}
        return answer.error_code, limits.get(self._key)


class FeatureLevel:
    """The level of a feature that is either on or off. A level that it has already is accepted."""

    # A controller that has just become a voter may not have registered, so that nobody knows what it supports.
    done: frozenset[ErrorCode] = frozenset()

    def __init__(self, feature: str) -> None:
        self.name = feature
        self.initial: Value = FEATURES[feature].default
        self._feature = feature

    def draw(self, rng: random.Random, register: Register) -> Value:
        return rng.randrange(2)

    async def change(self, client: Asks, value: Value) -> int:
        assert value is not None
        update = UpdateFeaturesRequest.FeatureUpdateKey(
            feature=self._feature, max_version_level=value, upgrade_type=UPGRADE if value else SAFE_DOWNGRADE
        )
        request = UpdateFeaturesRequest(timeout_ms=5_000, feature_updates=[update])
        answer = await client.request(ApiKey.UPDATE_FEATURES, 2, request, UpdateFeaturesResponse)
        return int(answer.error_code)

    async def look(self, client: ClusterClient, address: Address) -> tuple[int, Value]:
        request = ApiVersionsRequest(client_software_name="tuner", client_software_version="1")
        answer = await client.request_at(address, ApiKey.API_VERSIONS, 4, request, ApiVersionsResponse)
        levels = {each.name: each.max_version_level for each in answer.finalized_features}
        return answer.error_code, levels.get(self._feature, 0)
