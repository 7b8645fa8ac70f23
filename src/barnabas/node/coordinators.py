"""The coordinators of one node: created with it, elected with the partitions of their topics, closed before the logs.

    __consumer_offsets  ──►  GroupCoordinator
    __transaction_state ──►  TransactionCoordinator
    __share_group_state ──►  ShareCoordinator

A coordinator lives on the partitions of an internal topic. When a commit of the metadata log makes this node the leader of one, the
coordinator is elected for it, once per leader epoch. When another node leads it or the topic is deleted, the coordinator resigns.

- `apply_delta` is called after the `ReplicaManager` has applied the same delta: an elected coordinator reads its partition.
- A coordinator's front imports its code at the first request, so that a start does not pay for it.
- In a cluster `RemoteCoordinators` asks the other brokers what the coordinators of this one need.

Source: Kafka's `BrokerMetadataPublisher`, its calls of the coordinators.
"""

from __future__ import annotations

import asyncio
import random as random_module
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from barnabas.config.config import BrokerConfig
from barnabas.coordinator.coordinator_log import ReplicaCoordinatorLog
from barnabas.coordinator.timer import CoordinatorTimer
from barnabas.group.group_config import GroupConfigs, GroupCoordinatorConfig, assignor_names
from barnabas.group.group_coordinator import GroupCoordinator
from barnabas.metadata.config_entries import ConfigResolver
from barnabas.metadata.delta import MetadataDelta
from barnabas.metadata.image import MetadataImage
from barnabas.protocol.topic_names import GROUP_METADATA, SHARE_GROUP_STATE, TRANSACTION_STATE
from barnabas.replication.replica_manager import ReplicaManager
from barnabas.share.share_coordinator import ShareCoordinator, ShareCoordinatorConfig
from barnabas.transaction.config import TransactionCoordinatorConfig
from barnabas.transaction.marker_writer import LocalMarkerWriter
from barnabas.transaction.producer_id_manager import ProducerIdManager
from barnabas.transaction.transaction_coordinator import TransactionCoordinator

if TYPE_CHECKING:
    from barnabas.group.group_shard import GroupCoordinatorShard
    from barnabas.metadata.topics_image import TopicsDelta
    from barnabas.node.alone import OwnCoordinators
    from barnabas.node.remote_coordinators import RemoteCoordinators
    from barnabas.share.share_coordinator_shard import ShareCoordinatorShard
    from barnabas.transaction.hanging_transactions import HangingTransactions

__all__ = ["Coordinators"]

TRANSACTION_VERSION = "transaction.version"


class Elected(Protocol):
    """A coordinator on an internal topic."""

    def on_elected(self, partition: int, epoch: int) -> None: ...

    def on_resigned(self, partition: int, epoch: int | None = None) -> None: ...

    def close(self) -> None: ...


class Coordinators:
    """All coordinators of a node.

    Args:
        image: returns the metadata as of now.
        resolver: resolves this node's settings.
        producer_ids: the source of producer ids.
        remote: the coordinators' requests to other brokers.

    Attributes:
        group: the groups' coordinator, on `__consumer_offsets`.
        transaction: the transactions' coordinator, on `__transaction_state`.
        share: the share partitions' coordinator, on `__share_group_state`.
        group_configs: the settings of single groups.
    """

    def __init__(
        self,
        config: BrokerConfig,
        replica_manager: ReplicaManager,
        *,
        image: Callable[[], MetadataImage],
        resolver: ConfigResolver,
        loop: asyncio.AbstractEventLoop,
        now_ms: Callable[[], int],
        random: random_module.Random,
        producer_ids: ProducerIdManager,
        remote: OwnCoordinators | RemoteCoordinators,
    ) -> None:
        self._node_id = config.node_id
        self._replicas = replica_manager
        self._loop = loop
        self._hanging: HangingTransactions | None = None
        self._remote = remote
        self._image = image
        self.group_configs = GroupConfigs(resolver, lambda: image().configs)
        group_config = _group_config(config)

        def new_group_shard(partition: int, timer: CoordinatorTimer) -> GroupCoordinatorShard:
            from barnabas.group.group_shard import shard_factory

            new_shard = shard_factory(
                group_config, now_ms=now_ms, rng=random, image=image, group_configs=self.group_configs
            )
            return new_shard(partition, timer)

        self.group = GroupCoordinator(
            group_config,
            ReplicaCoordinatorLog(replica_manager, GROUP_METADATA),
            new_group_shard,
            loop=loop,
            now_ms=now_ms,
            partition_count=lambda: self._partition_count(GROUP_METADATA, config.offsets_topic_num_partitions),
        )
        self.producer_ids = producer_ids
        markers = LocalMarkerWriter(
            replica_manager,
            self.group,
            now_ms=now_ms,
            exists=lambda partition: image().topics.partition(*partition) is not None,
            commit_timeout_ms=config.request_timeout_ms,
        )
        self.transaction = TransactionCoordinator(
            _transaction_config(config),
            ReplicaCoordinatorLog(replica_manager, TRANSACTION_STATE),
            markers,
            producer_ids,
            loop=loop,
            now_ms=now_ms,
            partition_count=lambda: self._partition_count(
                TRANSACTION_STATE, config.transaction_state_log_num_partitions
            ),
            transaction_version=lambda: image().features.level(TRANSACTION_VERSION),
            cluster_writer=remote.marker_writer(markers),
        )
        self.transaction.remote_partitions = remote.transaction_partitions(self.transaction.partition_of)
        self.share = ShareCoordinator(
            _share_config(config),
            ReplicaCoordinatorLog(replica_manager, SHARE_GROUP_STATE),
            loop=loop,
            now_ms=now_ms,
            partition_count=lambda: self._partition_count(
                SHARE_GROUP_STATE, config.share_coordinator_state_topic_num_partitions
            ),
            new_shard=lambda: _new_share_shard(config, now_ms, self._partitions_of),
            delete_records=lambda partition, offset: _delete_records(replica_manager, partition, offset),
        )
        self._by_topic: dict[str, Elected] = {
            GROUP_METADATA: self.group,
            TRANSACTION_STATE: self.transaction,
            SHARE_GROUP_STATE: self.share,
        }
        # The leader epoch of each partition for which a coordinator of this node is elected.
        self._led: dict[str, dict[int, int]] = {topic: {} for topic in self._by_topic}

    def __repr__(self) -> str:
        return f"<Coordinators {', '.join(f'{topic}: {len(led)}' for topic, led in self._led.items())}>"

    def _partition_count(self, topic: str, configured: int) -> int:
        """Return how many partitions an internal topic has, or will have once it is created."""
        found = self._image().topics.by_name.get(topic)
        return len(found.partitions) if found is not None else configured

    def _partitions_of(self, topic_id: bytes) -> int | None:
        topic = self._image().topics.by_id.get(topic_id)
        return None if topic is None else len(topic.partitions)

    def apply_delta(self, delta: MetadataDelta) -> None:
        """Apply a commit of the metadata log, after the replicas."""
        if delta.topics is not None:
            self._apply_topics(delta.topics)
        self._remote.apply_delta(delta)

    def _apply_topics(self, topics: TopicsDelta) -> None:
        deleted = {topic.name: topic.topic_id for topic in topics.deleted.values()}
        for name in deleted.keys() & self._by_topic.keys():
            for partition in list(self._led[name]):
                self._resign(name, partition)
        for changed in topics.changed.values():
            if changed.name in self._by_topic:
                for partition, registration in sorted(changed.partition_changes.items()):
                    if registration.leader == self._node_id:
                        self._lead(changed.name, partition, registration.leader_epoch)
                    else:
                        self._resign(changed.name, partition)
        self.group.on_topics_changed(topics)
        if deleted:
            self.group.on_topics_deleted(deleted)

    def _lead(self, topic: str, partition: int, epoch: int) -> None:
        if self._led[topic].get(partition) != epoch:
            self._led[topic][partition] = epoch
            self._by_topic[topic].on_elected(partition, epoch)

    def _resign(self, topic: str, partition: int) -> None:
        if self._led[topic].pop(partition, None) is not None:
            self._by_topic[topic].on_resigned(partition)

    def end_hanging_transactions(self) -> None:
        """Begin to end the transactions in this broker's logs that no coordinator knows; called again and again."""
        if TRANSACTION_STATE in self._image().topics.by_name:
            self._hanging = self._hanging or self._new_hanging()
            self._hanging.look()

    def _new_hanging(self) -> HangingTransactions:
        # A broker without transactions does not import their code.
        from barnabas.transaction.coordinator_survey import CoordinatorSurvey
        from barnabas.transaction.hanging_transactions import HangingTransactions

        def leaders() -> dict[int, tuple[int, int]]:
            topic = self._image().topics.by_name.get(TRANSACTION_STATE)
            partitions = {} if topic is None else topic.partitions
            return {index: (each.leader, each.leader_epoch) for index, each in partitions.items()}

        send = self._remote.requests("hanging-transactions")
        return HangingTransactions(
            self._replicas,
            CoordinatorSurvey(self._node_id, self.transaction, leaders, send, self._loop),
            self.transaction,
            self.transaction.marker_writer,
            max_timeout_ms=self.transaction.config.transaction_max_timeout_ms,
            loop=self._loop,
            monotonic_ms=self._replicas.monotonic_ms,
        )

    def close(self) -> None:
        """Resign every partition; waiting requests return NOT_COORDINATOR."""
        for coordinator in self._by_topic.values():
            coordinator.close()
        self._remote.close()


def _delete_records(replica_manager: ReplicaManager, index: int, offset: int) -> None:
    partition = replica_manager.partition(SHARE_GROUP_STATE, index)
    partition.check_leader()
    partition.log.delete_records_before(offset)
    replica_manager.log_start_moved(partition)


def _new_share_shard(
    config: BrokerConfig, now_ms: Callable[[], int], partition_count: Callable[[bytes], int | None]
) -> ShareCoordinatorShard:
    from barnabas.share.share_coordinator_shard import ShareCoordinatorShard

    prefix = "share.coordinator"
    return ShareCoordinatorShard(
        now_ms=now_ms,
        partition_count=partition_count,
        updates_per_snapshot=config.int_value(f"{prefix}.snapshot.update.records.per.snapshot"),
        cold_interval_ms=config.int_value(f"{prefix}.cold.partition.snapshot.interval.ms"),
    )


def _share_config(config: BrokerConfig) -> ShareCoordinatorConfig:
    prefix = "share.coordinator"
    return ShareCoordinatorConfig(
        write_timeout_ms=config.int_value(f"{prefix}.write.timeout.ms"),
        state_topic_prune_interval_ms=config.int_value(f"{prefix}.state.topic.prune.interval.ms"),
        cold_partition_snapshot_interval_ms=config.int_value(f"{prefix}.cold.partition.snapshot.interval.ms"),
        state_topic_compression_codec=config.int_value(f"{prefix}.state.topic.compression.codec"),
    )


def _transaction_config(config: BrokerConfig) -> TransactionCoordinatorConfig:
    return TransactionCoordinatorConfig(
        transaction_state_log_num_partitions=config.transaction_state_log_num_partitions,
        transaction_max_timeout_ms=config.transaction_max_timeout_ms,
        transactional_id_expiration_ms=config.transactional_id_expiration_ms,
        abort_timed_out_interval_ms=config.int_value("transaction.abort.timed.out.transaction.cleanup.interval.ms"),
        remove_expired_interval_ms=config.int_value("transaction.remove.expired.transaction.cleanup.interval.ms"),
        two_phase_commit_enable=config.bool_value("transaction.two.phase.commit.enable"),
        request_timeout_ms=config.request_timeout_ms,
        add_partitions_retry_backoff_ms=config.int_value("add.partitions.to.txn.retry.backoff.ms"),
        add_partitions_retry_backoff_max_ms=config.int_value("add.partitions.to.txn.retry.backoff.max.ms"),
    )


def _group_config(config: BrokerConfig) -> GroupCoordinatorConfig:
    return GroupCoordinatorConfig(
        offsets_topic_num_partitions=config.offsets_topic_num_partitions,
        offsets_commit_timeout_ms=config.offsets_commit_timeout_ms,
        offsets_retention_ms=config.offsets_retention_minutes * 60_000,
        offsets_retention_check_interval_ms=config.offsets_retention_check_interval_ms,
        offsets_topic_compression_codec=config.offsets_topic_compression_codec,
        offset_metadata_max_bytes=config.offset_metadata_max_bytes,
        group_min_session_timeout_ms=config.group_min_session_timeout_ms,
        group_max_session_timeout_ms=config.group_max_session_timeout_ms,
        group_initial_rebalance_delay_ms=config.group_initial_rebalance_delay_ms,
        group_max_size=config.group_max_size,
        group_coordinator_rebalance_protocols=config.list_value("group.coordinator.rebalance.protocols"),
        group_consumer_max_size=config.int_value("group.consumer.max.size"),
        group_consumer_assignors=assignor_names(config.list_value("group.consumer.assignors")),
        group_consumer_migration_policy=config.str_value("group.consumer.migration.policy"),
        group_consumer_regex_refresh_interval_ms=config.int_value("group.consumer.regex.refresh.interval.ms"),
        group_share_max_size=config.int_value("group.share.max.size"),
        group_share_initialize_retry_interval_ms=config.int_value("group.share.initialize.retry.interval.ms"),
        group_streams_max_size=config.int_value("group.streams.max.size"),
    )
