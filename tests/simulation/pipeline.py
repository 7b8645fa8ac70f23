"""One connection with several requests in flight; their answers come in the order of the requests."""

from __future__ import annotations

import asyncio
import struct
from collections import deque
from typing import Any

from barnabas.protocol.api_keys import ApiKey
from tests.simulation.client import framed_request, read_answer
from tests.simulation.cluster_client import Address


class Pipeline:
    """An open connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, client_id: str) -> None:
        self._reader, self._writer, self._client_id = reader, writer, client_id
        self._correlation = 0
        self._waiting: deque[tuple[int, ApiKey, int, Any, asyncio.Future[Any]]] = deque()
        self._reading = asyncio.ensure_future(self._read())

    @classmethod
    async def open(cls, address: Address, client_id: str, timeout_seconds: float = 7.0) -> Pipeline:
        """Connect.

        Raises:
            ConnectionError, asyncio.TimeoutError: nobody answers there.
        """
        async with asyncio.timeout(timeout_seconds):
            return cls(*await asyncio.open_connection(*address), client_id)

    @property
    def in_flight(self) -> int:
        """How many requests have no answer."""
        return len(self._waiting)

    def send(self, key: ApiKey, version: int, message: Any, response_class: Any) -> asyncio.Future[Any]:
        """Send one request; return a future of its answer, which fails as `Client.request` does."""
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._correlation += 1
        self._waiting.append((self._correlation, key, version, response_class, answer))
        if self._reading.done():
            self._fail(ConnectionResetError("the connection has ended"))
        else:
            self._writer.write(framed_request(key, version, message, self._correlation, self._client_id))
        return answer

    def drop(self) -> None:
        """Break the connection."""
        self._writer.transport.abort()
        self._reading.cancel()
        self._fail(ConnectionResetError("dropped"))

    async def _read(self) -> None:
        try:
            while True:
                (size,) = struct.unpack(">i", await self._reader.readexactly(4))
                data = memoryview(await self._reader.readexactly(size))
                correlation, key, version, response_class, answer = self._waiting.popleft()
                found = read_answer(data, key, version, correlation, response_class)
                if not answer.done():
                    answer.set_result(found)
        except (OSError, asyncio.IncompleteReadError) as error:
            self._fail(error)

    def _fail(self, error: Exception) -> None:
        while self._waiting:
            answer = self._waiting.popleft()[-1]
            if not answer.done():
                answer.set_exception(error)
