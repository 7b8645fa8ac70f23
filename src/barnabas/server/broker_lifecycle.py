"""A broker's life in its cluster: registered with the controller, then a heartbeat at intervals. Shell.

- The epoch the controller gave at registration goes with everything the broker asks of it, so that an earlier life of the same
  broker is told apart.
- A refused registration is a start that fails; a heartbeat that is not taken is a warning, and the next one tries again.

Source: Kafka's `BrokerLifecycleManager`, KIP-631.
"""

from __future__ import annotations

import asyncio
import logging
import random as random_module
import socket
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from barnabas.metadata.metadata_version import supported_features
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.messages import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
    BrokerHeartbeatRequest,
    BrokerRegistrationRequest,
)
from barnabas.protocol.primitives import Uuid, uuid_from_str

if TYPE_CHECKING:
    from barnabas.log.meta_properties import MetaProperties
    from barnabas.metadata.quorum_controller import QuorumController
    from barnabas.server.config import BrokerConfig
    from barnabas.server.listener import Listener

log = logging.getLogger(__name__)

_PROTOCOL_NUMBERS = {"PLAINTEXT": 0, "SSL": 1, "SASL_PLAINTEXT": 2, "SASL_SSL": 3}


class BrokerLifecycle:
    """What one broker tells the controller of itself.

    Args:
        meta: whose data directory this is.
        metadata_offset: the last offset of the metadata log that this broker has taken.
        random: the incarnation is drawn from it.

    Attributes:
        epoch: what the controller gave at registration; -1 before.
    """

    def __init__(
        self,
        config: BrokerConfig,
        meta: MetaProperties,
        controller: QuorumController,
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

    async def register(self, listeners: Sequence[Listener]) -> None:
        """Tell the controller where this broker is reached, and what it can do.

        Raises:
            KafkaError: the controller refuses, for instance INCONSISTENT_CLUSTER_ID or DUPLICATE_BROKER_REGISTRATION.
        """
        request = BrokerRegistrationRequest(
            broker_id=self._config.node_id,
            cluster_id=self._meta.cluster_id,
            incarnation_id=Uuid(self._random.randbytes(16)),
            listeners=[
                BrokerRegistrationRequest.Listener(
                    name=listener.name,
                    host=self._host(listener),
                    port=self._port(listener),
                    security_protocol=_PROTOCOL_NUMBERS["PLAINTEXT"],
                )
                for listener in listeners
            ],
            features=[
                BrokerRegistrationRequest.Feature(
                    name=name, min_supported_version=levels.min, max_supported_version=levels.max
                )
                for name, levels in supported_features().items()
            ],
            rack=self._config.broker_rack,
            log_dirs=[] if self._meta.directory_id is None else [uuid_from_str(self._meta.directory_id)],
        )
        response = await self._controller.handle(
            ApiKey.BROKER_REGISTRATION, BrokerRegistrationRequest.MAX_VERSION, request
        )
        self.epoch = response.broker_epoch

    def _host(self, listener: Listener) -> str:
        for endpoint in self._config.advertised_listeners or ():
            if endpoint.name == listener.name and endpoint.host:
                return endpoint.host
        # With `auto` clients get the address they dialled; the registration needs some name all the same.
        return listener.host if listener.host not in ("", "0.0.0.0", "::") else socket.gethostname()

    def _port(self, listener: Listener) -> int:
        for endpoint in self._config.advertised_listeners or ():
            if endpoint.name == listener.name and endpoint.port > 0:
                return endpoint.port
        return listener.port

    def heartbeat(self) -> asyncio.Future[object]:
        """Tell the controller that this broker lives and how far it is; the first unfences it."""
        return self._controller.handle(
            ApiKey.BROKER_HEARTBEAT,
            BrokerHeartbeatRequest.MAX_VERSION,
            BrokerHeartbeatRequest(
                broker_id=self._config.node_id,
                broker_epoch=self.epoch,
                current_metadata_offset=self._metadata_offset(),
            ),
        )

    def beat(self) -> None:
        """A heartbeat that nobody waits for."""

        def answered(future: asyncio.Future[object]) -> None:
            error = None if future.cancelled() else future.exception()
            if error is not None and not self._closed:
                log.warning("The controller did not take a heartbeat: %s", error)

        self.heartbeat().add_done_callback(answered)

    def allocate_producer_ids(self) -> asyncio.Future[AllocateProducerIdsResponse]:
        """A block of producer ids that no other broker has."""
        return self._controller.handle(
            ApiKey.ALLOCATE_PRODUCER_IDS,
            AllocateProducerIdsRequest.MAX_VERSION,
            AllocateProducerIdsRequest(broker_id=self._config.node_id, broker_epoch=self.epoch),
        )

    def close(self) -> None:
        """Nothing more is said of heartbeats that fail."""
        self._closed = True
