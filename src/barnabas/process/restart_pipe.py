"""The pipe through which another process asks the supervisor of a local cluster for the restart of a node.

The line and the place are those of `client.local_restart`. Only the owner of the cluster's folder can write into it. The pipe is there
while the supervisor runs; one that a killed supervisor has left has no reader, and the next supervisor makes it again.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Self

from barnabas.client.local_restart import RESTART_PIPE
from barnabas.log.disk import FILE_MODE
from barnabas.process.arguments import print_error
from barnabas.words.printable import printable

__all__ = ["RestartPipe"]


class RestartPipe:
    """Reads the ids of nodes from a pipe in the cluster's folder, while the block runs.

    Args:
        restart: called with each id.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, folder: Path, restart: Callable[[int], None]) -> None:
        self._loop = loop
        self._path = folder / RESTART_PIPE
        self._restart = restart
        self._pipe = -1
        self._begun = b""

    def __repr__(self) -> str:
        return f"<RestartPipe {self._path}>"

    def __enter__(self) -> Self:
        with contextlib.suppress(FileNotFoundError):
            self._path.unlink()
        os.mkfifo(self._path, FILE_MODE)
        # With a writer of its own the pipe never ends.
        self._pipe = os.open(self._path, os.O_RDWR | os.O_NONBLOCK)
        self._loop.add_reader(self._pipe, self._read)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.remove_reader(self._pipe)
        os.close(self._pipe)
        with contextlib.suppress(OSError):
            self._path.unlink()

    def _read(self) -> None:
        *lines, self._begun = (self._begun + os.read(self._pipe, 4096)).split(b"\n")
        for line in lines:
            word = line.strip()
            if word.isdigit():
                self._restart(int(word))
            else:
                print_error(f"{self._path}: {printable(word.decode(errors='replace'))!r} is not the id of a node")
