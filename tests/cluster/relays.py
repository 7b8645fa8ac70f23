"""Relays in front of every listener of a cluster, which record every byte that passes, in both directions.

    client, broker, controller ──► relay of node 2's listener ──► node 2

Nodes advertise their relays, and the quorum's voters are named by theirs: no node and no client learns the address of a listener itself.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Self

from tests.cluster.cluster import Cluster
from tests.cluster.node_process import NodeProcess
from tests.cluster.secured_nodes import SecuredNodes

PIECE = 1 << 16


class Relays:
    """The relays, in a thread of their own.

    Attributes:
        recorded: for each relay, what its connections have carried: from who dials, and back.
    """

    def __init__(self) -> None:
        self.recorded: dict[str, list[bytearray]] = {}
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._tasks: set[asyncio.Task[None]] = set()
        self._servers: list[asyncio.Server] = []
        self._thread.start()

    def __repr__(self) -> str:
        return f"<Relays { ({name: len(found) // 2 for name, found in self.recorded.items()}) }>"

    def add(self, name: str, target: Callable[[], int]) -> int:
        """Add a relay and return its port.

        Args:
            target: returns the port of the listener behind it.
        """
        self.recorded[name] = []
        return asyncio.run_coroutine_threadsafe(self._listen(name, target), self._loop).result()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _listen(self, name: str, target: Callable[[], int]) -> int:
        server = await asyncio.start_server(partial(self._serve, name, target), "127.0.0.1", 0)
        self._servers.append(server)
        port: int = server.sockets[0].getsockname()[1]
        return port

    async def _serve(
        self, name: str, target: Callable[[], int], reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        try:
            with suppress(OSError):
                back, out = await asyncio.open_connection("127.0.0.1", target())
                there, here = bytearray(), bytearray()
                self.recorded[name] += (there, here)
                try:
                    await asyncio.gather(_carry(reader, out, there), _carry(back, writer, here))
                finally:
                    out.close()
        finally:
            writer.close()

    async def _end(self) -> None:
        for server in self._servers:
            server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


async def _carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, record: bytearray) -> None:
    with suppress(OSError):
        while data := await reader.read(PIECE):
            record += data
            writer.write(data)
            await writer.drain()
    writer.close()


class RelayedCluster(Cluster):
    """Three nodes behind relays."""

    def __init__(self, folder: Path, relays: Relays, secured: SecuredNodes) -> None:
        self._relays = relays
        self._ports: dict[str, int] = {}
        super().__init__("barnabas", folder, secured=secured)

    @property
    def bootstrap_servers(self) -> str:
        """The relays of every broker."""
        return ",".join(f"127.0.0.1:{self._port('broker', node)}" for node in self.brokers)

    def _port(self, role: str, node: NodeProcess) -> int:
        name = f"{role} {node.node_id}"
        if name not in self._ports:
            own = node.port if role == "broker" else node.controller_port
            assert own is not None
            self._ports[name] = self._relays.add(name, lambda: own)
        return self._ports[name]

    def properties(self, node: NodeProcess) -> dict[str, str]:
        """Return the node's file, with the relays' ports where others learn of it."""
        found = super().properties(node)
        clients = found["advertised.listeners"].partition("://")[0]
        voters = [f"{each.node_id}@127.0.0.1:{self._port('controller', each)}" for each in self.controllers]
        advertised = f"{clients}://127.0.0.1:{self._port('broker', node)},CONTROLLER://127.0.0.1:{self._port('controller', node)}"
        return found | {"advertised.listeners": advertised, "controller.quorum.voters": ",".join(voters)}
