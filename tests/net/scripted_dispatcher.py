"""A dispatcher whose answers the test writes: frames in, canned bytes, slices or futures out."""

from __future__ import annotations

import os
import struct
from collections.abc import Callable
from typing import Any

from barnabas.api.serving.context import ConnectionInfo, RequestContext

PRODUCE, FETCH, METADATA = 0, 1, 3


def request(key: int, correlation_id: int, body: bytes = b"") -> bytes:
    """A whole frame: size, header version 1 with a null client id, body."""
    payload = struct.pack(">hhih", key, 1, correlation_id, -1) + body
    return struct.pack(">i", len(payload)) + payload


def response(correlation_id: int, body: bytes = b"") -> bytearray:
    return bytearray(struct.pack(">ii", 4 + len(body), correlation_id) + body)


class ScriptedDispatcher:
    """Answers by a function of context and body; keeps the order in which requests were handled."""

    def __init__(self, answer: Callable[[RequestContext, bytes], Any]) -> None:
        self._answer = answer
        self.handled: list[int] = []
        self.contexts: list[RequestContext] = []

    def dispatch(self, connection: ConnectionInfo, frame: memoryview) -> tuple[RequestContext, Any]:
        key, version, correlation_id, _ = struct.unpack_from(">hhih", frame)
        context = RequestContext(None, connection, key, version, correlation_id)  # type: ignore[arg-type]
        self.handled.append(correlation_id)
        self.contexts.append(context)
        return context, self._answer(context, bytes(frame[10:]))


class FileSlice:
    """A record slice of a real file."""

    def __init__(self, fd: int, position: int, size: int) -> None:
        self._fd = fd
        self.position = position
        self.size = size

    def fileno(self) -> int:
        return self._fd

    def read(self) -> bytes:
        return os.pread(self._fd, self.size, self.position)


class BytesSlice(FileSlice):
    """A record slice without a file, as the simulator has them."""

    def __init__(self, data: bytes) -> None:
        super().__init__(-1, 0, len(data))
        self._data = data

    def read(self) -> bytes:
        return self._data
