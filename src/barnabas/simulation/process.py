"""A client's process in a simulated cluster: it runs coroutines on a machine of its own, and can be killed, paused and cut off.

consumer = cluster.process("consumer")
consumer.run(consume(cluster.bootstrap_servers, book))
await asyncio.sleep(20)
consumer.kill()                        no `finally` runs, nothing is closed or committed
consumer.run(consume(...))             a new process on the same machine
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from barnabas.simulation.node import Node

__all__ = ["Process", "raise_unseen", "running"]

R = TypeVar("R")

UNSEEN_SECONDS = 1.0
"""How long an exception may wait for somebody to take it."""


class Process:
    """A client's process; `Cluster.process` makes it.

    Attributes:
        name: what the faults of the network and the timeline call it.
    """

    def __init__(self, node: Node, failed: Callable[[BaseException], None]) -> None:
        self.name = node.name
        self.node = node
        self._failed = failed
        self._unseen: list[asyncio.Future[Any]] = []
        self._running: dict[asyncio.Future[Any], Coroutine[Any, Any, Any]] = {}

    def __repr__(self) -> str:
        return f"<barnabas.simulation.Process {self.name} {'runs' if self.node.is_up else 'is dead'}>"

    def run(self, coroutine: Coroutine[Any, Any, R]) -> asyncio.Future[R]:
        """Run a coroutine in this process, which may run others; begin a new process if the last one was killed.

        Returns: a future for its result. It fails with `NodeDied` if the process is killed before.

        A caller that awaits the future gets an exception of the coroutine. If no caller does within a second, the exception ends the run.
        """
        if not asyncio.iscoroutine(coroutine):
            raise TypeError(f"{coroutine!r} is not a coroutine: call the async function, and pass what it returns")
        if not self.node.is_up:
            self.node.note("starts")
            self.node.boot()
        answer = self.node.run(coroutine)
        self._running[answer] = coroutine
        answer.add_done_callback(self._ended)
        return answer

    def _ended(self, answer: asyncio.Future[Any]) -> None:
        del self._running[answer]
        if not answer.cancelled() and _is_unseen(answer):
            self._unseen.append(answer)
            answer.get_loop().call_later(UNSEEN_SECONDS, raise_unseen, self)

    def kill(self) -> None:
        """Kill the process (SIGKILL): nothing of it runs any more, and its connections end."""
        self.node.kill()

    def pause(self) -> None:
        """Pause the process (SIGSTOP), as a long pause of its machine does: connections stay open, and it does nothing."""
        if not self.node.is_up:
            raise RuntimeError(f"{self.name} is dead: run something in it first")
        if not self.node.loop.is_paused:
            self.node.pause()

    def resume(self) -> None:
        """Let a paused process go on (SIGCONT)."""
        if self.node.loop.is_paused:
            self.node.go_on()


def running(process: Process) -> list[Coroutine[Any, Any, Any]]:
    """Return the coroutines that run in a process."""
    return list(process._running.values())


def raise_unseen(process: Process) -> None:
    """End the run if an exception of something that ran in a process was not taken."""
    for answer in process._unseen:
        if _is_unseen(answer) and (error := answer.exception()) is not None:
            process._failed(error)


def _is_unseen(answer: asyncio.Future[Any]) -> bool:
    """Return whether a future has an exception that was not taken, as asyncio's own warning decides it."""
    return bool(answer._log_traceback)
