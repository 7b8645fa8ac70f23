"""A controller without sockets: requests of its listener go in as bytes, responses come out decoded."""

from __future__ import annotations

import asyncio
import random
from typing import Any

from barnabas.api.controller_apis import CONTROLLER_APIS
from barnabas.api.serving.context import ConnectionInfo, ControllerServices
from barnabas.api.serving.dispatch import Dispatcher
from barnabas.config.config import BrokerConfig
from barnabas.protocol.messages import (
    BrokerHeartbeatRequest,
    BrokerRegistrationRequest,
    ControllerRegistrationRequest,
)
from barnabas.protocol.primitives import Uuid
from barnabas.quota.client_quotas import ClientQuotas, QuotaWindows
from tests.api.quiet_clock import QuietClock
from tests.api.served_node import Serving
from tests.metadata.controller_harness import CLUSTER_ID
from tests.node.only_voter import opened_quorum

NODE_ID = 1


class Controlling(Serving):
    """The sole voter of a quorum, and its dispatcher; `ask` is a round trip to its controller listener."""

    def __init__(self, **settings: str) -> None:
        self.loop = QuietClock()
        self.now_ms = 1_700_000_000_000
        self.config = BrokerConfig.from_properties(
            {
                "listeners": "PLAINTEXT://broker.example:9092,CONTROLLER://controller.example:9093",
                "controller.listener.names": "CONTROLLER",
                "log.dirs": "/data",
                "barnabas.metadata.flush": "false",
                **{name.replace("_", "."): value for name, value in settings.items()},
            }
        )
        self.heard_from: list[tuple[int, int, str]] = []
        self._opened = opened_quorum(self.config, self.loop, self.now_ms)
        self.quorum, resolver = self._opened.__enter__()
        self.quorum.start()
        self.services = ControllerServices(
            apis=CONTROLLER_APIS,
            node_id=NODE_ID,
            cluster_id=CLUSTER_ID,
            config=self.config,
            config_resolver=resolver,
            controller=self.quorum.controller,
            driver=self.quorum.driver,
            heard=self.heard,
            image=lambda: self.quorum.loader.image,
            now_ms=lambda: self.now_ms,
            loop=self.loop,
            random=random.Random(1),
            quotas=ClientQuotas(QuotaWindows(), lambda: self.now_ms),
            monotonic_ns=lambda: int(self.loop.time() * 1e9),
        )
        self.dispatcher = Dispatcher(self.services)
        self.connection = ConnectionInfo("test", "CONTROLLER", "10.0.0.9", 50000, "controller.example", 9093)

    def close(self) -> None:
        self._opened.__exit__(None, None, None)
        self.loop.run_until_complete(asyncio.sleep(0))
        self.loop.close()

    def heard(self, broker_id: int, broker_epoch: int, connection: ConnectionInfo) -> None:
        """Note a heartbeat, as `quorum.failure_probes` does."""
        self.heard_from.append((broker_id, broker_epoch, connection.connection_id))

    def resign(self) -> None:
        """Let this node lead no more; nobody else does."""
        self.quorum.driver.resign()

    def register_broker(self, broker_id: int, *, incarnation: int = 1, **fields: Any) -> Any:
        request = BrokerRegistrationRequest(
            broker_id=broker_id,
            cluster_id=CLUSTER_ID,
            incarnation_id=Uuid(bytes([broker_id] * 15 + [incarnation])),
            listeners=[BrokerRegistrationRequest.Listener(name="PLAINTEXT", host=f"b{broker_id}", port=9092)],
            features=[
                BrokerRegistrationRequest.Feature(name=name, min_supported_version=0, max_supported_version=99)
                for name in self.services.image().features.all_finalized()
            ],
            log_dirs=[Uuid(bytes([broker_id] * 16))],
        )
        for name, value in fields.items():
            setattr(request, name, value)
        return self.ask(request)

    def beat(self, broker_id: int, epoch: int, **fields: Any) -> Any:
        request = BrokerHeartbeatRequest(
            broker_id=broker_id,
            broker_epoch=epoch,
            current_metadata_offset=self.services.image().provenance.offset,
        )
        for name, value in fields.items():
            setattr(request, name, value)
        return self.ask(request)

    def add_broker(self, broker_id: int) -> int:
        """Register and unfence a broker; return its epoch."""
        epoch: int = self.register_broker(broker_id).broker_epoch
        assert not self.beat(broker_id, epoch).is_fenced
        return epoch

    def register_controller(self, controller_id: int) -> Any:
        return self.ask(
            ControllerRegistrationRequest(
                controller_id=controller_id,
                incarnation_id=Uuid(bytes([controller_id] * 16)),
                listeners=[
                    ControllerRegistrationRequest.Listener(name="CONTROLLER", host=f"c{controller_id}", port=9093)
                ],
            )
        )
