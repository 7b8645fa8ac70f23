"""What a node needs for share groups, made when the first member comes. Shell.

    coordinator   keeps the share partitions' state, on __share_group_state
    persister     how the two others reach it
    partitions    the share partitions whose partitions this node leads
    groups        the share groups that it coordinates

A broker without share groups imports none of the code; its `ShareCoordinator` is a front without partitions until the state's
topic exists.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import cached_property
from typing import TYPE_CHECKING

from barnabas.api.topic_creation import create_internal_topic
from barnabas.coordinator.share_coordinator import SHARE_STATE_TOPIC, ShareCoordinator

if TYPE_CHECKING:
    from barnabas.api.context import BrokerServices
    from barnabas.coordinator.group_config import GroupConfigs
    from barnabas.coordinator.share_group_service import ShareGroupService
    from barnabas.replication.share_partition_manager import SharePartitionManager
    from barnabas.server.share_persister import LocalPersister

__all__ = ["ShareServices"]


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
        from barnabas.server.share_persister import LocalPersister

        services = self._services()
        return LocalPersister(
            self.coordinator,
            services.loop,
            has_topic=lambda: SHARE_STATE_TOPIC in services.image().topics.by_name,
            create_topic=lambda: create_internal_topic(services, SHARE_STATE_TOPIC),
        )

    @cached_property
    def partitions(self) -> SharePartitionManager:
        """The share partitions of this node."""
        from barnabas.replication.share_partition_manager import SharePartitionManager
        from barnabas.replication.share_sessions import ShareSessionCache
        from barnabas.replication.share_settings import ShareSettings

        services = self._services()
        return SharePartitionManager(
            services.replica_manager,
            persister=self.persister,
            settings=ShareSettings(self._group_configs),
            sessions=ShareSessionCache(services.config.int_value("group.share.max.share.sessions")),
            loop=services.loop,
            now_ms=services.now_ms,
        )

    @cached_property
    def groups(self) -> ShareGroupService:
        """The share groups that this node coordinates."""
        from barnabas.coordinator.share_group_service import ShareGroupService

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

    def topics_deleted(self, topic_ids: Collection[bytes]) -> None:
        """Forget the share partitions of topics that are gone."""
        if "partitions" in vars(self):
            self.partitions.topics_deleted(topic_ids)
        self.coordinator.on_topics_deleted(topic_ids)

    def close(self) -> None:
        """Stop every timer of the share partitions."""
        if "partitions" in vars(self):
            self.partitions.close()
