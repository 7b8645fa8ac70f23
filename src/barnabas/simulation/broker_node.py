"""A node whose process is a broker: the server's own code, over this node's loop, disk, clock and network."""

from __future__ import annotations

import random

from barnabas.config.config import BrokerConfig
from barnabas.node.node import Node as ServerNode
from barnabas.simulation.disk import SimDisk
from barnabas.simulation.node import Node, Surroundings

DATA_DIR = "/data"
PORT = 9092


class BrokerNode(Node):
    """A broker on its machine, not started.

    Args:
        properties: of `server.properties`, added to those that the node sets (`node.id`, `listeners`, `log.dirs`) or replacing them.

    Attributes:
        server: that of the present process, or of the last.
        has_started: whether the start of the present process has ended well.
    """

    server: ServerNode
    has_started = False

    def __init__(
        self, world: Surroundings, name: str, host: str, properties: dict[str, str], disk: SimDisk | None = None
    ) -> None:
        super().__init__(world, name, host, disk)
        self.address = (host, PORT)
        self.properties = {
            "node.id": "1",
            "listeners": f"PLAINTEXT://{host}:{PORT}",
            "log.dirs": DATA_DIR,
            **properties,
        }

    @property
    def serves(self) -> bool:
        """Whether its process has started and runs."""
        return self.is_up and self.has_started

    def boot(self) -> None:
        self.has_started = False
        super().boot()

    async def start(self) -> None:
        """Start a broker in the present process, or in a new one if that has ended; the caller waits in the world's loop.

        Raises:
            CannotStart: as the server does.
            NodeDied: the process ends before the broker has started.
        """
        if not self.is_up:
            self.boot()
        self.note("starts")
        self.server = self._make_server()
        await self.run(self.server.start())
        self.has_started = True
        self.note("serves")

    def _make_server(self) -> ServerNode:
        return ServerNode(
            BrokerConfig.from_properties(self.properties),
            loop=self.loop,
            disk=self.disk,
            now_ms=self.now_ms,
            random=random.Random(self._rng.random()),
            monotonic_ns=self.monotonic_ns,
        )

    async def stop(self) -> None:
        """Stop the broker cleanly, and end the process."""
        await self.run(self.server.stop())
        self.kill("has stopped")
