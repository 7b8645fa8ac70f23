"""A small asyncio client for the simulated world: one connection, one request at a time, any message."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Callable
from typing import Any, Protocol

from barnabas.protocol.api_keys import ApiKey, request_header_version, response_header_version
from barnabas.protocol.messages import RequestHeader, ResponseHeader


class Asks(Protocol):
    """What workers ask: one broker, or the broker of a cluster that the request is for."""

    async def request(self, key: ApiKey, version: int, message: Any, response_class: Any) -> Any:
        """Send one request and return its answer."""


Connect = Callable[[str], Asks]
"""Makes what a worker asks, for a client id."""


class Client:
    """Connects when first used and again after any failure; a failure is the caller's to handle."""

    def __init__(self, address: tuple[str, int], client_id: str, timeout: float = 10.0) -> None:
        self._address, self._client_id, self._timeout = address, client_id, timeout
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        self._correlation = 0

    async def request(self, key: ApiKey, version: int, message: Any, response_class: Any) -> Any:
        """Send one request and decode its answer.

        Raises:
            ConnectionError, asyncio.TimeoutError, asyncio.IncompleteReadError: the answer did not come; the request may have been done.
        """
        loop: Any = asyncio.get_running_loop()
        began = loop.time()
        try:
            async with asyncio.timeout(self._timeout):
                answer = await self._exchange(key, version, message, response_class)
        except (OSError, TimeoutError, asyncio.IncompleteReadError) as error:
            loop.note(f"{self._client_id}: no answer to {key.name}: {type(error).__name__}", is_detail=True)
            self.drop()
            raise
        took_ms = (loop.time() - began) * 1000
        loop.note(f"{self._client_id}: {key.name} of {self._address[0]} took {took_ms:.1f} ms", is_detail=True)
        return answer

    async def _exchange(self, key: ApiKey, version: int, message: Any, response_class: Any) -> Any:
        if self._streams is None:
            self._streams = await asyncio.open_connection(*self._address)
        reader, writer = self._streams
        self._correlation += 1
        writer.write(framed_request(key, version, message, self._correlation, self._client_id))
        (size,) = struct.unpack(">i", await reader.readexactly(4))
        answer = memoryview(await reader.readexactly(size))
        return read_answer(answer, key, version, self._correlation, response_class)

    def drop(self) -> None:
        if self._streams is not None:
            self._streams[1].transport.abort()
            self._streams = None


def framed_request(key: ApiKey, version: int, message: Any, correlation: int, client_id: str) -> bytes:
    """Return the bytes of a request, with their length in front."""
    header = RequestHeader(
        request_api_key=int(key), request_api_version=version, correlation_id=correlation, client_id=client_id
    )
    data = header.encode(request_header_version(key, version)) + message.encode(version)
    return struct.pack(">i", len(data)) + bytes(data)


def read_answer(answer: memoryview, key: ApiKey, version: int, correlation: int, response_class: Any) -> Any:
    """Return the message of an answer, which must be to the request with that correlation id."""
    head, at = ResponseHeader.read(answer, 0, response_header_version(key, version))
    assert head.correlation_id == correlation, "an answer to another request"
    return response_class.decode(answer[at:], version)
