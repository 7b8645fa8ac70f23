"""A node of a simulated world whose controller listener answers by a function; it keeps what it was asked."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Callable
from typing import Any, NamedTuple

from barnabas.protocol.api_keys import ApiKey, api
from barnabas.protocol.framing import parse_request_header
from barnabas.raft.voters import VoterEndpoint
from barnabas.simulation.node import Node
from barnabas.simulation.world import World
from tests.client.scripted_broker import frame_response, versions_response

PORT = 9093
APIS = {key: (api(key).min_version, api(key).max_version) for key in (18, 19, 20, 56, 58, 62, 63, 67)}


class Asked(NamedTuple):
    """A request as the controller read it, and when."""

    seconds: float
    api_key: int
    version: int
    client_id: str | None
    request: Any


class Close:
    """An answer: the connection ends instead."""


class ScriptedController:
    """A controller on a node of its own.

    Attributes:
        answer: returns the response to a request, None for silence, or `Close()`.
        asked: what it was asked, without ApiVersions.
        connections: how many were made.
        apis: the lowest and the highest version of each API that it knows.
    """

    def __init__(self, world: World, name: str, answer: Callable[[Asked], Any]) -> None:
        self.node: Node = world.add_node(name)
        self.answer = answer
        self.asked: list[Asked] = []
        self.connections = 0
        self.apis = dict(APIS)
        self.endpoint = VoterEndpoint("CONTROLLER", self.node.host, PORT)

    async def listen(self) -> None:
        async def serve() -> None:
            await self.node.loop.create_server(lambda: _Connection(self), self.node.host, PORT)

        await self.node.run(serve())

    @property
    def keys(self) -> list[int]:
        return [asked.api_key for asked in self.asked]


class _Connection(asyncio.Protocol):
    def __init__(self, controller: ScriptedController) -> None:
        self._controller = controller
        self._data = b""
        self._transport: Any = None
        controller.connections += 1

    def connection_made(self, transport: Any) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._data += data
        while len(self._data) >= 4 and len(self._data) >= (size := 4 + struct.unpack_from(">i", self._data)[0]):
            frame, self._data = self._data[4:size], self._data[size:]
            self._take(frame)

    def _take(self, frame: bytes) -> None:
        header, position = parse_request_header(frame)
        key, version = header.api_key, header.api_version
        if key == ApiKey.API_VERSIONS:
            response = versions_response(self._controller.apis)
        else:
            request, _ = api(key).request_class.read(frame, position, version)
            asked = Asked(self._controller.node.loop.time(), key, version, header.client_id, request)
            self._controller.asked.append(asked)
            response = self._controller.answer(asked)
        if isinstance(response, Close):
            self._transport.close()
        elif response is not None:
            self._transport.write(frame_response(key, version, header.correlation_id, response))
