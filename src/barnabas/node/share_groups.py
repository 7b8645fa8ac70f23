"""The parts of a node that serve share groups, created at the first member's request.

    coordinator   stores the share partitions' state, in __share_group_state
    persister     the access of `partitions` and `groups` to the coordinator
    partitions    the share partitions whose partitions this node leads
    groups        the share groups that this node coordinates

Their imports are inside functions because they take some 40 ms, which a broker without share groups does not pay. The
`ShareCoordinator` is always there: a front without partitions until the state's topic exists.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING

from barnabas.metadata.config_schema import ConfigResourceType
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.topic_names import SHARE_GROUP_STATE
from barnabas.share.share_coordinator import ShareCoordinator

if TYPE_CHECKING:
    from barnabas.api.serving.context import BrokerServices
    from barnabas.group.group_config import GroupConfigs
    from barnabas.group.share.requests import ShareGroupService
    from barnabas.metadata.delta import MetadataDelta
    from barnabas.metadata.image import MetadataImage
    from barnabas.node.alone import OwnCoordinators
    from barnabas.node.remote_coordinators import RemoteCoordinators
    from barnabas.protocol.messages import CreateTopicsResponse
    from barnabas.share.dead_letters import DeadLetterWriter
    from barnabas.share.persister import StatePersister
    from barnabas.share.share_partition_manager import SharePartitionManager

__all__ = ["ShareServices"]

FEATURE = "share.version"
DEAD_LETTERS_SINCE = 2
"""The level of share.version that brings dead letters."""
_PREFIX = "errors.deadletterqueue"


class _Cluster:
    """The cluster's current settings for dead letters, and the creation of their topics."""

    def __init__(self, services: BrokerServices) -> None:
        self._services = services

    def _value(self, name: str) -> object:
        return self._services.config_resolver.broker_value(self._services.image().configs, f"{_PREFIX}.{name}")

    def allows_dead_letters(self) -> bool:
        return self._services.image().features.level(FEATURE) >= DEAD_LETTERS_SINCE

    def auto_creates(self) -> bool:
        return bool(self._value("auto.create.topics.enable"))

    def prefix(self) -> str:
        return str(self._value("topic.name.prefix") or "")

    def is_enabled_on(self, topic: str) -> bool:
        configs = self._services.image().configs.for_resource(ConfigResourceType.TOPIC, topic)
        return configs.get(f"{_PREFIX}.group.enable", "false").strip().lower() == "true"

    def create(self, topic: str) -> asyncio.Future[CreateTopicsResponse]:
        from barnabas.api.serving.topic_creation import automatic_replication_factor
        from barnabas.protocol.messages import CreateTopicsRequest

        config = self._services.config
        settings = {f"{_PREFIX}.group.enable": "true", "message.timestamp.type": "CreateTime"}
        creatable = CreateTopicsRequest.CreatableTopic(
            name=topic,
            num_partitions=config.num_partitions,
            replication_factor=automatic_replication_factor(self._services, config.default_replication_factor),
            configs=[CreateTopicsRequest.CreatableTopicConfig(name=key, value=text) for key, text in settings.items()],
        )
        request = CreateTopicsRequest(topics=[creatable], timeout_ms=config.request_timeout_ms)
        return self._services.controller.handle(ApiKey.CREATE_TOPICS, CreateTopicsRequest.MAX_VERSION, request)


class ShareServices:
    """The parts, each created on first use.

    Args:
        services: returns the node's services; called when a part is created.
        remote: the requests to other brokers.
    """

    def __init__(
        self,
        coordinator: ShareCoordinator,
        group_configs: GroupConfigs,
        services: Callable[[], BrokerServices],
        remote: OwnCoordinators | RemoteCoordinators,
    ) -> None:
        self.coordinator = coordinator
        self._remote = remote
        self._group_configs = group_configs
        self._services = services
        self._partitions: SharePartitionManager | None = None

    def __repr__(self) -> str:
        return f"<ShareServices partitions={self._partitions!r}>"

    @cached_property
    def persister(self) -> StatePersister:
        """The store of share partitions' states."""
        from barnabas.api.serving.topic_creation import create_internal_topic
        from barnabas.share.persister import StatePersister

        services = self._services()

        async def create_topic() -> None:
            await create_internal_topic(services, SHARE_GROUP_STATE)

        return StatePersister(
            self._remote.share_states(self.coordinator),
            services.loop,
            has_topic=lambda: SHARE_GROUP_STATE in services.image().topics.by_name,
            create_topic=create_topic,
        )

    @property
    def partitions(self) -> SharePartitionManager:
        """The share partitions of this node."""
        if self._partitions is None:
            self._partitions = self._make_partitions()
        return self._partitions

    @property
    def partitions_if_any(self) -> SharePartitionManager | None:
        """The share partitions of this node; None until a member of a share group fetches."""
        return self._partitions

    def _make_partitions(self) -> SharePartitionManager:
        from barnabas.share.sessions import ShareSessionCache
        from barnabas.share.settings import ShareSettings
        from barnabas.share.share_partition_manager import SharePartitionManager

        services = self._services()
        return SharePartitionManager(
            services.replica_manager,
            persister=self.persister,
            settings=ShareSettings(self._group_configs, self._dead_letters(services)),
            sessions=ShareSessionCache(services.config.int_value("group.share.max.share.sessions")),
            loop=services.loop,
            now_ms=services.now_ms,
        )

    def _dead_letters(self, services: BrokerServices) -> DeadLetterWriter:
        from barnabas.share.dead_letters import COMMIT_TIMEOUT_MS, DeadLetterWriter

        return DeadLetterWriter(
            services.replica_manager,
            self._group_configs,
            _Cluster(services),
            loop=services.loop,
            now_ms=services.now_ms,
            remote=self._remote.letters(COMMIT_TIMEOUT_MS),
        )

    @cached_property
    def groups(self) -> ShareGroupService:
        """The share groups that this node coordinates."""
        from barnabas.group.share.requests import ShareGroupService

        services = self._services()
        replicas = services.replica_manager

        async def end_offset(topic: str, index: int) -> int:
            partition = replicas.partition(topic, index)
            partition.check_leader()
            return partition.log.high_watermark

        return ShareGroupService(
            services.group_coordinator,
            self.persister,
            loop=services.loop,
            image=services.image,
            end_offset=self._remote.end_offset(end_offset),
        )

    def apply_delta(self, delta: MetadataDelta, image: MetadataImage) -> None:
        """Apply a commit of the metadata log: forget deleted topics, and everything if share groups are disabled."""
        if delta.topics is not None and delta.topics.deleted:
            topic_ids = delta.topics.deleted.keys()
            if self._partitions is not None:
                self._partitions.topics_deleted(topic_ids)
            self.coordinator.on_topics_deleted(topic_ids)
        if delta.features is not None and image.features.level(FEATURE) < 1:
            self.reset()

    def reset(self) -> None:
        """Drop every session and share partition."""
        self.close()
        self._partitions = None

    def close(self) -> None:
        """Stop every timer of the share partitions."""
        if self._partitions is not None:
            self._partitions.close()
