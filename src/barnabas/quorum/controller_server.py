"""The controller of a node as others reach it: the controller listeners, and their requests.

    listeners ──► Dispatcher over `ControllerServices` ──► the raft driver, the local controller, the image

- Voters, observers and brokers connect here, and administrators who dial controllers (`--bootstrap-controller`).
- It serves from the start of the quorum on, active or not: what only the active controller answers gets NOT_CONTROLLER elsewhere.
- The node makes the quorum and ends it. This class knows nothing of the node's broker.

- With an authorizer, a listener that is not among `early.start.listeners` serves only once the access control lists are loaded. By default
  all are: voters have to talk before anybody can load anything.

Order: `bind`, before the node begins what takes long, so that early connections wait; `serve`, once the quorum has started; `stop`.

Source: Kafka's `ControllerServer`.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from barnabas.api.controller_apis import CONTROLLER_APIS
from barnabas.api.serving.context import Controller, ControllerServices
from barnabas.api.serving.dispatch import Dispatcher
from barnabas.config.cannot_start import CannotStart
from barnabas.config.config import BrokerConfig, quota_windows
from barnabas.config.early_start import early_start_listeners
from barnabas.config.runtime import Runtime
from barnabas.config.timers import Timers
from barnabas.metadata.config_entries import ConfigResolver
from barnabas.metadata.delta import MetadataDelta
from barnabas.metadata.image import MetadataImage
from barnabas.net.connections import Connections
from barnabas.net.listener import Listener
from barnabas.net.listeners import bind_listeners
from barnabas.net.security_of_listeners import securities
from barnabas.quorum.controller_registration import ControllerRegistrationManager
from barnabas.quorum.failure_probes import FailureProbes
from barnabas.quota.client_quotas import ClientQuotas

if TYPE_CHECKING:
    from barnabas.api.serving.dispatch import Observer
    from barnabas.net.renewed_stores import RenewedStores
    from barnabas.quorum.metadata_quorum import MetadataQuorum
    from barnabas.security.authorizer import StandardAuthorizer

__all__ = ["ControllerServer"]

logger = logging.getLogger(__name__)

_EXPIRE_SENSORS_MS = 30_000


class ControllerServer:
    """One controller's listeners and services.

    Args:
        stores: of the listeners and connections of this node.
        beside: the connections of the broker in the same process.

    Attributes:
        listeners: the bound ones.
        services: for the handlers, from `serve` on.
    """

    def __init__(
        self, config: BrokerConfig, runtime: Runtime, stores: RenewedStores, *, beside: Connections | None = None
    ) -> None:
        self.config = config
        self._stores = stores
        self.listeners: list[Listener] = []
        self.connections = Connections(
            config,
            self.listeners,
            runtime.loop,
            runtime.disk.max_open_files(),
            endpoints=config.controller_listeners,
            beside=beside,
        )
        self.quotas = ClientQuotas(quota_windows(config), runtime.now_ms)
        self.services: ControllerServices
        self.registration: ControllerRegistrationManager
        self.probes: FailureProbes
        self._runtime = runtime
        self._timers = Timers(runtime.loop)
        self._serves = False
        # Listeners that wait for the access control lists.
        self._late: dict[Listener, Dispatcher] = {}

    def __repr__(self) -> str:
        return f"<ControllerServer {self.config.node_id} on {self.listeners!r}>"

    async def bind(self) -> None:
        """Bind the controller listeners and accept connections, whose requests wait for `serve`.

        Raises:
            CannotStart: an address cannot be bound, or a limit on connections is not valid.
        """
        try:
            self.connections.configure()
        except ValueError as error:
            raise CannotStart(str(error)) from None
        await bind_listeners(
            self.config.controller_listeners,
            self.listeners,
            self.connections,
            self.config,
            loop=self._runtime.loop,
            now_ms=self._runtime.now_ms,
            securities=securities(
                self.config, self.config.controller_listeners, self._image, self._runtime.now_ms, self._stores
            ),
        )

    def _image(self) -> MetadataImage:
        """Return the committed metadata; nothing before `serve`."""
        return self.services.image() if self._serves else MetadataImage()

    def serve(
        self,
        quorum: MetadataQuorum,
        cluster_id: str,
        resolver: ConfigResolver,
        *,
        controller: Controller | None = None,
        observer: Observer | None = None,
        authorizer: StandardAuthorizer | None = None,
    ) -> None:
        """Answer requests, and register this controller.

        Args:
            quorum: of this node.
            controller: passes requests to the active controller; None if it can only be the one of this node.
            observer: counts requests, for metrics.
            authorizer: None if everything is allowed.
        """
        runtime = self._runtime
        self.probes = FailureProbes(quorum.controller, runtime.loop)
        self.services = ControllerServices(
            apis=CONTROLLER_APIS,
            node_id=self.config.node_id,
            cluster_id=cluster_id,
            config=self.config,
            config_resolver=resolver,
            controller=quorum.controller,
            driver=quorum.driver,
            heard=self.probes.heard,
            image=lambda: quorum.loader.image,
            now_ms=runtime.now_ms,
            loop=runtime.loop,
            random=runtime.random,
            quotas=self.quotas,
            monotonic_ns=runtime.monotonic_ns,
            authorizer=authorizer,
        )
        self.registration = ControllerRegistrationManager(
            self.config, self.listeners, controller or quorum.controller, loop=runtime.loop, random=runtime.random
        )
        quorum.controller.when_active = self.probes.probe_all
        quorum.loader.add_publisher(self._on_metadata)
        dispatcher = Dispatcher(self.services, observer, self.connections.lines)
        early = early_start_listeners(self.config)
        for listener in self.listeners:
            if authorizer is None or authorizer.is_ready or listener.name in early:
                listener.serve(dispatcher)
            else:
                logger.info("Listener %s waits until the access control lists are loaded", listener.name)
                self._late[listener] = dispatcher
        self._timers.every(_EXPIRE_SENSORS_MS, self._expire_sensors)
        self._serves = True

    async def _on_metadata(self, delta: MetadataDelta, image: MetadataImage) -> None:
        if delta.client_quotas is not None:
            self.quotas.apply(delta.client_quotas.changed)
        self.connections.apply_delta(delta, image)
        self.registration.on_metadata(delta, image)
        if delta.configs is not None:
            await self._stores.apply(image.configs)
        authorizer = self.services.authorizer
        if self._late and authorizer is not None and authorizer.is_ready:
            # The node's first publisher has told the authorizer.
            late, self._late = self._late, {}
            for listener, dispatcher in late.items():
                listener.serve(dispatcher)

    def _expire_sensors(self) -> None:
        now_ms = self._runtime.now_ms()
        self.quotas.expire(now_ms)
        self.connections.quotas.expire(now_ms)

    async def stop(self) -> None:
        """Close the listeners and every connection; safe after any part of a start."""
        self._timers.cancel()
        self._late.clear()
        if self._serves:
            self.registration.close()
            self.probes.close()
        for listener in self.listeners:
            await listener.stop()
