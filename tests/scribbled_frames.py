"""Requests that have been handled are overwritten as soon as their memory may be used again.

A frame is a view of its connection's buffer, which the next bytes overwrite. A handler that waits and then reads the frame would see the
old bytes in nearly every test: the next bytes are few, or never come. On a busy broker it would append other records.

This reaches the nodes of this process alone, not the brokers that tests start as processes of their own.
"""

from __future__ import annotations

from barnabas.net.listener import Listener
from barnabas.protocol.framing import FrameBuffer

SCRIBBLE = b"\xdd"


def scribble_over_handled_frames() -> None:
    """Patch every connection of this process, for good."""
    original_get, original_give = FrameBuffer.get_buffer, Listener.give_back

    def get_buffer(self: FrameBuffer, hint: int = -1) -> memoryview:
        _scribble(self)
        return original_get(self, hint)

    def give_back(self: Listener, buffer: FrameBuffer) -> None:
        _scribble(buffer)
        original_give(self, buffer)

    FrameBuffer.get_buffer = get_buffer  # type: ignore[method-assign]
    Listener.give_back = give_back  # type: ignore[method-assign]


def _scribble(buffer: FrameBuffer) -> None:
    taken = buffer._start
    buffer._view[:taken] = SCRIBBLE * taken
