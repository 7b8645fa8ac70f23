"""One client's connection: frames in, requests handled in order, responses out, memory bounded on both sides. Shell.

    socket → FrameBuffer → Dispatcher → response or future → pending queue → socket

Reading
- A request's frame lies in a buffer until its handler has run. Buffers belong to the listener; a connection holds one only
  while it has bytes that are not handled, so that a thousand idle connections cost next to nothing and the buffer in use is
  usually still in the processor's cache. One that grew for a large request stays with its connection until the next sweep.
- One request is under way at a time. The exception is Produce after Produce: while earlier ones wait for the high
  watermark, later ones are already appended, in order. Anything else stays in the buffer until the queue is empty.
- When bytes arrive that may not be handled yet, reading pauses. The kernel's window then holds the client back.
- With `queued.max.request.bytes`, a large request is read on only once it has its share of that memory.

Writing
- Responses leave in the order of their requests: `_pending` holds a response, or the future of one, for each.
- Bytes go to the transport. A response with record slices goes past it: `send` with MSG_MORE for the bytes, `sendfile` for the
  records, so that a large fetch never passes through this process's memory. This is only done while the transport holds
  nothing, and waits for writability on a duplicate of the socket, because the loop owns the original. Without a real socket
  (the simulator) slices are read into bytes.
- A slice's descriptor is asked for at each step: its segment may be closed and reopened meanwhile.
- When more than `WRITE_LIMIT` bytes wait in the transport, no further request is read. A client that never reads its
  responses therefore costs one response beyond that limit, and the idle sweep ends it.

Throttling
- After an answer that tells its client to rest, nothing of this connection is handled until the rest is over, and once
  bytes arrive meanwhile nothing is read either. What is unsent goes on to leave.

Closing
- A peer's fault (`RefusedRequest`, a frame of an impossible size) costs one line of log and the connection; nobody else notices.
- A future whose connection is gone is cancelled, which takes its waiter out of the purgatory.
- A handler may ask for the end (`close_connection`, as a failed acks=0 produce must); what was answered before still leaves.

Sources: Kafka's `SocketServer.Processor`, `Selector` (mute and idle expiry); the measured order of send and sendfile.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections import deque
from typing import TYPE_CHECKING, Any, cast

from barnabas.api.context import ConnectionInfo, RequestContext
from barnabas.api.dispatch import Dispatcher, Output, RefusedRequest
from barnabas.protocol.errors import MalformedMessage
from barnabas.protocol.framing import READ_BYTES, FrameBuffer
from barnabas.protocol.primitives import RecordSlice
from barnabas.server.slice_sending import Rest, send_slice

if TYPE_CHECKING:
    from barnabas.server.listener import Listener
    from barnabas.server.request_memory import RequestMemory

__all__ = ["Connection"]

log = logging.getLogger(__name__)

WRITE_LIMIT = 256 * 1024
"""Unsent bytes above which no further request of this client is handled."""

PIPELINE_LIMIT = 256
"""Produce requests of one connection that may wait for the high watermark at once."""

# Below this many bytes a copy through the transport is cheaper than a system call more.
_SMALL = 16 * 1024
_MSG_MORE = getattr(socket, "MSG_MORE", 0)
_PRODUCE = 0


class Connection(asyncio.BufferedProtocol):
    """One client's connection.

    Args:
        listener: where it came in; it knows the dispatcher and the limits.
    """

    __slots__ = (
        "_blocked_frame",
        "_direct",
        "_dispatcher",
        "_frames",
        "_is_admitted",
        "_is_closing",
        "_is_reading_paused",
        "_is_writing_paused",
        "_listener",
        "_muted_until",
        "_out",
        "_pending",
        "_reserved",
        "_transport",
        "_waits_for",
        "active_tick",
        "info",
    )

    def __init__(self, listener: Listener) -> None:
        self._listener = listener
        self._dispatcher: Dispatcher | None = None
        self._frames: FrameBuffer | None = None
        self._blocked_frame: memoryview | None = None
        self._pending: deque[tuple[RequestContext, Output | asyncio.Future[Any] | None]] = deque()
        self._out: deque[bytearray | memoryview | RecordSlice] = deque()
        self._direct: socket.socket | None = None
        self._waits_for = ""
        self._reserved = 0
        self._is_admitted = False
        self._is_reading_paused = False
        self._is_writing_paused = False
        self._is_closing = False
        self._muted_until: asyncio.TimerHandle | None = None
        self.active_tick = listener.tick
        self.info: ConnectionInfo
        self._transport: asyncio.Transport

    def __repr__(self) -> str:
        return f"Connection({self.info.connection_id}, {len(self._pending)} pending, {len(self._out)} parts unsent)"

    # What the loop calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transport has the methods of asyncio.Transport without being one.
        self._transport = cast("asyncio.Transport", transport)
        self.info = self._listener.describe(transport)
        self._transport.set_write_buffer_limits(high=WRITE_LIMIT)
        self._listener.arrived(self)

    def admitted(self) -> None:
        """Begin to handle requests, as soon as the broker is ready: `resume` says so."""
        self._is_admitted = True
        if self._listener.is_serving:
            self.resume()

    def resume(self) -> None:
        """Begin to handle requests, if the connection is admitted: it was made before the broker was ready."""
        if self._is_admitted:
            self._dispatcher = self._listener.dispatcher
            self._process()

    def connection_lost(self, exc: Exception | None) -> None:
        self._is_closing = True
        for _, result in self._pending:
            if isinstance(result, asyncio.Future):
                result.cancel()
        self._pending.clear()
        self._out.clear()
        self._stop_direct()
        if self._muted_until is not None:
            self._muted_until.cancel()
            self._muted_until = None
        self._blocked_frame = None
        self.release_buffer()
        self._frames = None
        memory = self._listener.memory
        if memory is not None:
            memory.forget(self)
            if self._reserved:
                memory.give_back(self._reserved)
                self._reserved = 0
        self._listener.forget(self)
        self.info.closed()

    def get_buffer(self, sizehint: int) -> memoryview:
        frames = self._frames
        if frames is None:
            frames = self._frames = self._listener.take_buffer()
        return frames.get_buffer(sizehint)

    def buffer_updated(self, nbytes: int) -> None:
        assert self._frames is not None, "bytes arrived in a buffer that was never given"
        self._frames.received(nbytes)
        self.active_tick = self._listener.tick
        self._process()

    def eof_received(self) -> bool:
        # The loop asked for a buffer before it knew that there was nothing to read; many clients may leave at once.
        self.release_buffer()
        return False

    def pause_writing(self) -> None:
        self._is_writing_paused = True

    def resume_writing(self) -> None:
        self._is_writing_paused = False
        self.active_tick = self._listener.tick
        if self._waits_for == "drain":
            self._waits_for = ""
            self._transport.set_write_buffer_limits(high=WRITE_LIMIT)
            self._send_directly()
        self._process()

    # Requests.

    def _process(self) -> None:
        """Handle whole frames for as long as the order of requests and the unsent output allow."""
        if self._is_closing or self._frames is None:
            return
        if self._dispatcher is None:
            self._pause_reading()
            return
        try:
            if self._blocked_frame is not None:
                blocked = self._blocked_frame
                if not self._may_handle(blocked):
                    return
                self._blocked_frame = None
                self._handle(blocked)
                if self._is_closing:
                    return
            while (frame := self._frames.next_frame()) is not None:
                if not self._may_handle(frame):
                    self._blocked_frame = frame
                    self._pause_reading()
                    return
                self._handle(frame)
                if self._is_closing:
                    return
        except RefusedRequest as refused:
            self._refuse(str(refused))
            return
        except MalformedMessage as error:
            self._refuse(f"malformed frame: {error}")
            return
        if not self._frames.pending and self._frames.capacity <= READ_BYTES:
            self._listener.give_back(self._frames)
            self._frames = None
        if self._listener.memory is not None and not self._has_memory(self._listener.memory):
            self._pause_reading()
            return
        if self._is_reading_paused and not self._is_closing:
            self._is_reading_paused = False
            self._transport.resume_reading()

    def _has_memory(self, memory: RequestMemory) -> bool:
        """Whether the rest of the request that has begun may be read; gives back what the one before it took."""
        announced = 0 if self._frames is None else self._frames.announced
        if announced <= READ_BYTES:
            announced = 0
        if announced == self._reserved:
            return True
        given_back, self._reserved = self._reserved, 0
        if announced and memory.take(self, announced):
            self._reserved = announced
        if given_back:
            memory.give_back(given_back)
        return announced == self._reserved

    def memory_came_back(self) -> None:
        """Other requests were handled: ask again for the memory that this one needs."""
        self._process()

    def _pause_reading(self) -> None:
        if not self._is_reading_paused:
            self._is_reading_paused = True
            self._transport.pause_reading()

    def _may_handle(self, frame: memoryview) -> bool:
        if self._is_writing_paused or self._out or self._muted_until is not None:
            return False
        if not self._pending:
            return True
        is_produce = len(frame) >= 2 and frame[0] == 0 and frame[1] == _PRODUCE
        previous = self._pending[-1][0]
        if not is_produce or previous.api_key != _PRODUCE or previous.holds_order:
            return False
        return len(self._pending) < PIPELINE_LIMIT

    def _handle(self, frame: memoryview) -> None:
        dispatcher = self._dispatcher
        assert dispatcher is not None, "a request is handled before the broker is ready"
        context, result = dispatcher.dispatch(self.info, frame)
        if isinstance(result, asyncio.Future):
            self._pending.append((context, result))
            result.add_done_callback(self._on_done)
        elif self._pending:
            self._pending.append((context, result))
        else:
            self._answer(context, result)

    def _on_done(self, future: asyncio.Future[Any]) -> None:
        if self._is_closing:
            if not future.cancelled():
                # Nobody is left to tell; looking at the exception keeps the loop from reporting it.
                future.exception()
            return
        pending, dispatcher = self._pending, self._dispatcher
        assert dispatcher is not None, "a request was handled before the broker was ready"
        while pending and not self._is_closing:
            context, result = pending[0]
            if isinstance(result, asyncio.Future):
                if not result.done():
                    break
                if result.cancelled():
                    self._refuse(f"{context!r} was cancelled")
                    return
                try:
                    result = dispatcher.complete(context, result)
                except RefusedRequest as refused:
                    self._refuse(str(refused))
                    return
            pending.popleft()
            self._answer(context, result)
        self._process()

    # Responses.

    def _answer(self, context: RequestContext, output: Output | None) -> None:
        if output is not None:
            if len(output) == 1 and not self._out and isinstance(output[0], bytearray):
                self._transport.write(output[0])
            else:
                self._send(output)
        if context.accounting is not None and context.accounting.throttle_ms:
            self._mute(context.accounting.throttle_ms)
        if context.close_connection:
            self._refuse(f"{context!r} ends the connection")

    def _mute(self, throttle_ms: int) -> None:
        """Handle no further request for a while, or for a while longer."""
        loop = self._listener.loop
        when = loop.time() + throttle_ms / 1000
        if self._muted_until is not None:
            if self._muted_until.when() >= when:
                return
            self._muted_until.cancel()
        self._muted_until = loop.call_at(when, self._unmute)

    def _unmute(self) -> None:
        self._muted_until = None
        self.active_tick = self._listener.tick
        self._process()

    def _send(self, output: Output) -> None:
        slices = sum(part.size for part in output if not isinstance(part, bytearray))
        if not self._out and (slices <= _SMALL or self._socket() is None):
            self._transport.write(b"".join(part if isinstance(part, bytearray) else part.read() for part in output))
            return
        self._out.extend(output)
        if not self._waits_for:
            self._send_directly()

    def _socket(self) -> socket.socket | None:
        """A duplicate of the socket, for sendfile; None when the transport has no plain socket."""
        if self._direct is None:
            original = self._transport.get_extra_info("socket")
            if original is None or not hasattr(os, "sendfile"):
                return None
            self._direct = socket.socket(original.family, original.type, fileno=os.dup(original.fileno()))
            self._direct.setblocking(False)
        return self._direct

    def _send_directly(self) -> None:
        """Send `_out` past the transport until it is empty or the socket takes no more."""
        if self._transport.get_write_buffer_size():
            self._waits_for = "drain"
            self._transport.set_write_buffer_limits(high=0)
            return
        direct = self._direct
        assert direct is not None, "slices wait but there is no socket to send them to"
        out = self._out
        try:
            while out:
                part = out[0]
                if isinstance(part, (bytearray, memoryview)):
                    sent = direct.send(part, _MSG_MORE if len(out) > 1 else 0)
                    if sent < len(part):
                        out[0] = memoryview(part)[sent:]
                        continue
                else:
                    sent = send_slice(direct.fileno(), part)
                    if sent < part.size:
                        out[0] = Rest(part, sent)
                        continue
                out.popleft()
        except BlockingIOError:
            if self._waits_for != "socket":
                self._waits_for = "socket"
                self._listener.loop.add_writer(direct.fileno(), self._on_writable)
            return
        except OSError as error:
            self._refuse(
                f"cannot send: {error}", logging.DEBUG if isinstance(error, ConnectionError) else logging.WARNING
            )
            return
        self._stop_waiting()

    def _on_writable(self) -> None:
        self.active_tick = self._listener.tick
        self._send_directly()
        if not self._out and not self._is_closing:
            self._process()

    def _stop_waiting(self) -> None:
        if self._waits_for == "socket" and self._direct is not None:
            self._listener.loop.remove_writer(self._direct.fileno())
        self._waits_for = ""

    def _stop_direct(self) -> None:
        self._stop_waiting()
        if self._direct is not None:
            self._direct.close()
            self._direct = None

    # The end.

    @property
    def is_idle(self) -> bool:
        """Nothing is under way that would end by itself."""
        return not self._pending and self._muted_until is None

    @property
    def is_muted(self) -> bool:
        """The client rests, because it is over a quota."""
        return self._muted_until is not None

    @property
    def unsent_bytes(self) -> int:
        """Response bytes that wait in this process's memory; slices of files do not count."""
        waiting = sum(len(part) for part in self._out if isinstance(part, (bytearray, memoryview)))
        return self._transport.get_write_buffer_size() + waiting

    def release_buffer(self) -> None:
        """Give back an empty buffer: one that a read brought nothing into, or one that grew for large requests."""
        if self._frames is not None and self._blocked_frame is None and not self._frames.pending:
            self._listener.give_back(self._frames)
            self._frames = None

    def close(self) -> None:
        """End the connection after what is already in the transport."""
        self._is_closing = True
        self._transport.close()

    def abort(self, reason: str) -> None:
        """End the connection at once, whatever is unsent."""
        log.info("Closing connection %s: %s", self.info.connection_id, reason)
        self._is_closing = True
        self._transport.abort()

    def _refuse(self, reason: str, level: int = logging.WARNING) -> None:
        if not self._is_closing:
            log.log(level, "Closing connection %s: %s", self.info.connection_id, reason)
            self.close()
