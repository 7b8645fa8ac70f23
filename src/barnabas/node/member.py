"""What a node does only as a member of a cluster: its settings name other nodes, or others may join it.

- It joins the quorum before it recovers its logs: the others need its vote, and perhaps its controller, and the logs may take minutes.
- The active controller may be on another node, be silent, or change. So a broker asks again, each purpose over a channel of its own, and
  a start that waits ends if this node fails meanwhile.
- Before it leads anything its broker reads the metadata up to its registration. Older metadata may say that it leads as in its last run; a
  crash may have taken records of that epoch, and it would append others at their offsets.
- It serves before it is unfenced, because it may lead partitions from then on, and the other brokers fetch at once. At its end it serves
  until others lead.

`node/alone` has the same methods for a node without others; `node/membership` chooses.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from barnabas.metadata.partition_change_log import REPORT_MS, PartitionChangeLog
from barnabas.net.security_of_listeners import controllers_security
from barnabas.node.directory_assignments import DirectoryAssignments, Placement
from barnabas.node.remote_coordinators import RemoteCoordinators
from barnabas.node.replication_settings import ReplicationSettings
from barnabas.quorum.controller_channel import ControllerChannel

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine

    from barnabas.config.config import BrokerConfig
    from barnabas.config.runtime import Runtime
    from barnabas.config.timers import Timers
    from barnabas.metadata.delta import MetadataDelta
    from barnabas.metadata.image import MetadataImage
    from barnabas.net.connections import Connections
    from barnabas.net.renewed_stores import RenewedStores
    from barnabas.node.inter_broker import InterBrokerChannels
    from barnabas.quorum.metadata_quorum import MetadataQuorum
    from barnabas.replication.replica_manager import ReplicaManager

__all__ = ["Member"]

_TICKS_PER_SESSION = 50


class Member:
    """A node of a cluster of several, or of one that others may join.

    Args:
        stores: of the listeners and connections of this node.

    Attributes:
        retries: whether a broker asks the controller again after a failure.
        registration_patience_ms: for how long it asks to be registered.
        tick_ms: how often the controller looks after its sessions.
    """

    retries = True

    def __init__(self, config: BrokerConfig, runtime: Runtime, stores: RenewedStores) -> None:
        self.registration_patience_ms = config.int_value("initial.broker.registration.timeout.ms")
        self.tick_ms = max(config.broker_session_timeout_ms // _TICKS_PER_SESSION, 1)
        self._config = config
        self._runtime = runtime
        self._stores = stores
        self._controllers: list[ControllerChannel] = []
        self._settings: ReplicationSettings | None = None
        self._assignments: DirectoryAssignments | None = None

    def __repr__(self) -> str:
        return f"<Member {self._config.node_id} controllers={len(self._controllers)}>"

    # The node

    async def open(self, join_quorum: Callable[[], None], recover: Callable[[], Awaitable[None]]) -> None:
        """Join the quorum, then recover the logs."""
        join_quorum()
        await recover()

    async def unless_failed(self, part: Coroutine[Any, Any, None], failed: asyncio.Future[None]) -> bool:
        """Await a part of the start, which may take long; return False if this node fails meanwhile, which may end the part.

        Args:
            failed: done when this node has failed.
        """
        task = self._runtime.loop.create_task(part)
        try:
            await asyncio.wait((task, failed), return_when=asyncio.FIRST_COMPLETED)
        finally:
            if not task.done():
                task.cancel()
                await asyncio.wait((task,))
        if failed.done():
            return False
        task.result()
        return True

    def controller_for(self, purpose: str, quorum: MetadataQuorum) -> ControllerChannel:
        """Return a way to the active controller for one purpose; no purpose waits for another."""
        channel = ControllerChannel(
            quorum.local_controller,
            quorum.leader_endpoint,
            loop=self._runtime.loop,
            clock=self._runtime.clock,
            random=self._runtime.random,
            client_id=f"{self._config.node_id}-{purpose}",
            request_timeout_ms=self._config.int_value("controller.socket.timeout.ms"),
            # The next heartbeat follows in time for the session, also when one is lost.
            retry_timeout_ms=self._config.broker_session_timeout_ms // 2 if purpose == "heartbeat" else None,
            security=controllers_security(self._config, self._stores),
        )
        self._controllers.append(channel)
        return channel

    def report_changes(
        self, quorum: MetadataQuorum, is_active: Callable[[], bool], connections: Connections, timers: Timers
    ) -> None:
        """Log changes of leaders and of in-sync replicas, now and then.

        Args:
            is_active: returns whether the active controller is on this node.
            connections: have the lines of log that clients can cause.
        """
        changes = PartitionChangeLog(self._config.node_id, is_active)
        quorum.loader.add_publisher(changes.publish)
        timers.every(REPORT_MS, lambda: changes.log(connections.lines))

    def close(self) -> None:
        """Close the channels to the controller."""
        for channel in self._controllers:
            channel.close()

    # Its broker

    def other_brokers(
        self, image: Callable[[], MetadataImage], channels: Callable[[], InterBrokerChannels]
    ) -> RemoteCoordinators:
        """Return what the coordinators ask of other brokers."""
        return RemoteCoordinators(self._config.node_id, image, channels(), self._runtime.loop)

    def replicate(
        self,
        replicas: ReplicaManager,
        placement: Placement,
        broker_epoch: Callable[[], int],
        quorum: MetadataQuorum,
    ) -> None:
        """Let dynamic settings reach the replicas, and replicas be assigned to the directory that this broker has.

        Args:
            placement: where replicas are; nothing is assigned in a directory without an id.
            broker_epoch: returns the epoch of this broker's registration.
        """
        self._settings = ReplicationSettings(self._config, replicas, self._runtime.now_ms)
        if placement.ids:
            controller = self.controller_for("assignments", quorum)
            self._assignments = DirectoryAssignments(
                self._config.node_id, placement, broker_epoch, controller, self._runtime.loop
            )
            if replicas.moves is not None:
                replicas.moves.tell = self._assignments.tell

    def apply_settings(self, delta: MetadataDelta, image: MetadataImage) -> None:
        """Apply a commit before the replicas do."""
        if self._settings is not None and delta.configs is not None:
            self._settings.apply_delta(delta.configs, image.configs)

    async def apply_replicas(self, delta: MetadataDelta) -> None:
        """Apply a commit after the replicas have."""
        if self._assignments is not None:
            await self._assignments.apply_delta(delta)

    async def catch_up(self, read_metadata: Callable[[], Awaitable[None]]) -> None:
        """Wait for the metadata up to the registration."""
        await read_metadata()

    async def begin_service(self, serve: Callable[[], None], be_unfenced: Callable[[], Awaitable[None]]) -> None:
        """Serve clients and followers, then be unfenced."""
        serve()
        await be_unfenced()

    async def end_service(
        self, stop_listeners: Callable[[], Awaitable[None]], hand_over: Callable[[], Awaitable[None]]
    ) -> None:
        """Hand over, then close the listeners: clients and followers are served until other brokers lead."""
        await hand_over()
        await stop_listeners()

    def leave_replication(self) -> None:
        """Assign no more replicas."""
        if self._assignments is not None:
            self._assignments.close()
