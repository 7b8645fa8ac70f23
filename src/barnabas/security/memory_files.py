"""Bytes under a path, for a library that reads nothing but files; they are never on a disk.

OpenSSL, as Python offers it, takes a private key from a path only. On Linux the path leads to a file in memory without a name (`memfd`),
elsewhere to a pipe (`/dev/fd/N`). Both end with the block, and no other process finds them by name.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["path_of"]


@contextmanager
def path_of(data: bytes, *, by_pipe: bool = sys.platform != "linux") -> Iterator[str]:
    """Have a path that can be opened and read, once, within the block.

    Args:
        by_pipe: use a pipe also where there are files in memory.
    """
    with _pipe(data) if by_pipe else _memory_file(data) as path:
        yield path


@contextmanager
def _memory_file(data: bytes) -> Iterator[str]:
    assert sys.platform == "linux"
    descriptor = os.memfd_create("barnabas", os.MFD_CLOEXEC)
    try:
        _write_all(descriptor, data)
        yield f"/proc/self/fd/{descriptor}"
    finally:
        os.close(descriptor)


@contextmanager
def _pipe(data: bytes) -> Iterator[str]:
    """A pipe takes some 16 KiB before somebody reads, so a thread writes into it."""
    reading, writing = os.pipe()
    writer = threading.Thread(target=_write_and_close, args=(writing, data), daemon=True)
    writer.start()
    try:
        yield f"/dev/fd/{reading}"
    finally:
        os.close(reading)  # A writer that still waits fails by this.
        writer.join()


def _write_and_close(descriptor: int, data: bytes) -> None:
    with contextlib.suppress(BrokenPipeError):
        _write_all(descriptor, data)
    os.close(descriptor)


def _write_all(descriptor: int, data: bytes) -> None:
    left = memoryview(data)
    while left:
        left = left[os.write(descriptor, left) :]
