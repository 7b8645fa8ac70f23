"""A controller's registration: where it listens and which features it supports, so that clients and updates of features know (KIP-919).

    metadata changes ──► does the image have this run's registration? ──► if not, send one to the active controller

- A controller registers once in a run, as soon as metadata.version allows it. Each run has an incarnation id of its own.
- It registers again when its registration is removed or replaced.
- One request is under way at a time. After a failure the next one waits, each time twice as long.

Source: Kafka's `ControllerRegistrationManager`.
"""

from __future__ import annotations

import asyncio
import logging
import random as random_module
from typing import TYPE_CHECKING

from barnabas.metadata.metadata_version import CONTROLLER_REGISTRATION_SINCE, supported_features
from barnabas.net.listeners import protocol_code, registered_address
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.messages import ControllerRegistrationRequest
from barnabas.protocol.primitives import Uuid

if TYPE_CHECKING:
    from collections.abc import Sequence

    from barnabas.api.serving.context import Controller
    from barnabas.config.config import BrokerConfig
    from barnabas.metadata.delta import MetadataDelta
    from barnabas.metadata.image import MetadataImage
    from barnabas.net.listener import Listener

__all__ = ["ControllerRegistrationManager"]

logger = logging.getLogger(__name__)

FIRST_BACKOFF_MS = 100
BACKOFF_MS_MAX = 120_000


class ControllerRegistrationManager:
    """Keeps one controller registered.

    Args:
        listeners: bound.
        controller: passes requests to the active controller.
        random: the source of the incarnation id.

    Attributes:
        is_registered: the committed metadata has the registration of this run.
    """

    def __init__(
        self,
        config: BrokerConfig,
        listeners: Sequence[Listener],
        controller: Controller,
        *,
        loop: asyncio.AbstractEventLoop,
        random: random_module.Random,
    ) -> None:
        self.incarnation_id = Uuid(random.randbytes(16))
        self.is_registered = False
        self._config = config
        self._listeners = listeners
        self._controller = controller
        self._loop = loop
        self._is_supported = False
        self._backoff_ms = FIRST_BACKOFF_MS
        self._under_way: asyncio.Future[object] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._closed = False

    def __repr__(self) -> str:
        state = "registered" if self.is_registered else "not registered"
        return f"<ControllerRegistrationManager {self._config.node_id} {state}>"

    def on_metadata(self, delta: MetadataDelta, image: MetadataImage) -> None:
        """Apply a commit of the metadata log."""
        if delta.features is not None:
            self._is_supported = (image.features.metadata_version or 0) >= CONTROLLER_REGISTRATION_SINCE
        if delta.cluster is not None and self._config.node_id in delta.cluster.changed_controllers:
            registration = image.cluster.controllers.get(self._config.node_id)
            self.is_registered = registration is not None and registration.incarnation_id == self.incarnation_id
        # Not here: a publisher appends nothing while the loader publishes.
        self._send_in_ms(0)

    def _send_in_ms(self, delay_ms: int) -> None:
        if self._timer is None and self._under_way is None and self._is_due:
            self._timer = self._loop.call_later(delay_ms / 1000, self._send)

    @property
    def _is_due(self) -> bool:
        return self._is_supported and not self.is_registered and not self._closed

    def _send(self) -> None:
        self._timer = None
        if self._is_due:
            version = ControllerRegistrationRequest.MAX_VERSION
            self._under_way = self._controller.handle(ApiKey.CONTROLLER_REGISTRATION, version, self._request())
            self._under_way.add_done_callback(self._answered)

    def _answered(self, future: asyncio.Future[object]) -> None:
        self._under_way = None
        if future.cancelled():
            return
        error = future.exception()
        if error is None:
            self._backoff_ms = FIRST_BACKOFF_MS
            return
        logger.info("This controller is not registered yet: %s", error)
        self._send_in_ms(self._backoff_ms)
        self._backoff_ms = min(self._backoff_ms * 2, BACKOFF_MS_MAX)

    def _request(self) -> ControllerRegistrationRequest:
        listeners = []
        for listener in self._listeners:
            host, port = registered_address(self._config, listener)
            code = protocol_code(listener.protocol)
            listeners.append(
                ControllerRegistrationRequest.Listener(name=listener.name, host=host, port=port, security_protocol=code)
            )
        return ControllerRegistrationRequest(
            controller_id=self._config.node_id,
            incarnation_id=self.incarnation_id,
            listeners=listeners,
            features=[
                ControllerRegistrationRequest.Feature(
                    name=name, min_supported_version=levels.min, max_supported_version=levels.max
                )
                for name, levels in supported_features().items()
            ],
        )

    def close(self) -> None:
        """Send nothing any more."""
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
        if self._under_way is not None:
            self._under_way.cancel()
