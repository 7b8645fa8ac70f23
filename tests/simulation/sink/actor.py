"""Blocking code in the simulated world: it has a thread of its own, and exactly one thread runs at a time.

    the world's thread    run ──► hands the baton ─────────── takes it ──► awaits ──► hands it back with the answer …
    the actor's thread             works until it must wait ─┘                        goes on ┘

The baton goes to the actor when the world has the answer it waits for, and comes back when the actor waits again, or ends. So the
seed alone decides what happens when, as if both were one thread.

A killed actor gets `Killed` wherever it waits: no `except Exception` stops it, and whatever it tries to wait for afterwards raises
`Killed` again, so that its `finally` blocks send nothing more.
"""

from __future__ import annotations

import asyncio
import threading
from asyncio import _set_running_loop
from collections.abc import Callable, Coroutine
from typing import Any, Generic, TypeVar

R = TypeVar("R")


class Killed(BaseException):
    """The process dies here."""


class Actor(Generic[R]):
    """Blocking work of one process.

    Args:
        loop: of the process; it is the running loop in the actor's thread too, so that log lines find their node.
        work: runs in the thread.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, work: Callable[[], R]) -> None:
        self._loop, self._work = loop, work
        self._thread = threading.Thread(target=self._live, daemon=True)
        # Two locks that are released by the other side hand the baton over.
        self._to_actor, self._to_world = threading.Lock(), threading.Lock()
        self._to_actor.acquire()
        self._to_world.acquire()
        self._wanted: Coroutine[Any, Any, Any] | None = None
        self._answer: Any = None
        self._error: BaseException | None = None
        self._is_killed = False

    def __repr__(self) -> str:
        state = "killed" if self._is_killed else "alive" if self._thread.is_alive() else "not running"
        return f"<Actor {state}>"

    # In the world's thread

    async def run(self) -> R:
        """Run the work, and return or raise its outcome; the work's `wait` happens in this task."""
        if self._is_killed:
            raise Killed
        self._thread.start()
        self._give()
        while (wanted := self._wanted) is not None:
            self._wanted = self._answer = self._error = None
            try:
                self._answer = await wanted
            except Exception as error:
                self._error = error
            self._give()
        if self._error is not None:
            raise self._error
        answer: R = self._answer
        return answer

    def kill(self) -> None:
        """End the work where it waits. The task of `run` must never go on: its loop has ended."""
        if self._thread.is_alive() and not self._is_killed:
            self._is_killed = True
            self._give()
            assert not self._thread.is_alive(), "a killed actor caught its end"
        self._is_killed = True

    def _give(self) -> None:
        self._to_actor.release()
        self._to_world.acquire()
        if self._wanted is None:
            self._thread.join()

    # In the actor's thread

    def wait(self, wanted: Coroutine[Any, Any, R]) -> R:
        """Let the world await something, and return or raise its outcome.

        Raises:
            Killed: the process has died.
        """
        if self._is_killed:
            wanted.close()
            raise Killed
        self._wanted = wanted
        self._to_world.release()
        self._to_actor.acquire()
        if self._is_killed:
            self._wanted = None
            raise Killed
        if self._error is not None:
            raise self._error
        answer: R = self._answer
        return answer

    def die(self) -> None:
        """End the work at this place; the caller has ended the process.

        Raises:
            Killed: always.
        """
        self._is_killed = True
        raise Killed

    def _live(self) -> None:
        self._to_actor.acquire()
        _set_running_loop(self._loop)
        answer: Any = None
        error: BaseException | None = None
        try:
            answer = self._work()
        except BaseException as raised:
            error = raised
        self._wanted, self._answer, self._error = None, answer, error
        self._to_world.release()
