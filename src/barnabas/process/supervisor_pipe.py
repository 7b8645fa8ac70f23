"""The pipe through which other processes ask the supervisor of a local cluster: to restart a node, to grow, to shrink.

Its lines are those of `client.local_supervisor`. Only the owner of the cluster's folder can write into it. The pipe is there while the
supervisor runs; one that a killed supervisor has left has no reader, and the next supervisor makes it again. It removes the pipes of
processes that were killed while they waited for an answer.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Self

from barnabas.client.local_supervisor import ANSWER_PREFIX, SUPERVISOR_PIPE, LocalNodes, write_answer
from barnabas.config.cannot_start import CannotStart
from barnabas.log.disk import FILE_MODE
from barnabas.process.arguments import print_error
from barnabas.words.printable import printable

__all__ = ["SupervisorPipe"]

_ANSWER = rf"(?P<answer>{re.escape(ANSWER_PREFIX)}[0-9]{{1,10}})"
_RESTART = re.compile(r"restart (?P<node>[0-9]{1,9})")
_NODES = re.compile(rf"nodes {_ANSWER}")
_RESIZE = re.compile(rf"resize (?P<had>[0-9]{{1,2}}) (?P<wanted>[0-9]{{1,2}}) {_ANSWER}")


class SupervisorPipe:
    """Reads requests from a pipe in the cluster's folder, while the block runs.

    Args:
        restart: restarts a node, and does not wait for it.
        described: returns the nodes.
        resize: grows or shrinks the cluster from a number of nodes to another; raises CannotStart with the reason if it cannot.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        folder: Path,
        restart: Callable[[int], None],
        described: Callable[[], LocalNodes],
        resize: Callable[[int, int], Awaitable[LocalNodes]],
    ) -> None:
        self._loop = loop
        self._folder = folder
        self._path = folder / SUPERVISOR_PIPE
        self._restart = restart
        self._described = described
        self._resize = resize
        self._pipe = -1
        self._begun = b""
        self._resizing: set[asyncio.Task[None]] = set()

    def __repr__(self) -> str:
        return f"<SupervisorPipe {self._path}>"

    def __enter__(self) -> Self:
        for left in (self._path, *self._folder.glob(f"{ANSWER_PREFIX}*")):
            left.unlink(missing_ok=True)
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
            if request := line.strip().decode(errors="replace"):
                self._heed(request)

    def _heed(self, request: str) -> None:
        if found := _RESTART.fullmatch(request):
            self._restart(int(found["node"]))
        elif found := _NODES.fullmatch(request):
            self._answer(found["answer"], self._described())
        elif found := _RESIZE.fullmatch(request):
            task = self._loop.create_task(self._resized(int(found["had"]), int(found["wanted"]), found["answer"]))
            self._resizing.add(task)
            task.add_done_callback(self._resizing.discard)
        else:
            print_error(f"{self._path}: {printable(request)!r} is not a request, such as: restart 2")

    async def _resized(self, had: int, wanted: int, answer: str) -> None:
        said: LocalNodes | str
        try:
            said = await self._resize(had, wanted)
        except CannotStart as error:
            said = str(error)
        except OSError as error:
            said = f"cannot use {self._folder}: {error.strerror or error}"
        self._answer(answer, said)

    def _answer(self, name: str, said: LocalNodes | str) -> None:
        """Write into the pipe of the process that asks; remove the pipe if that process is gone."""
        path = self._folder / name
        try:
            pipe = os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
        except OSError as error:
            if error.errno == errno.ENXIO:
                path.unlink(missing_ok=True)
            return
        try:
            # The pipe is empty, and holds more than the line of 99 nodes.
            os.write(pipe, write_answer(said))
        except OSError:
            pass  # the process has just ended
        finally:
            os.close(pipe)
