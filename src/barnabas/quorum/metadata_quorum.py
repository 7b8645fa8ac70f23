"""A node's part of the metadata quorum: the raft driver over its log, the loader that every node has, and the controller.

    driver ──► loader ──► publishers: the snapshots, the broker
                     └──► controller, active if this node leads; only on a node that may vote

- The voters are those of the log, or of the directory's formatting. Where neither names any, the configuration does: the voters of
  `controller.quorum.voters`, or this node, if it is alone.
- Every other node is an observer: it follows the log of the leader, and finds it by asking voters and bootstrap servers.
- A sole voter without observers needs neither peers nor loop, and elects itself before `start` returns.

Source: Kafka's `SharedServer`, which holds what broker and controller of one process share; `KafkaRaftManager`.
"""

from __future__ import annotations

import asyncio
import random as random_module
from collections.abc import Callable
from typing import TYPE_CHECKING, cast

from barnabas.clock import Clock
from barnabas.config.config import BrokerConfig
from barnabas.config.token_settings import token_settings
from barnabas.log.disk import Disk
from barnabas.log.log_config import LogConfig
from barnabas.log.meta_properties import MetaProperties
from barnabas.metadata.bootstrap import read_bootstrap
from barnabas.metadata.config_entries import ConfigResolver
from barnabas.metadata.controller_view import ControllerSettings
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.local_controller import LocalController
from barnabas.metadata.metadata_loader import MetadataLoader
from barnabas.metadata.snapshot_generator import SnapshotGenerator
from barnabas.metadata.snapshots import SnapshotPolicy
from barnabas.metadata.voter_requests import VoterRequests
from barnabas.protocol.primitives import ZERO_UUID, uuid_from_str
from barnabas.quorum.metadata_log import (
    MetadataLog,
    QuorumStateFile,
    controller_endpoints,
    controller_listener_name,
)
from barnabas.quorum.voter_upkeep import VoterUpkeep
from barnabas.raft.election_state import NO_NODE, ElectionState
from barnabas.raft.peer_messages import bootstrap_ids
from barnabas.raft.quorum_state import QuorumTimeouts
from barnabas.raft.raft_driver import RaftDriver
from barnabas.raft.raft_node import RaftNode
from barnabas.raft.replica_key import ReplicaKey
from barnabas.raft.voter_changes import VoterChanges
from barnabas.raft.voters import Voter, VoterEndpoint, VoterSet

if TYPE_CHECKING:
    from barnabas.client.channel import ChannelTraffic
    from barnabas.net.renewed_stores import RenewedStores
    from barnabas.quorum.quorum_peers import ChannelPeers


class MetadataQuorum:
    """Driver, loader and controller of one node.

    Args:
        run_blocking: runs a blocking call in the executor and returns its future.
        on_fault: called with the error when the node must stop.
        stores: of the listeners and connections of this node; None: its stores are not renewed.

    Attributes:
        local_controller: None on a node that may not vote.

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
        stores: RenewedStores | None = None,
    ) -> None:
        root = config.metadata_dir
        self._listener_name = controller_listener_name(config)
        self._changes: VoterChanges | None = None
        self._upkeep: VoterUpkeep | None = None
        self.driver: RaftDriver = open_quorum(
            disk,
            root,
            meta,
            config,
            clock=clock,
            run_blocking=run_blocking,
            on_fault=on_fault,
            loop=loop,
            stores=stores,
        )
        node = self.driver.node
        self.loader = MetadataLoader(
            self.driver.log,
            quorum_high_watermark=lambda: node.quorum_high_watermark,
            kraft_version=lambda: node.kraft_version,
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
        self.local_controller: LocalController | None = None
        if config.is_controller:
            self._changes, self._upkeep = self._make_voters(config, meta.cluster_id, loop)
            self.local_controller = LocalController(
                _controller_settings(config, meta.cluster_id),
                resolver,
                self.driver,
                self.loader,
                create_future=loop.create_future,
                clock=clock,
                random=random,
                on_fault=on_fault,
                loop=loop,
                bootstrap=read_bootstrap(disk, root),
            )
            self.local_controller.voters = VoterRequests(self._changes, meta.cluster_id)
        else:
            self.loader.listener = _NoController(self.driver, on_fault)
            self.driver.add_listener(self.loader)

    def __repr__(self) -> str:
        return f"<MetadataQuorum {self.driver.node!r} {self.loader!r}>"

    def _make_voters(
        self, config: BrokerConfig, cluster_id: str, loop: asyncio.AbstractEventLoop
    ) -> tuple[VoterChanges | None, VoterUpkeep | None]:
        """Return what changes the voters while this node leads, and what keeps its own entry; None where no other node reaches it."""
        node, peers = self.driver.node, self.driver.peers
        if peers is None:
            return None, None
        peers = cast("ChannelPeers", peers)
        timeouts = node.quorum.timeouts
        changes = VoterChanges(
            self.driver,
            loop,
            listener_name=self._listener_name,
            versions_of=peers.versions_of,
            timeout_ms=timeouts.request,
        )
        if node.own_voter is None:
            return changes, None
        joins = config.bool_value("controller.quorum.auto.join.enable")
        upkeep = VoterUpkeep(
            node, node.own_voter, cluster_id, peers.tell_leader, loop, period_ms=timeouts.fetch, joins=joins
        )
        return changes, upkeep

    @property
    def traffic(self) -> ChannelTraffic | None:
        """The traffic to the other nodes of the quorum; None if there is no other to ask."""
        peers = self.driver.peers
        return None if peers is None else cast("ChannelPeers", peers).traffic

    @property
    def controller(self) -> LocalController:
        """The controller of a node that may vote."""
        assert self.local_controller is not None, "this node has no controller"
        return self.local_controller

    @property
    def is_leader(self) -> bool:
        """Whether this node leads the quorum."""
        return self.driver.node.is_leader

    def leader_endpoint(self) -> VoterEndpoint | None:
        """Return where the leader of the quorum serves it; None if this node knows no leader, or not its address."""
        leader_id = self.driver.node.leader_id
        return None if leader_id == NO_NODE else self.driver.endpoint_of(leader_id, self._listener_name)

    def start(self) -> None:
        """Begin with the election; the metadata is read as far as it is committed.

        Raises:
            QuorumNotSupported: the voter set names another directory for this node.
        """
        self.driver.start()
        if self._upkeep is not None:
            self._upkeep.start()

    def stop(self) -> None:
        """Answer what waits for the controller; nothing is appended, committed or published after this."""
        if self._upkeep is not None:
            self._upkeep.close()
        if self.local_controller is not None:
            self.local_controller.close()
        self.driver.close()
        self.loader.close()
        self._snapshots.close()

    def close(self, *, clean: bool) -> None:
        """Close the log."""
        assert isinstance(self.driver.log, MetadataLog), self.driver.log
        self.driver.log.close(clean=clean)


class _NoController:
    """The loader's listener on a node that may not vote."""

    def __init__(self, driver: RaftDriver, on_fault: Callable[[BaseException], None]) -> None:
        self._driver = driver
        self._on_fault = on_fault

    def __repr__(self) -> str:
        return "<_NoController>"

    def on_commit(self, image: MetadataImage) -> None:
        """Publishers know it already."""

    def on_loader_failed(self, error: Exception) -> None:
        self._driver.close()
        self._on_fault(error)


def open_quorum(
    disk: Disk,
    root: str,
    meta: MetaProperties,
    config: BrokerConfig,
    *,
    clock: Clock,
    run_blocking: Callable[[Callable[[], None]], asyncio.Future[None]] | None = None,
    on_fault: Callable[[BaseException], None] | None = None,
    loop: asyncio.AbstractEventLoop | None = None,
    stores: RenewedStores | None = None,
) -> RaftDriver:
    """Open the metadata log and make this node's raft driver over it; the driver's `start` runs the election.

    Args:
        loop: None for a sole voter without observers.
        stores: of the listeners and connections of this node; None: its stores are not renewed.

    Raises:
        KafkaStorageError, BadElectionState: the directory cannot be read.
    """
    metadata_log = _open_log(disk, root, config, clock, run_blocking, on_fault)
    store = QuorumStateFile(disk, metadata_log.directory, durable=config.barnabas_metadata_flush)
    directory_id = uuid_from_str(meta.directory_id) if meta.directory_id else ZERO_UUID
    node = RaftNode(
        ReplicaKey(meta.node_id, directory_id),
        metadata_log.voters(_configured_voters(config, meta.node_id)),
        store.read() or ElectionState(),
        metadata_log,
        clock,
        # Election timeouts only have to differ from voter to voter.
        random_module.Random(meta.node_id),
        QuorumTimeouts(
            election=config.int_value("controller.quorum.election.timeout.ms"),
            fetch=config.int_value("controller.quorum.fetch.timeout.ms"),
            request=config.int_value("controller.quorum.request.timeout.ms"),
            retry_backoff=config.int_value("controller.quorum.retry.backoff.ms"),
        ),
        bootstrap_ids(len(config.quorum_bootstrap_servers)),
    )
    is_sole_voter = node.voters.ids() == (meta.node_id,)
    endpoints = controller_endpoints(config)
    # A port that the system chooses is not known yet, and a node alone without a listener has no address in the quorum.
    if config.is_controller and config.controller_listeners and meta.directory_id and all(e.port for e in endpoints):
        node.own_voter = Voter(meta.node_id, directory_id, endpoints)
    if loop is None or (is_sole_voter and not config.controller_listeners):
        return RaftDriver(node, metadata_log, store)
    # Connections to other nodes, for which the start of a node alone does not pay; a sole voter with a listener can be joined.
    from barnabas.quorum.quorum_peers import peers_of

    peers = peers_of(config, meta.cluster_id, node, loop, stores)
    return RaftDriver(node, metadata_log, store, peers, loop, on_fault)


def _open_log(
    disk: Disk,
    root: str,
    config: BrokerConfig,
    clock: Clock,
    run_blocking: Callable[[Callable[[], None]], asyncio.Future[None]] | None,
    on_fault: Callable[[BaseException], None] | None,
) -> MetadataLog:
    internal = config.value("internal.metadata.log.segment.bytes")
    return MetadataLog(
        disk,
        root,
        LogConfig(
            segment_bytes=internal if isinstance(internal, int) else config.metadata_log_segment_bytes,
            segment_ms=config.metadata_log_segment_ms,
            retention_ms=-1,
            retention_bytes=-1,
            file_delete_delay_ms=0,
        ),
        now_ms=clock.wall_ms,
        durable=config.barnabas_metadata_flush,
        retention_bytes=config.metadata_max_retention_bytes,
        retention_ms=config.metadata_max_retention_ms,
        run_blocking=run_blocking,
        on_fault=on_fault,
    )


def _configured_voters(config: BrokerConfig, node_id: int) -> VoterSet:
    """Return the voters where neither the log nor the formatting of its directory names any."""
    if config.quorum_voters:
        return VoterSet.of(config.quorum_voters)
    # A directory that was formatted for a static quorum, or emptied: a node alone is the only voter.
    return VoterSet.of([Voter(node_id, ZERO_UUID, controller_endpoints(config))] if config.is_alone else [])


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
        max_idle_interval_ms=config.int_value("metadata.max.idle.interval.ms"),
        tokens=token_settings(config),
        unclean_recovery_strategy=str(config.value("unclean.recovery.strategy")),
        unclean_recovery_timeout_ms=config.int_value("unclean.recovery.timeout.ms"),
    )
