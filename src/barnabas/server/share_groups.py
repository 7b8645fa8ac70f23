"""What a node needs for share groups, made when the first member comes. Shell.

    coordinator   keeps the share partitions' state, on __share_group_state
    persister     how the two others reach it
    partitions    the share partitions whose partitions this node leads
    groups        the share groups that it coordinates

A broker without share groups imports none of the code; its `ShareCoordinator` is a front without partitions until the state's
topic exists.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any

from barnabas.metadata.config_schema import ConfigResourceType
from barnabas.protocol.api_keys import ApiKey
from barnabas.share.share_coordinator import SHARE_STATE_TOPIC, ShareCoordinator
from barnabas.steps import start

if TYPE_CHECKING:
    from barnabas.api.context import BrokerServices
    from barnabas.group.group_config import GroupConfigs
    from barnabas.group.share.service import ShareGroupService
    from barnabas.metadata.delta import MetadataDelta
    from barnabas.metadata.image import MetadataImage
    from barnabas.server.share_persister import LocalPersister
    from barnabas.share.dead_letters import DeadLetterWriter
    from barnabas.share.share_partition_manager import SharePartitionManager

__all__ = ["ShareServices"]

FEATURE = "share.version"
DEAD_LETTERS_SINCE = 2
"""The level of share.version that brings dead letters."""
_PREFIX = "errors.deadletterqueue"


class _Cluster:
    """What the cluster allows of dead letters, as of now."""

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

    def create(self, topic: str) -> asyncio.Future[Any]:
        from barnabas.protocol.messages import CreateTopicsRequest

        config, live = self._services.config, max(1, len(self._services.image().cluster.live_brokers()))
        settings = {f"{_PREFIX}.group.enable": "true", "message.timestamp.type": "CreateTime"}
        creatable = CreateTopicsRequest.CreatableTopic(
            name=topic,
            num_partitions=config.num_partitions,
            replication_factor=min(config.default_replication_factor, live),
            configs=[CreateTopicsRequest.CreatableTopicConfig(name=key, value=text) for key, text in settings.items()],
        )
        request = CreateTopicsRequest(topics=[creatable], timeout_ms=config.request_timeout_ms)
        return self._services.controller.handle(ApiKey.CREATE_TOPICS, CreateTopicsRequest.MAX_VERSION, request)


class ShareServices:
    """The parts, each made on first use.

    Args:
        services: of the node; asked only when a part is made.
    """

    def __init__(
        self, coordinator: ShareCoordinator, group_configs: GroupConfigs, services: Callable[[], BrokerServices]
    ) -> None:
        self.coordinator = coordinator
        self._group_configs = group_configs
        self._services = services

    def __repr__(self) -> str:
        return f"<ShareServices {sorted(set(vars(self)) & {'persister', 'partitions', 'groups'})}>"

    @cached_property
    def persister(self) -> LocalPersister:
        """Where share partitions' states are kept."""
        from barnabas.api.topic_creation import create_internal_topic
        from barnabas.server.share_persister import LocalPersister

        services = self._services()
        return LocalPersister(
            self.coordinator,
            services.loop,
            has_topic=lambda: SHARE_STATE_TOPIC in services.image().topics.by_name,
            create_topic=lambda: start(create_internal_topic(services, SHARE_STATE_TOPIC), services.loop),
        )

    @cached_property
    def partitions(self) -> SharePartitionManager:
        """The share partitions of this node."""
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
        from barnabas.share.dead_letters import DeadLetterWriter

        return DeadLetterWriter(
            services.replica_manager,
            self._group_configs,
            _Cluster(services),
            loop=services.loop,
            now_ms=services.now_ms,
        )

    @cached_property
    def groups(self) -> ShareGroupService:
        """The share groups that this node coordinates."""
        from barnabas.group.share.service import ShareGroupService

        services = self._services()
        replicas = services.replica_manager

        def end_offset(topic: str, index: int) -> int:
            partition = replicas.partition(topic, index)
            partition.check_leader()
            return partition.log.high_watermark

        return ShareGroupService(
            services.group_coordinator,
            self.persister,
            loop=services.loop,
            image=services.image,
            end_offset=end_offset,
        )

    def apply_delta(self, delta: MetadataDelta, image: MetadataImage) -> None:
        """Take a commit of the metadata log: forget topics that are gone, and everything when share groups are switched off."""
        if delta.topics is not None and delta.topics.deleted:
            topic_ids = delta.topics.deleted.keys()
            if "partitions" in vars(self):
                self.partitions.topics_deleted(topic_ids)
            self.coordinator.on_topics_deleted(topic_ids)
        if delta.features is not None and image.features.level(FEATURE) < 1:
            self.reset()

    def reset(self) -> None:
        """Forget every session and share partition."""
        self.close()
        vars(self).pop("partitions", None)

    def close(self) -> None:
        """Stop every timer of the share partitions."""
        if "partitions" in vars(self):
            self.partitions.close()
