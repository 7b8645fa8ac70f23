"""A node's part of the metadata quorum: the raft driver over its log, the loader that every node has, and the controller.

    driver ──► loader ──► publishers: the snapshots, the broker
                     └──► controller, active if this node leads

Source: Kafka's `SharedServer`, which holds what broker and controller of one process share.
"""

from __future__ import annotations

import asyncio
import random as random_module
from collections.abc import Callable

from barnabas.clock import Clock
from barnabas.log.disk import Disk
from barnabas.log.meta_properties import MetaProperties
from barnabas.metadata.config_entries import ConfigResolver
from barnabas.metadata.controller_view import ControllerSettings
from barnabas.metadata.local_controller import LocalController
from barnabas.metadata.metadata_loader import MetadataLoader
from barnabas.metadata.snapshot_generator import SnapshotGenerator
from barnabas.metadata.snapshots import SnapshotPolicy
from barnabas.raft.raft_driver import RaftDriver
from barnabas.server.config import BrokerConfig
from barnabas.server.metadata_log import MetadataLog, open_quorum
from barnabas.server.storage import read_bootstrap


class MetadataQuorum:
    """Driver, loader and controller of one node.

    Args:
        run_blocking: runs a blocking call in the executor and returns its future.
        on_fault: called with the error when the node must stop.

    Raises:
        KafkaStorageError, KafkaError, BadElectionState, OSError: the metadata log cannot be opened.
    """

    def __init__(
        self,
        config: BrokerConfig,
        meta: MetaProperties,
        resolver: ConfigResolver,
        *,
        disk: Disk,
        loop: asyncio.AbstractEventLoop,
        clock: Clock,
        random: random_module.Random,
        run_blocking: Callable[[Callable[[], None]], asyncio.Future[None]],
        on_fault: Callable[[BaseException], None],
    ) -> None:
        root = config.log_dirs[0]
        bootstrap = read_bootstrap(disk, root)
        self.driver: RaftDriver = open_quorum(
            disk, root, meta, config, clock=clock, run_blocking=run_blocking, on_fault=on_fault
        )
        node = self.driver.node
        self.loader = MetadataLoader(
            self.driver.log,
            quorum_high_watermark=lambda: node.high_watermark,
            kraft_version=node.kraft_version,
            loop=loop,
        )
        self._snapshots = SnapshotGenerator(
            self.driver.log,
            node.history,
            SnapshotPolicy(
                config.metadata_log_max_record_bytes_between_snapshots, config.metadata_log_max_snapshot_interval_ms
            ),
            clock,
            lambda: self.loader.loaded_bytes,
            loop,
        )
        self.loader.add_publisher(self._snapshots.publish)
        self.controller = LocalController(
            _controller_settings(config, meta.cluster_id),
            resolver,
            self.driver,
            self.loader,
            create_future=loop.create_future,
            clock=clock,
            random=random,
            on_fault=on_fault,
            loop=loop,
            bootstrap=bootstrap,
        )

    def __repr__(self) -> str:
        return f"<MetadataQuorum {self.driver.node!r} {self.loader!r}>"

    def start(self) -> None:
        """Begin with the election; the metadata is read as far as it is committed."""
        self.driver.start()

    def stop(self) -> None:
        """Answer what waits for the controller; nothing is appended, committed or published after this."""
        self.controller.close()
        self.loader.close()
        self._snapshots.close()

    def close(self, *, clean: bool) -> None:
        """Close the log."""
        assert isinstance(self.driver.log, MetadataLog), self.driver.log
        self.driver.log.close(clean=clean)


def _controller_settings(config: BrokerConfig, cluster_id: str) -> ControllerSettings:
    return ControllerSettings(
        node_id=config.node_id,
        cluster_id=cluster_id,
        num_partitions=config.num_partitions,
        default_replication_factor=config.default_replication_factor,
        delete_topic_enable=config.delete_topic_enable,
        broker_session_timeout_ms=config.broker_session_timeout_ms,
        auto_leader_rebalance_enable=config.bool_value("auto.leader.rebalance.enable"),
        leader_imbalance_check_interval_ms=config.int_value("leader.imbalance.check.interval.seconds") * 1000,
        unclean_leader_election_interval_ms=config.int_value("unclean.leader.election.interval.ms"),
    )
