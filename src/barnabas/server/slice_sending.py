"""Slices of log files on their way to a socket. Shell.

A slice is sent by the kernel from file to socket. What did not fit yet is a `Rest`, which asks its slice for the descriptor again at
each step: the segment may be closed and reopened meanwhile.
"""

from __future__ import annotations

import os

from barnabas.protocol.primitives import RecordSlice

__all__ = ["Rest", "send_slice"]


class Rest:
    """What is left of a slice after a part of it was sent."""

    __slots__ = ("_sent", "_slice")

    def __init__(self, whole: RecordSlice, sent: int) -> None:
        self._slice: RecordSlice = whole._slice if isinstance(whole, Rest) else whole
        self._sent: int = whole._sent + sent if isinstance(whole, Rest) else sent

    @property
    def size(self) -> int:
        return self._slice.size - self._sent

    @property
    def position(self) -> int:
        return self._slice.position + self._sent

    def fileno(self) -> int:
        return self._slice.fileno()

    def read(self) -> bytes:
        return self._slice.read()[self._sent :]


def send_slice(out_fd: int, part: RecordSlice) -> int:
    """Send some of a slice.

    Raises:
        BlockingIOError: the socket is full.
        OSError: the socket or the file failed; also when the file ends within the slice, since the promised length
            can no longer be kept.
    """
    in_fd = part.fileno()
    if in_fd < 0:
        return os.write(out_fd, part.read())
    sent = os.sendfile(out_fd, in_fd, part.position, part.size)
    if sent == 0 and part.size:
        raise OSError(f"the log ends within a slice of {part.size} bytes at {part.position}")
    return sent
