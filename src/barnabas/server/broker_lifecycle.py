"""A broker's membership in its cluster: registration with the controller, then heartbeats at an interval.

- The controller returns a broker epoch at registration. The broker sends it with every request, so that the controller can reject
  requests of the same broker before a restart.
- At registration the broker names the epoch of its last run if that run stopped in order; else the controller takes it for crashed.
- Before it stops, a broker asks the controller until it may: its leaderships are handed over first.
- If the controller rejects the registration, the start fails. If it rejects a heartbeat, the broker logs a warning and sends the
  next one at its time.

Source: Kafka's `BrokerLifecycleManager`, KIP-631.
"""

from __future__ import annotations

import asyncio
import logging
import random as random_module
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from barnabas.metadata.metadata_version import supported_features
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.messages import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
    BrokerRegistrationRequest,
)
from barnabas.protocol.primitives import Uuid, uuid_from_str
from barnabas.server.listeners import registered_address

if TYPE_CHECKING:
    from barnabas.api.context import Controller
    from barnabas.log.meta_properties import MetaProperties
    from barnabas.server.config import BrokerConfig
    from barnabas.server.listener import Listener

logger = logging.getLogger(__name__)

# How long the other brokers have to learn of new leaders before this broker asks again.
_SHUT_DOWN_RETRY_MS = 10
PLAINTEXT = 0
"""Kafka's number of the security protocol."""


class BrokerLifecycle:
    """One broker's requests about itself to the controller.

    Args:
        meta: the identity of the data directory.
        metadata_offset: returns the last offset of the metadata log that this broker has applied.
        random: the source of the incarnation id.

    Attributes:
        epoch: the broker epoch; -1 before the registration.
    """

    def __init__(
        self,
        config: BrokerConfig,
        meta: MetaProperties,
        controller: Controller,
        metadata_offset: Callable[[], int],
        random: random_module.Random,
    ) -> None:
        self.epoch = -1
        self._closed = False
        self._config = config
        self._meta = meta
        self._controller = controller
        self._metadata_offset = metadata_offset
        self._random = random

    def __repr__(self) -> str:
        return f"<BrokerLifecycle {self._config.node_id} epoch={self.epoch}>"

    async def register(self, listeners: Sequence[Listener], previous_epoch: int = -1) -> None:
        """Register this broker's addresses and features.

        Args:
            previous_epoch: the broker epoch of a last run that stopped in order; else -1.

        Raises:
            KafkaError: the controller rejects the broker, for example INCONSISTENT_CLUSTER_ID or DUPLICATE_BROKER_REGISTRATION.
        """
        request = BrokerRegistrationRequest(
            broker_id=self._config.node_id,
            cluster_id=self._meta.cluster_id,
            incarnation_id=Uuid(self._random.randbytes(16)),
            listeners=[_registered(self._config, listener) for listener in listeners],
            features=[
                BrokerRegistrationRequest.Feature(
                    name=name, min_supported_version=levels.min, max_supported_version=levels.max
                )
                for name, levels in supported_features().items()
            ],
            rack=self._config.broker_rack,
            log_dirs=[] if self._meta.directory_id is None else [uuid_from_str(self._meta.directory_id)],
            previous_broker_epoch=previous_epoch,
        )
        response = await self._controller.handle(
            ApiKey.BROKER_REGISTRATION, BrokerRegistrationRequest.MAX_VERSION, request
        )
        self.epoch = response.broker_epoch

    def heartbeat(self, *, want_shut_down: bool = False) -> asyncio.Future[BrokerHeartbeatResponse]:
        """Send a heartbeat with the broker's metadata offset; the first heartbeat unfences the broker."""
        return self._controller.handle(
            ApiKey.BROKER_HEARTBEAT,
            BrokerHeartbeatRequest.MAX_VERSION,
            BrokerHeartbeatRequest(
                broker_id=self._config.node_id,
                broker_epoch=self.epoch,
                current_metadata_offset=self._metadata_offset(),
                want_shut_down=want_shut_down,
            ),
        )

    async def shut_down(self) -> None:
        """Hand this broker's leaderships over; return when it may stop.

        Raises:
            KafkaError: the controller does not know this broker, or cannot answer.
        """
        while not (await self.heartbeat(want_shut_down=True)).should_shut_down:
            await asyncio.sleep(_SHUT_DOWN_RETRY_MS / 1000)

    def beat(self) -> None:
        """Send a heartbeat and only log its failure."""

        def answered(future: asyncio.Future[BrokerHeartbeatResponse]) -> None:
            error = None if future.cancelled() else future.exception()
            if error is not None and not self._closed:
                logger.warning("The controller rejected a heartbeat: %s", error)

        self.heartbeat().add_done_callback(answered)

    def allocate_producer_ids(self) -> asyncio.Future[AllocateProducerIdsResponse]:
        """Allocate a block of producer ids that no other broker has."""
        return self._controller.handle(
            ApiKey.ALLOCATE_PRODUCER_IDS,
            AllocateProducerIdsRequest.MAX_VERSION,
            AllocateProducerIdsRequest(broker_id=self._config.node_id, broker_epoch=self.epoch),
        )

    def close(self) -> None:
        """Stop logging heartbeats that fail."""
        self._closed = True


def _registered(config: BrokerConfig, listener: Listener) -> BrokerRegistrationRequest.Listener:
    host, port = registered_address(config, listener)
    return BrokerRegistrationRequest.Listener(name=listener.name, host=host, port=port, security_protocol=PLAINTEXT)
