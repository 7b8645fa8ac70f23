"""Find out that a broker's process has died, without waiting for its session to expire.

    the connection of its last heartbeat ends ──► probe its listeners ──► all refuse ──► 50 ms ──► all refuse ──► fence it

A probe is an attempt to connect. Only a refusal proves anything: the machine is up, and nothing listens. An accepted connection, a
timeout or any other error proves nothing; after a few more probes the broker has its whole session. So a machine without power, a
process that stands still and a network that is cut are noticed after `broker.session.timeout.ms`, as in Kafka.

To fence a broker that lives is safe, only not useful: it notices with its next heartbeat, and is unfenced.

Only the active controller probes; each broker once an ended connection.

Source: none in Kafka, where the session alone decides (KIP-631).
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from barnabas.api.serving.context import ConnectionInfo
    from barnabas.metadata.cluster_image import BrokerRegistration
    from barnabas.metadata.local_controller import LocalController

logger = logging.getLogger(__name__)

__all__ = ["FailureProbes"]

PAUSE_MS = 50
TIMEOUT_MS = 1_000
AGAIN_MS = (50, 200, 500)
"""Pauses before the next probe if one was accepted: a process that dies may close its connections before its listeners."""


class FailureProbes:
    """The connections of heartbeats, as the active controller knows them."""

    def __init__(self, controller: LocalController, loop: asyncio.AbstractEventLoop) -> None:
        self._controller = controller
        self._loop = loop
        # Connection and broker epoch of each broker's last heartbeat.
        self._last: dict[int, tuple[str, int]] = {}
        self._probing: dict[asyncio.Task[None], None] = {}

    def __repr__(self) -> str:
        return f"<FailureProbes brokers={sorted(self._last)} probing={len(self._probing)}>"

    def heard(self, broker_id: int, broker_epoch: int, connection: ConnectionInfo) -> None:
        """Note a heartbeat; one of a broker that is not registered, or of its last registration, counts for nothing."""
        broker = self._controller.image.cluster.brokers.get(broker_id)
        if broker is not None and broker.epoch == broker_epoch:
            self._last[broker_id] = (connection.connection_id, broker_epoch)
            connection.when_closed(self._closed)

    def _closed(self, connection_id: str) -> None:
        for broker_id, (last, epoch) in list(self._last.items()):
            if last == connection_id:
                del self._last[broker_id]
                self._disconnected(broker_id, epoch)

    def _disconnected(self, broker_id: int, epoch: int) -> None:
        active = self._controller.active
        broker = self._controller.image.cluster.brokers.get(broker_id)
        if active is None or broker is None or broker.epoch != epoch:
            return
        active.broker_disconnected(broker_id, epoch)
        if not broker.fenced:
            self._begin(broker)

    def probe_all(self) -> None:
        """Probe every broker: this node has become the active controller, and heard none of them yet."""
        for broker in self._controller.image.cluster.live_brokers():
            self._begin(broker)

    def _begin(self, broker: BrokerRegistration) -> None:
        probing = self._loop.create_task(self._probe(broker))
        self._probing[probing] = None
        probing.add_done_callback(self._probing.pop)

    async def _probe(self, broker: BrokerRegistration) -> None:
        if not await self._refuses_soon(broker):
            return
        await asyncio.sleep(PAUSE_MS / 1000)
        if not await self._refuses(broker):
            return
        active = self._controller.active
        if active is not None and broker.id not in self._last:
            logger.info("Broker %d has died: nothing listens at its addresses any more", broker.id)
            active.broker_has_died(broker.id, broker.epoch)

    async def _refuses_soon(self, broker: BrokerRegistration) -> bool:
        for pause_ms in AGAIN_MS:
            if await self._refuses(broker):
                return True
            await asyncio.sleep(pause_ms / 1000)
        return await self._refuses(broker)

    async def _refuses(self, broker: BrokerRegistration) -> bool:
        """Return whether every address of a broker refuses a connection."""
        for endpoint in broker.listeners:
            connecting = self._loop.create_connection(asyncio.Protocol, endpoint.host, endpoint.port)
            try:
                transport, _ = await asyncio.wait_for(connecting, TIMEOUT_MS / 1000)
            except ConnectionRefusedError:
                continue
            except (OSError, TimeoutError):
                return False
            transport.abort()
            return False
        return bool(broker.listeners)

    def close(self) -> None:
        """Probe no more."""
        for probing in tuple(self._probing):
            probing.cancel()
