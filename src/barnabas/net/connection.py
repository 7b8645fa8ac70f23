"""One client's connection: frames in, requests handled in order, responses out, memory bounded on both sides.

    socket → FrameBuffer → Dispatcher → ResponseQueue → transport, or SliceSender → socket

A request is handled when nothing holds it back:

    hold       is set when                                     is lifted when
    STARTING   the connection is made                          the connection is admitted and the broker is ready
    UNSENT     more than `WRITE_LIMIT` bytes wait              the transport has sent enough of them
    SENDING    a response with slices does not fit the socket  its last byte has left
    RESTING    a response tells its client to rest             the rest is over
    YIELDING   the turn of the loop is used up                 the loop's next turn begins
    CLOSING    the connection is closed, by either side        never

and when `ResponseQueue` admits it behind the requests that still wait. Every input (bytes, a future that is done, a hold that is
lifted, memory that is free) calls `_advance`, which sends, handles and reads as far as it may.

Reading
- A request's frame lies in a buffer until its handler has run. Buffers belong to the listener; a connection holds one only
  while it has bytes that are not handled, so that a thousand idle connections cost next to nothing and the buffer in use is
  usually still in the processor's cache. A buffer that grew for a large request stays with its connection until the next sweep.
- When a request arrives that may not be handled yet, reading pauses. The kernel's window then holds the client back.
- While a Produce holds the order, reading pauses too: a producer with acks=0 may close its connection at once, and its end must not
  cancel the append of what it has sent.
- A client may send many requests at once. When they have used up the turn of the loop (`turns`), the rest wait for the next one.
- With `queued.max.request.bytes`, a large request is read on only once it has its share of that memory. The connection keeps the
  share until the request is answered and its buffer dropped.
- A request that has begun and does not go on arriving costs the connection (`arrival`).

Writing
- Bytes go to the transport; a response with more than `SMALL_BYTES` of record slices goes to the `SliceSender`. Without a real
  socket (the simulator) slices are read into bytes. Where the transport encrypts, a response that is larger than a piece goes to the
  `PieceSender`, which takes turns.
- A client that never reads its responses costs one response beyond `WRITE_LIMIT`, and the idle sweep closes its connection.
- While a client rests, its unsent responses still leave.

Closing
- A peer's fault (`RefusedRequest`, a frame of an impossible size) costs the connection and a line of log, one a minute for each
  address (`RepeatedLines`).
- A closed connection cancels the futures of its waiting requests at once, which takes them out of the purgatory.
- A handler may close its connection (`close_connection`, as a failed acks=0 produce must); earlier responses still leave.
- An exception that means a bug closes the connection and reaches the loop's exception handler.

Sources: Kafka's `SocketServer.Processor`, `Selector` (mute and idle expiry).
"""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, cast

from barnabas.api.serving.context import AnyContext, ConnectionInfo
from barnabas.api.serving.dispatch import SMALL_BYTES, Dispatcher, Output, RefusedRequest
from barnabas.log.errors import KafkaStorageError, in_words
from barnabas.net.arrival import ARRIVAL_SECONDS, Arrival
from barnabas.net.foreign_protocols import HTTP, TLS, foreign_protocol, http_answer
from barnabas.net.piece_sender import PIECE, PieceSender
from barnabas.net.response_queue import ResponseQueue
from barnabas.net.sendfile import WRITE_LIMIT, SliceSender, encrypts
from barnabas.protocol.errors import FrameTooLarge, MalformedMessage
from barnabas.protocol.framing import READ_BYTES, FrameBuffer
from barnabas.turns import next_turn_of, spend

if TYPE_CHECKING:
    from barnabas.net.descriptors import Descriptors
    from barnabas.net.request_memory import RequestMemory
    from barnabas.repeated_lines import RepeatedLines

__all__ = ["Acceptor", "Connection"]

logger = logging.getLogger(__name__)

_STARTING, _UNSENT, _SENDING, _RESTING, _CLOSING, _YIELDING = 1, 2, 4, 8, 16, 32
_HOLDS = {
    _STARTING: "starting",
    _UNSENT: "unsent",
    _SENDING: "sending",
    _RESTING: "resting",
    _CLOSING: "closing",
    _YIELDING: "yielding",
}


class Acceptor(Protocol):
    """What a connection needs of the listener that accepted it.

    Attributes:
        tick: counts the sweeps for idle connections.
    """

    loop: asyncio.AbstractEventLoop
    name: str
    tick: int
    memory: RequestMemory | None
    descriptors: Descriptors
    lines: RepeatedLines
    send_buffer_bytes: int
    metrics_url: str
    protocol: str
    max_frame_bytes: int

    def describe(self, transport: asyncio.BaseTransport) -> ConnectionInfo: ...
    def arrived(self, connection: Connection) -> None: ...
    def forget(self, connection: Connection) -> None: ...
    def take_buffer(self) -> FrameBuffer: ...
    def give_back(self, buffer: FrameBuffer) -> None: ...


class Connection(asyncio.BufferedProtocol):
    """One client's connection.

    Args:
        listener: the listener that accepted it; it owns the buffers and the limits.

    Attributes:
        active_tick: the listener's tick when bytes last moved in either direction.
    """

    __slots__ = (
        "_arrival",
        "_blocked_frame",
        "_dispatcher",
        "_frames",
        "_holds",
        "_is_reading",
        "_listener",
        "_reserved",
        "_responses",
        "_rest",
        "_sender",
        "_transport",
        "_waits_for_memory",
        "active_tick",
        "info",
    )

    def __init__(self, listener: Acceptor) -> None:
        self._listener = listener
        self._holds = _STARTING
        self._frames: FrameBuffer | None = None
        self._blocked_frame: memoryview | None = None
        self._responses = ResponseQueue()
        self._sender: SliceSender | PieceSender | None = None
        self._rest: asyncio.TimerHandle | None = None
        # The memory that this connection has, beyond the ordinary one of an idle connection.
        self._reserved = 0
        self._waits_for_memory = False
        self._arrival: Arrival | None = None
        self._is_reading = True
        self.active_tick = listener.tick
        self.info: ConnectionInfo
        self._dispatcher: Dispatcher
        self._transport: asyncio.Transport

    def __repr__(self) -> str:
        holds = "+".join(name for hold, name in _HOLDS.items() if self._holds & hold)
        return f"<Connection {self.info.connection_id} waiting={len(self._responses.waiting)} holds={holds or 'none'}>"

    # What the loop calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transport has the methods of asyncio.Transport without being one.
        self._transport = cast("asyncio.Transport", transport)
        self.info = self._listener.describe(transport)
        self._transport.set_write_buffer_limits(high=WRITE_LIMIT)
        self._listener.arrived(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._end()
        if self._sender is not None:
            self._sender.close()
        self._blocked_frame = None
        self.release_buffer()
        self._frames = None
        memory = self._listener.memory
        if memory is not None:
            self._reserved = 0
            memory.forget(self)
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
        self._advance()

    def eof_received(self) -> bool:
        # The loop asked for a buffer before it knew that there was nothing to read; many clients may leave at once.
        self.release_buffer()
        self._end()
        return False

    def pause_writing(self) -> None:
        self._holds |= _UNSENT

    def resume_writing(self) -> None:
        self._holds &= ~_UNSENT
        if self._holds & _SENDING:
            self._send_on()
        else:
            self.active_tick = self._listener.tick
            self._advance()

    # Requests.

    def serve(self, dispatcher: Dispatcher) -> None:
        """Begin to handle requests: the connection is admitted and the broker is ready."""
        self._dispatcher = dispatcher
        self._lift(_STARTING)

    @property
    def _is_starting(self) -> bool:
        return bool(self._holds & _STARTING)

    def wait_unread(self) -> None:
        """Read nothing before the connection is admitted: bytes are here, but in the layer below."""
        if self._is_reading:
            self._set_reading(False)

    def _lift(self, hold: int) -> None:
        self._holds &= ~hold
        self._advance()

    def _advance(self) -> None:
        """Send the responses whose turn has come, handle the requests that may be handled, and read on or pause."""
        if self._holds & _CLOSING:
            return
        try:
            if self._responses.waiting:
                self._send_ready()
            if self._frames is not None:
                self._handle_frames(self._frames)
                return
            if self._reserved and self._listener.memory is not None:
                self._has_memory(self._listener.memory)
            if not self._is_reading and not self._responses.holds_order:
                self._set_reading(True)
        except RefusedRequest as refused:
            self._refuse(str(refused))
        except FrameTooLarge as error:
            self._refuse_frame(error)
        except MalformedMessage as error:
            self._refuse(f"malformed frame: {error}")
        except asyncio.CancelledError:
            self._refuse("the handler of a request was cancelled")
        except Exception:
            self.close()
            raise

    def _send_ready(self) -> None:
        while (ready := self._responses.take()) is not None:
            context, result = ready
            if isinstance(result, asyncio.Future):
                result = result.result()
            self._respond(context, result)

    def _handle_frames(self, frames: FrameBuffer) -> None:
        if self._holds & _STARTING:
            if self._is_reading:
                self._set_reading(False)
            return
        frame, self._blocked_frame = self._blocked_frame, None
        if frame is None:
            frame = frames.next_frame()
        responses = self._responses
        while frame is not None and not self._holds and (not responses.waiting or responses.admits(frame)):
            self._handle(frame)
            frame = frames.next_frame()
            if frame is not None and not self._holds and spend(0):
                self._holds |= _YIELDING
                next_turn_of(self._listener.loop).add_done_callback(self._have_turn)
        if self._holds & _CLOSING:
            # A handler may have closed its own connection and wait all the same.
            responses.cancel()
            return
        self._blocked_frame = frame
        if frame is None and not frames.pending and frames.capacity <= READ_BYTES:
            self._listener.give_back(frames)
            self._frames = None
        memory = self._listener.memory
        if frame is not None and memory is not None and not self._reserved and not self._waits_for_memory:
            # A whole request that must wait keeps its buffer.
            memory.take(self, READ_BYTES)
            self._reserved = READ_BYTES
        may_read = frame is None and (memory is None or self._has_memory(memory)) and not responses.holds_order
        if may_read != self._is_reading:
            self._set_reading(may_read)

    def _handle(self, frame: memoryview) -> None:
        self._arrival = None
        context, result = self._dispatcher.dispatch(self.info, frame)
        if isinstance(result, asyncio.Future):
            self._responses.add(context, result)
            result.add_done_callback(self._on_done)
            if context.holds_order:
                context.when_released = partial(self._listener.loop.call_soon, self._advance)
        elif self._responses.waiting:
            self._responses.add(context, result)
        else:
            self._respond(context, result)

    def _have_turn(self, _: asyncio.Future[None]) -> None:
        self._lift(_YIELDING)

    def _on_done(self, future: asyncio.Future[Any]) -> None:
        if self._holds & _CLOSING:
            # Nobody reads the response; a failure on the way out is asked for, so that the loop does not report it.
            if not future.cancelled():
                future.exception()
            return
        self.active_tick = self._listener.tick
        self._advance()

    def _set_reading(self, is_reading: bool) -> None:
        self._is_reading = is_reading
        if is_reading:
            self._transport.resume_reading()
        else:
            self._transport.pause_reading()

    # Memory.

    def _has_memory(self, memory: RequestMemory) -> bool:
        """Return whether the rest of the request that has begun may be read."""
        if self._waits_for_memory:
            return False
        frames = self._frames
        if frames is None or not frames.pending:
            if self._reserved and not self._is_large_under_way:
                if frames is None or frames.capacity <= READ_BYTES:
                    self._give_memory_back(memory)
                elif not memory.keep_spare(self):
                    self.release_buffer()
            return True
        size = max(frames.announced, READ_BYTES)
        if self._reserved:
            if size <= self._reserved <= max(frames.capacity, size):
                memory.use_spare(self)
                return True
            self._give_memory_back(memory)
        if memory.take(self, size, frames.pending):
            self._reserved = size
            return True
        self._waits_for_memory = True
        frames.shrink()
        return False

    @property
    def _is_large_under_way(self) -> bool:
        """Whether a large request is not answered: the executor may have a copy of it."""
        return self._reserved > READ_BYTES and bool(self._responses.waiting)

    def _give_memory_back(self, memory: RequestMemory) -> None:
        self._reserved = 0
        memory.give_back(self)

    def memory_granted(self, size: int) -> None:
        self._waits_for_memory = False
        self._reserved = size
        self._advance()

    def drop_spare(self) -> None:
        self.release_buffer()

    def is_slow(self) -> bool:
        return self._arrival_now.is_slow(self._arrived_bytes)

    def sweep(self) -> None:
        """Release an empty buffer, and close the connection if a request should have arrived."""
        self.release_buffer()
        if self._frames is not None and self._arrival_now.is_overdue(self._arrived_bytes):
            self.abort(f"a request began and did not arrive within {ARRIVAL_SECONDS:.0f} s")

    @property
    def _arrival_now(self) -> Arrival:
        if self._arrival is None:
            self._arrival = Arrival()
        return self._arrival

    @property
    def _arrived_bytes(self) -> int | None:
        """Bytes of the request that is being read; None if none is."""
        return (self._frames.pending or None) if self._frames is not None and self._is_reading else None

    # Responses.

    def _respond(self, context: AnyContext, output: Output | None) -> None:
        if output is not None:
            first = output[0] if len(output) == 1 else None
            if isinstance(first, bytearray) and len(first) <= PIECE and not self._holds & _SENDING:
                self._transport.write(first)
            else:
                self._send(output)
        if context.accounting is not None and context.accounting.throttle_ms:
            self._rest_for(context.accounting.throttle_ms)
        if context.close_connection:
            self._refuse(f"{context!r} closes the connection")

    def _send(self, output: Output) -> None:
        if not self._holds & _SENDING:
            slice_bytes = sum(part.size for part in output if not isinstance(part, bytearray))
            byte_count = sum(len(part) for part in output if isinstance(part, bytearray))
            if self._sender is None and (slice_bytes > SMALL_BYTES or byte_count > PIECE):
                self._sender = self._make_sender(slice_bytes)
            is_small = slice_bytes <= SMALL_BYTES and (byte_count <= PIECE or not isinstance(self._sender, PieceSender))
            if is_small or self._sender is None:
                self._write(output)
                return
        assert self._sender is not None, "slices are under way without a sender"
        try:
            if not self._sender.send(output):
                self._holds |= _SENDING
        except (OSError, KafkaStorageError) as error:
            self._cannot_send(error)

    def _write(self, output: Output) -> None:
        try:
            whole = bytearray().join(part if isinstance(part, bytearray) else part.read() for part in output)
        except KafkaStorageError as error:
            self._cannot_send(error)
        else:
            self._transport.write(whole)

    def _make_sender(self, slice_bytes: int) -> SliceSender | PieceSender | None:
        """Return what sends large responses; None where the transport takes them whole, as bytes in clear, and in the simulator."""
        listener = self._listener
        if encrypts(self._transport):
            return PieceSender(self._transport, listener.loop, self._send_on)
        if slice_bytes <= SMALL_BYTES:
            return None
        return SliceSender.over(
            self._transport, listener.loop, self._send_on, listener.send_buffer_bytes, listener.descriptors
        )

    def _send_on(self) -> None:
        """Send more of a response with slices: the transport is empty, or the socket takes bytes again."""
        assert self._sender is not None, "slices are under way without a sender"
        self.active_tick = self._listener.tick
        try:
            if self._sender.proceed():
                self._lift(_SENDING)
        except (OSError, KafkaStorageError) as error:
            self._cannot_send(error)

    def _cannot_send(self, error: OSError | KafkaStorageError) -> None:
        self._refuse(
            f"cannot send: {in_words(error)}", logging.DEBUG if isinstance(error, ConnectionError) else logging.WARNING
        )

    def _rest_for(self, throttle_ms: int) -> None:
        """Handle no further request before `throttle_ms` have passed; a rest that ends later is kept."""
        loop = self._listener.loop
        when = loop.time() + throttle_ms / 1000
        if self._rest is not None:
            if self._rest.when() >= when:
                return
            self._rest.cancel()
        self._rest = loop.call_at(when, self._rested)
        self._holds |= _RESTING

    def _rested(self) -> None:
        self._rest = None
        self.active_tick = self._listener.tick
        self._lift(_RESTING)

    # The end.

    @property
    def is_idle(self) -> bool:
        """Whether nothing is under way that ends by itself."""
        return not self._responses.waiting and self._rest is None and not self._holds & _YIELDING

    @property
    def is_muted(self) -> bool:
        """Whether the client rests, because it is over a quota."""
        return self._rest is not None

    @property
    def unsent_bytes(self) -> int:
        """Response bytes that wait in this process's memory; slices of files do not count."""
        unsent = 0 if self._sender is None else self._sender.unsent_bytes
        return self._transport.get_write_buffer_size() + unsent

    def release_buffer(self) -> None:
        """Give back an empty buffer: a read brought nothing into it, or it grew for large requests."""
        if self._frames is None or self._blocked_frame is not None or self._frames.pending or self._is_large_under_way:
            return
        self._listener.give_back(self._frames)
        self._frames = None
        if self._reserved and self._listener.memory is not None:
            self._give_memory_back(self._listener.memory)

    def close(self) -> None:
        """Close the connection after what is already in the transport."""
        self._end()
        self._transport.close()

    def abort(self, reason: str) -> None:
        """Close the connection at once and drop what is unsent."""
        self._log(logging.INFO, reason)
        self._end()
        self._transport.abort()

    def _end(self) -> None:
        """Handle nothing from now on, and cancel what waits."""
        self._holds |= _CLOSING
        self._responses.cancel()
        if self._rest is not None:
            self._rest.cancel()
            self._rest = None

    def _refuse(self, reason: str, level: int = logging.WARNING) -> None:
        if not self._holds & _CLOSING:
            self._log(level, reason)
            self.close()

    def _refuse_frame(self, error: FrameTooLarge) -> None:
        """Close a connection whose client sent another protocol, or announced a frame that is too large."""
        listener, found = self._listener, foreign_protocol(error.announced)
        if found == HTTP:
            where = f"served at {listener.metrics_url}" if listener.metrics_url else "off (--metrics-listen)"
            reason = f"{found} arrived on the Kafka listener {listener.name}; metrics are {where}"
            self._transport.write(http_answer(reason))
        elif found == TLS:
            reason = (
                f"{found} arrived on the Kafka listener {listener.name}, which has no TLS;"
                f" the client needs security.protocol={listener.protocol}"
            )
        else:
            reason = f"malformed frame: {error}"
        self._refuse(reason)

    def _log(self, level: int, reason: str) -> None:
        line = f"Closing connection {self.info.connection_id}: {reason}"
        self._listener.lines.log(logger, level, self.info.peer_host, line)
