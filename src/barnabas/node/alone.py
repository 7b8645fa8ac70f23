"""What a node does only alone: it has no others, and none can join it.

- It recovers its logs first and joins the quorum, whose only voter it is, afterwards.
- Its own controller answers without a delay, or never. So the node asks once: if it cannot register or be unfenced, its start fails.
- It imports no connections to other nodes, for which its start does not pay.

`node/member` has the same methods for a member of a cluster; `node/membership` chooses.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from barnabas.node.directory_assignments import DirectoryAssignments, Placement

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine

    from barnabas.api.serving.context import Controller
    from barnabas.config.config import BrokerConfig
    from barnabas.config.timers import Timers
    from barnabas.metadata.delta import MetadataDelta
    from barnabas.metadata.image import MetadataImage
    from barnabas.net.connections import Connections
    from barnabas.node.inter_broker import InterBrokerChannels
    from barnabas.quorum.metadata_quorum import MetadataQuorum
    from barnabas.replication.replica_manager import ReplicaManager
    from barnabas.share.persister import ShareStates
    from barnabas.transaction.marker_writer import LocalMarkerWriter

__all__ = ["Alone", "OwnCoordinators"]


class OwnCoordinators:
    """The coordinators of a node alone, each the only one: what `RemoteCoordinators` is in a cluster."""

    def __repr__(self) -> str:
        return "<OwnCoordinators>"

    def marker_writer(self, local: LocalMarkerWriter) -> LocalMarkerWriter:
        return local

    def transaction_partitions(self, partition_of: Callable[[str], int]) -> None:
        """Return nothing: no other broker has a transaction coordinator."""

    def share_states(self, local: ShareStates) -> ShareStates:
        return local

    def letters(self, commit_timeout_ms: int) -> None:
        """Return nothing: no other broker leads a partition for dead letters."""

    def requests(self, purpose: str) -> None:
        """Return nothing: no other broker has to be asked."""

    def end_offset(
        self, local: Callable[[str, int], Coroutine[Any, Any, int]]
    ) -> Callable[[str, int], Coroutine[Any, Any, int]]:
        return local

    def apply_delta(self, delta: MetadataDelta) -> None:
        """Ignore moved leaders: nothing waits for another broker."""

    def close(self) -> None:
        """Release nothing."""


class Alone:
    """A node without others.

    Attributes:
        retries: whether a broker asks its controller again after a failure.
        registration_patience_ms: for how long it asks to be registered.
        tick_ms: how often the controller looks after its sessions.
    """

    retries = False
    registration_patience_ms = 0

    def __init__(self, config: BrokerConfig) -> None:
        self.tick_ms = config.broker_heartbeat_interval_ms
        self._assignments: DirectoryAssignments | None = None

    def __repr__(self) -> str:
        return "<Alone>"

    # The node

    async def open(self, join_quorum: Callable[[], None], recover: Callable[[], Awaitable[None]]) -> None:
        """Recover the logs, then join the quorum."""
        await recover()
        join_quorum()

    async def unless_failed(self, part: Coroutine[Any, Any, None], failed: asyncio.Future[None]) -> bool:
        """Await a part of the start, which waits for no other node; return True."""
        await part
        return True

    def controller_for(self, purpose: str, quorum: MetadataQuorum) -> Controller:
        """Return the controller of this node, which is the active one."""
        return quorum.controller

    def report_changes(
        self, quorum: MetadataQuorum, is_active: Callable[[], bool], connections: Connections, timers: Timers
    ) -> None:
        """Log no leaders: there is no other broker to which a partition could move."""

    def close(self) -> None:
        """Release nothing."""

    # Its broker

    def other_brokers(
        self, image: Callable[[], MetadataImage], channels: Callable[[], InterBrokerChannels]
    ) -> OwnCoordinators:
        """Return what the coordinators ask of other brokers."""
        return OwnCoordinators()

    def replicate(
        self,
        replicas: ReplicaManager,
        placement: Placement,
        broker_epoch: Callable[[], int],
        quorum: MetadataQuorum,
    ) -> None:
        """Let replicas be assigned to the directories, if there are several; one disk is never replaced under its replicas."""
        if len(placement.ids) > 1:
            loop = asyncio.get_running_loop()
            self._assignments = DirectoryAssignments(replicas.node_id, placement, broker_epoch, quorum.controller, loop)
            if replicas.moves is not None:
                replicas.moves.tell = self._assignments.tell

    def apply_settings(self, delta: MetadataDelta, image: MetadataImage) -> None:
        """Apply a commit before the replicas do."""

    async def apply_replicas(self, delta: MetadataDelta) -> None:
        """Apply a commit after the replicas have."""
        if self._assignments is not None:
            await self._assignments.apply_delta(delta)

    async def catch_up(self, read_metadata: Callable[[], Awaitable[None]]) -> None:
        """Wait for nothing: the metadata is this node's own."""

    async def begin_service(self, serve: Callable[[], None], be_unfenced: Callable[[], Awaitable[None]]) -> None:
        """Be unfenced, then serve clients: no early client finds a broker that leads nothing."""
        await be_unfenced()
        serve()

    async def end_service(
        self, stop_listeners: Callable[[], Awaitable[None]], hand_over: Callable[[], Awaitable[None]]
    ) -> None:
        """Close the listeners, then hand over, which only tells the controller that the broker has left in order."""
        await stop_listeners()
        await hand_over()

    def leave_replication(self) -> None:
        """Assign no more replicas."""
        if self._assignments is not None:
            self._assignments.close()
