"""One end of a connection in memory.

What one end writes is cut into segments that arrive later, in order. The end of input and a reset are segments too, so they also take
time, and are also held while the way is cut. What has arrived waits in the receiver's kernel until its process reads it: reading can
be paused, and so can the process, and a writer sees its buffer grow meanwhile, so that back-pressure works as with sockets.

    write ──► under way (the network) ──► arrived (the receiver's kernel) ──► protocol (the receiver's loop)

A process that ends leaves its connections to its kernel: what is under way still arrives, then the end of input or a reset. A machine
that loses its power says nothing to anybody. An end that is gone answers data with a reset.
"""

from __future__ import annotations

import asyncio
import enum
import zlib
from collections import deque
from typing import Any, Final, Protocol

from barnabas.simulation.node_loop import NodeLoop
from barnabas.simulation.timeline import Timeline
from barnabas.simulation.world_loop import WorldLoop

HIGH_WATER = 64 * 1024


class Ending(enum.Enum):
    """The meaning of a segment that carries no bytes."""

    FIN = "end of input"
    RST = "reset"


FIN: Final = Ending.FIN
RST: Final = Ending.RST


class Ways(Protocol):
    """The parts of the `network.Network` that a transport calls; the network has transports, so they must not import it."""

    loop: WorldLoop
    timeline: Timeline

    def delay(self, source: str, target: str, port: int) -> float: ...
    def piece(self, size: int) -> int: ...
    def is_open(self, source: str, target: str, port: int) -> bool: ...
    def hold(self, transport: MemoryTransport) -> None: ...
    def forget(self, transport: MemoryTransport) -> None: ...


class MemoryTransport(asyncio.Transport):
    """One end; `join` gives it the other one, `begin` its protocol.

    Args:
        port: of the service that the connection is to, at either end.
    """

    def __init__(self, network: Ways, loop: NodeLoop, here: tuple[str, int], there: tuple[str, int], port: int) -> None:
        super().__init__({"peername": there, "sockname": here, "socket": None})
        self.loop = loop
        self.here, self.there, self.port = here, there, port
        self._network = network
        self._protocol: Any = None
        self.other: MemoryTransport
        self._under_way: deque[bytes | Ending] = deque()
        self._arrived: deque[bytes | Ending] = deque()
        self._arrives_at = 0.0
        self._held = 0
        self._unsent = 0
        self._reading_paused = False
        self._writing_paused = False
        self._closing = False
        self._lost = False
        self._high = HIGH_WATER
        self._low = HIGH_WATER // 4

    def __repr__(self) -> str:
        return f"<MemoryTransport {self.here[0]}:{self.here[1]} to {self.there[0]}:{self.there[1]}>"

    def join(self, other: MemoryTransport) -> None:
        self.other, other.other = other, self

    def begin(self, protocol: Any) -> None:
        """Give this end its protocol; what has arrived already is read after it."""
        if not self._lost:
            self._protocol = protocol
            protocol.connection_made(self)
            self.loop.call_soon(self._read)

    # Writing

    def write(self, data: Any) -> None:
        if self._closing or self._lost or not len(data):
            return
        rest = bytes(data)
        while rest:
            cut = self._network.piece(len(rest))
            piece, rest = rest[:cut], rest[cut:]
            self._unsent += len(piece)
            self._send(piece)
        if self._unsent > self._high and not self._writing_paused:
            self._writing_paused = True
            self._protocol.pause_writing()

    def writelines(self, list_of_data: Any) -> None:
        self.write(b"".join(bytes(part) for part in list_of_data))

    def _send(self, segment: bytes | Ending) -> None:
        network = self._network
        delay = network.delay(self.here[0], self.there[0], self.port)
        self._arrives_at = max(self._arrives_at, self.loop.time() + delay)
        self._under_way.append(segment)
        # Timers of the same moment fire in no particular order, so each delivers whatever is next.
        network.loop.call_at(self._arrives_at, self._deliver)

    def _deliver(self) -> None:
        if not self._under_way:
            return  # a reset has overtaken it
        if self._held or not self._network.is_open(self.here[0], self.there[0], self.port):
            self._held += 1
            self._network.hold(self)
            return
        segment = self._under_way.popleft()
        size, crc = (len(segment), zlib.crc32(segment)) if isinstance(segment, bytes) else (0, 0)
        self._network.timeline.witness(self.here, self.there, segment if isinstance(segment, Ending) else size, crc)
        self.other.arrive(segment)

    def release(self) -> None:
        """Send again what was held by a cut, now that the way is open."""
        held, self._held = self._held, 0
        for _ in range(held):
            delay = self._network.delay(self.here[0], self.there[0], self.port)
            self._arrives_at = max(self._arrives_at, self._network.loop.time() + delay)
            self._network.loop.call_at(self._arrives_at, self._deliver)

    def taken(self, size: int) -> None:
        """The other end's process has read some of what this end wrote."""
        self._unsent -= size
        if self._writing_paused and self._unsent <= self._low:
            self._writing_paused = False
            self.loop.call_soon(self._resume_writing)

    def _resume_writing(self) -> None:
        if not self._lost and not self._writing_paused:
            self._protocol.resume_writing()

    def get_write_buffer_size(self) -> int:
        return self._unsent

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self._high = HIGH_WATER if high is None else high
        self._low = self._high // 4 if low is None else low

    def can_write_eof(self) -> bool:
        return False

    # Reading

    def arrive(self, segment: bytes | Ending) -> None:
        if self._lost:
            if isinstance(segment, bytes):
                self._reset_other()
            return
        if segment is RST:
            # Bytes that the process has not read yet are lost with the connection.
            self._arrived.clear()
        self._arrived.append(segment)
        self.loop.call_soon(self._read)

    def _read(self) -> None:
        if self._protocol is None:
            return
        while self._arrived and not self._lost:
            if self._arrived[0] is RST:
                self._lose(ConnectionResetError("reset by peer"))
            elif self._reading_paused:
                return
            else:
                self._take(self._arrived.popleft())

    def _take(self, segment: bytes | Ending) -> None:
        if isinstance(segment, Ending):
            if not self._protocol.eof_received():
                self.close()
            return
        if isinstance(self._protocol, asyncio.BufferedProtocol):
            rest = segment
            while rest and not self._lost:
                buffer: Any = self._protocol.get_buffer(len(rest))
                size = min(len(buffer), len(rest))
                buffer[:size] = rest[:size]
                self._protocol.buffer_updated(size)
                rest = rest[size:]
        else:
            self._protocol.data_received(segment)
        self.other.taken(len(segment))

    def pause_reading(self) -> None:
        self._reading_paused = True

    def resume_reading(self) -> None:
        self._reading_paused = False
        self.loop.call_soon(self._read)

    # Ending

    def close(self) -> None:
        """Let what was written arrive, then the end of input."""
        if not self._closing:
            self._send(FIN)
            self._lose(None)

    def abort(self) -> None:
        """Lose what is under way in both directions."""
        if not self._lost:
            self._reset_other()
            self._lose(None)

    def process_ended(self, *, says_reset: bool) -> None:
        """The kernel closes a connection whose process is gone."""
        if not self._closing:
            if says_reset:
                self._reset_other()
            else:
                self._send(FIN)
        self.vanish()

    def vanish(self) -> None:
        """Forget the connection without a word to the other end, as a machine does that loses its power."""
        self._lost = self._closing = True
        self._arrived.clear()
        self._network.forget(self)

    def lose_under_way(self) -> None:
        """Lose what this end has written and the other has not received; its machine will not send it again."""
        self._under_way.clear()
        self._held = 0

    def _reset_other(self) -> None:
        self.lose_under_way()
        self._send(RST)

    def is_closing(self) -> bool:
        return self._closing or self._lost

    def _lose(self, error: Exception | None) -> None:
        if not self._lost:
            self._lost = self._closing = True
            self._network.forget(self)
            if self._protocol is not None:
                self.loop.call_soon(self._protocol.connection_lost, error)
