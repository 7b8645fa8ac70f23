"""A stream of bytes cut into requests, in place.

    frame            int32 size | size bytes
    request          int16 api key | int16 api version | int32 correlation id | int16 length, client id (-1 null)
                     | tag buffer (header v2 only) | body

`FrameBuffer` does no I/O: the shell asks where to put bytes (`get_buffer`), says how many arrived (`received`), and takes the
frames that are whole (`frames`). A frame is a view of the buffer; nothing is copied but the unfinished frame at the end, and that
only when it must move to make room.

Invariants:
- start ≤ stop ≤ len(buffer): the bytes between them have arrived and are not yet taken.
- A frame taken is valid until the next `get_buffer`, or for ever after `detach`.
- While frames are taken after each read, the buffer holds at most the largest allowed frame with its size field, or one read if
  that is more. It shrinks back once some reads in a row have needed much less.
- A negative or too large size is rejected as soon as its four bytes are there, before memory is allocated for it.

Sources: Kafka's `NetworkReceive`, `RequestHeader`; KIP-511 (an unknown ApiVersions version is still answered).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

from barnabas.protocol.api_keys import api
from barnabas.protocol.errors import FrameTooLarge, MalformedMessage
from barnabas.protocol.primitives import skip_tags

SIZE = struct.Struct(">i")
HEADER = struct.Struct(">hhih")
READ_BYTES = 64 * 1024
"""Room offered for one read: large enough that a busy connection needs few, small enough for many idle ones."""

SMALL_READS_MAX = 16
"""Reads in a row that need less than half the buffer before it shrinks: a producer of large batches keeps its large buffer."""

TRUSTED_BYTES = 1 << 20
"""A frame announced to be no larger than this gets its memory in the beginning."""


class FrameBuffer:
    """One connection's bytes on their way to whole frames.

    Args:
        max_frame_bytes: the largest size a frame may announce (`socket.request.max.bytes`).
        read_bytes: room to offer for a read.

    Attributes:
        max_frame_bytes: may change while bytes are pending.
    """

    def __init__(self, max_frame_bytes: int, read_bytes: int = READ_BYTES) -> None:
        assert max_frame_bytes > 0
        assert read_bytes >= SIZE.size
        self.max_frame_bytes = max_frame_bytes
        self._read_bytes = read_bytes
        self._buffer = bytearray(read_bytes)
        self._view = memoryview(self._buffer)
        self._start = 0
        self._stop = 0
        self._small_reads = 0

    def __repr__(self) -> str:
        return f"<FrameBuffer {self._start}-{self._stop} of {len(self._buffer)}>"

    @property
    def pending(self) -> int:
        """Bytes that have arrived and belong to no frame taken yet."""
        return self._stop - self._start

    @property
    def announced(self) -> int:
        """The size of the next frame with its size field; 0 while it is not known. Raises as `frames`."""
        return self._frame_bytes()

    @property
    def capacity(self) -> int:
        """Bytes of memory held."""
        return len(self._buffer)

    def get_buffer(self, hint: int = -1) -> memoryview:
        """Return the memory for the next bytes; never empty. Frames taken before are no longer valid.

        Args:
            hint: the size that the event loop expects; ignored, since it guesses worse than the size of the frame.
        """
        pending = self._stop - self._start
        capacity = len(self._buffer)
        if not pending:
            self._start = self._stop = 0
            if capacity == self._read_bytes:
                return self._view
        # An announced size is only a promise: beyond `TRUSTED_BYTES`, memory follows what arrives, twice as much each time.
        needed = max(min(self._frame_bytes(), max(TRUSTED_BYTES, 2 * pending)), self._read_bytes)
        self._small_reads = self._small_reads + 1 if needed * 2 <= capacity else 0
        if needed > capacity or pending == capacity or (self._small_reads > SMALL_READS_MAX and pending <= needed):
            self._move_to(needed)
        elif self._start and (self._start + needed > capacity or capacity - self._stop < self._read_bytes // 4):
            self._view[:pending] = self._view[self._start : self._stop]
            self._start, self._stop = 0, pending
        return self._view[self._stop :]

    def received(self, count: int) -> None:
        """Note that `count` bytes were put into the last buffer given."""
        assert 0 <= count <= len(self._buffer) - self._stop
        self._stop += count

    def frames(self) -> Iterator[memoryview]:
        """Take each whole frame, without its size.

        Raises:
            FrameTooLarge, MalformedMessage: the stream cannot be followed any further; close the connection.
        """
        while (frame := self.next_frame()) is not None:
            yield frame

    def next_frame(self) -> memoryview | None:
        """Take the next whole frame; None if it is not complete. Raises as `frames`."""
        start = self._start
        if start == self._stop:
            return None
        size = self._frame_bytes()
        if size == 0 or self._stop - start < size:
            return None
        self._start = start + size
        return self._view[start + SIZE.size : start + size]

    def detach(self) -> None:
        """Leave the buffer to the frames taken so far, so that they stay valid, and continue in a new one."""
        self._move_to(max(self._frame_bytes(), self._read_bytes))

    def shrink(self) -> None:
        """Keep no more memory than the pending bytes take; frames taken so far stay valid."""
        if self.pending + 1 < len(self._buffer):
            self._move_to(self.pending + 1)

    def _frame_bytes(self) -> int:
        """Return the size of the frame that begins at `start`, its size field included; 0 while that is not known."""
        if self._stop - self._start < SIZE.size:
            return 0
        (size,) = SIZE.unpack_from(self._view, self._start)
        if size < 0:
            raise MalformedMessage(f"a frame announces {size} bytes")
        if size > self.max_frame_bytes:
            raise FrameTooLarge(f"a frame announces {size} bytes, {self.max_frame_bytes} are allowed", size)
        return int(size) + SIZE.size

    def _move_to(self, capacity: int) -> None:
        """Continue in a new buffer that begins with the pending bytes."""
        pending = self.pending
        buffer = bytearray(capacity if pending < capacity else pending + self._read_bytes)
        view = memoryview(buffer)
        view[:pending] = self._view[self._start : self._stop]
        self._buffer, self._view = buffer, view
        self._start, self._stop = 0, pending
        self._small_reads = 0


_NEVER = 1 << 15
_flexible_from: dict[int, int] = {}
"""The first flexible version of each API that has been asked for."""


class RequestHeader(NamedTuple):
    """The header of a request; its tagged fields are skipped, Kafka defines none."""

    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None


def parse_request_header(frame: memoryview | bytes | bytearray) -> tuple[RequestHeader, int]:
    """Read the header of a request; returns it and where the body begins.

    The version may be one the broker does not serve: the header is still readable, and ApiVersions must answer it.

    Raises:
        MalformedMessage: the bytes are no header.
        KafkaError: UNSUPPORTED_VERSION, no API has the key; close the connection.
    """
    view = frame if type(frame) is memoryview else memoryview(frame)
    try:
        api_key, api_version, correlation_id, length = HEADER.unpack_from(view)
    except struct.error as error:
        raise MalformedMessage(f"a frame of {len(view)} bytes holds no request header") from error
    pos = HEADER.size
    client_id = None
    if length >= 0:
        stop = pos + length
        if stop > len(view):
            raise MalformedMessage(f"a client id of {length} bytes where {len(view) - pos} remain")
        try:
            client_id = str(view[pos:stop], "utf-8")
        except UnicodeDecodeError as error:
            raise MalformedMessage("the client id is not UTF-8") from error
        pos = stop
    elif length < -1:
        raise MalformedMessage(f"a client id of {length} bytes")
    flexible_from = _flexible_from.get(api_key)
    if flexible_from is None:
        first = api(api_key).flexible_from
        flexible_from = _flexible_from[api_key] = _NEVER if first is None else first
    if api_version >= flexible_from:
        if pos < len(view) and view[pos] == 0:
            pos += 1
        else:
            pos = skip_tags(view, pos, len(view))
    return RequestHeader(api_key, api_version, correlation_id, client_id), pos
