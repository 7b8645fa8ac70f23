"""A whole node without sockets: requests go in as the bytes a client would send, responses come out decoded."""

from __future__ import annotations

import asyncio
import random
import struct
from pathlib import Path
from typing import Any

from barnabas.api.serving.context import ConnectionInfo
from barnabas.api.serving.dispatch import Dispatcher
from barnabas.config.config import BrokerConfig
from barnabas.log.disk import Disk, OsDisk
from barnabas.node.node import Node
from barnabas.protocol.api_keys import api, request_header_version, response_header_version
from barnabas.protocol.messages import CreateTopicsRequest

DIALLED = ("dialled.example", 19092)


class Serving:
    """A node in memory of one loop; `ask` is a client's round trip."""

    def __init__(
        self,
        folder: Path,
        *,
        disk: Disk | None = None,
        loop: asyncio.AbstractEventLoop | None = None,
        is_started: bool = True,
        seed: int = 1,
        **settings: str,
    ) -> None:
        self.loop = loop or asyncio.new_event_loop()
        self.now_ms = 1_700_000_000_000
        properties = {
            "listeners": "PLAINTEXT://127.0.0.1:0",
            "log.dirs": str(folder / "data"),
            **{name.replace("_", "."): value for name, value in settings.items()},
        }
        self.node = Node(
            BrokerConfig.from_properties(properties, embedded=True),
            loop=self.loop,
            disk=disk or OsDisk(),
            now_ms=lambda: self.now_ms,
            random=random.Random(seed),
        )
        self.server = self.node.broker
        self.connection = ConnectionInfo("test", "PLAINTEXT", "10.0.0.9", 50000, *DIALLED)
        if is_started:
            self.loop.run_until_complete(self.node.start())
            self.dispatcher = Dispatcher(self.server.services)

    def close(self) -> None:
        self.loop.run_until_complete(self.node.stop())
        self.loop.run_until_complete(self.loop.shutdown_default_executor())
        self.loop.close()

    def send(self, key: int, version: int, body: bytes) -> bytes | None:
        """Send a request's body; returns what follows the response's size, None when nothing is answered."""
        header = struct.pack(">hhih", key, version, 42, 4) + b"test"
        if request_header_version(key, version) >= 2:
            header += b"\0"

        async def dispatched() -> Any:
            buffer = bytearray(header + body)
            _, result = self.dispatcher.dispatch(self.connection, memoryview(buffer))
            buffer[:] = bytes(len(buffer))  # The connection reads the next bytes into it.
            if isinstance(result, asyncio.Future):
                await asyncio.wait((result,))
                result = result.result()
            return result

        parts = self.loop.run_until_complete(dispatched())
        if parts is None:
            return None
        whole = b"".join(part if isinstance(part, bytearray) else part.read() for part in parts)
        assert struct.unpack_from(">ii", whole) == (len(whole) - 4, 42)
        return whole[8:]

    def ask(self, request: Any, version: int | None = None) -> Any:
        """A round trip in one version, the newest by default."""
        key = request.API_KEY
        if version is None:
            version = self.dispatcher.route(key).max_version
        body = self.send(key, version, request.encode(version))
        assert body is not None, "no response"
        skipped = response_header_version(key, version)
        return api(key).response_class.decode(body[skipped:], version)

    def create_topic(self, name: str, partitions: int = 1, **configs: str) -> None:
        topic = CreateTopicsRequest.CreatableTopic(
            name=name,
            num_partitions=partitions,
            replication_factor=1,
            configs=[
                CreateTopicsRequest.CreatableTopicConfig(name=key.replace("_", "."), value=value)
                for key, value in configs.items()
            ],
        )
        answer = self.ask(CreateTopicsRequest(topics=[topic]))
        assert answer.topics[0].error_code == 0, answer
