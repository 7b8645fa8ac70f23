"""One machine of a simulated world: an address, a wall clock, a disk, threads, and one process at a time.

| what happens | the process | the disk keeps | the others notice |
|---|---|---|---|
| `kill` | ends, without a `finally` | all that was written | its connections end; new ones are refused |
| `lose_power` | ends likewise | what was synced, and by chance some of the rest | nothing: no answer, until the power is back |
| `pause`, `go_on` | stops, then catches up | all | no answer; the kernel still takes connections and bytes |
| `set_clock` | runs on; its wall clock jumps | all | what it says the time is |

Monotonic time is the world's own and the same for all nodes.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Coroutine
from typing import Any, Protocol, TypeVar

from barnabas.simulation.disk import SimDisk
from barnabas.simulation.executor import Executor
from barnabas.simulation.network import Network
from barnabas.simulation.node_loop import NodeLoop
from barnabas.simulation.timeline import Timeline
from barnabas.simulation.world_loop import WorldLoop

R = TypeVar("R")

EPOCH_MS = 1_767_225_600_000
"""The world began on 2026-01-01."""


class Surroundings(Protocol):
    """The parts of a `world.World` that its nodes use; a world has nodes, so they must not import it."""

    loop: WorldLoop
    timeline: Timeline
    network: Network

    def random(self, purpose: str) -> random.Random: ...


class NodeDied(Exception):
    """The process ended before what it was asked to run did."""


class Node:
    """A machine and its present process, which starts with it.

    Args:
        disk: one that another machine has written; None for an empty one.

    Attributes:
        network: the network that it is connected to.
        loop: the loop of its present process.
    """

    def __init__(self, world: Surroundings, name: str, host: str, disk: SimDisk | None = None) -> None:
        self.name, self.host = name, host
        self.network = world.network
        self.network.name(host, name)
        self.clock_jumped_ms = 0
        self._executor_seconds = 0.0
        self.disk = disk or SimDisk(world.random(f"disk of {name}").getrandbits(32), now_ms=self.now_ms)
        self.disk.on_failure = lambda call, path: self.note(f"its disk fails to {call} {path}")
        self.is_up = False
        self._world = world
        self._rng = world.random(f"process of {name}")
        self._former_loops: list[NodeLoop] = []
        self._asked: dict[asyncio.Future[Any], None] = {}
        self.loop: NodeLoop
        self.boot()

    def __repr__(self) -> str:
        return f"<Node {self.name} {self.host} {self.loop!r}>"

    def note(self, what: str, *, is_detail: bool = False) -> None:
        self._world.timeline.note(self.name, what, is_detail=is_detail)

    def remark(self, what: str) -> None:
        """As `note`, for what is said rather than what happens."""
        self._world.timeline.remark(self.name, what)

    def now_ms(self) -> int:
        """The wall clock of this machine, in epoch milliseconds."""
        return EPOCH_MS + int((self._world.loop.time() + self.disk.seconds_spent) * 1000) + self.clock_jumped_ms

    def wall_seconds(self) -> float:
        """The wall clock of this machine, in seconds since 1970."""
        return (EPOCH_MS + self.clock_jumped_ms) / 1000 + self._world.loop.time() + self.disk.seconds_spent

    def monotonic_ns(self) -> int:
        return int((self._world.loop.time() + self.disk.seconds_spent) * 1e9)

    def slow_threads(self, max_seconds: float) -> None:
        """Let work for threads take up to this many seconds, in this process and in later ones."""
        self._executor_seconds = self.executor.max_seconds = max_seconds

    # Its process

    def run(self, coroutine: Coroutine[Any, Any, R]) -> asyncio.Future[R]:
        """Run a coroutine in the process.

        Returns: a future of the caller's loop, which may be another node's, for its result; it fails with `NodeDied` if the process
            ends first.
        """
        assert self.is_up, f"{self.name} is down"
        answer: asyncio.Future[R] = (asyncio._get_running_loop() or self._world.loop).create_future()
        self._asked[answer] = None

        def done(task: asyncio.Task[R]) -> None:
            self._asked.pop(answer, None)
            if answer.done():
                return
            if task.cancelled():
                answer.cancel()
            elif (error := task.exception()) is not None:
                answer.set_exception(error)
            else:
                answer.set_result(task.result())

        self.loop.create_task(coroutine).add_done_callback(done)
        return answer

    def boot(self) -> None:
        """Begin a new process, and switch the power on if it is off."""
        assert not self.is_up, f"{self.name} is up"
        self.is_up = True
        self.loop = NodeLoop(self._world.loop, self)  # type: ignore[abstract]  # methods that are never called are not there
        self.executor = self.loop.executor = Executor(
            self.loop, self._rng, self.disk, max_seconds=self._executor_seconds
        )
        self.network.power_is_back(self.host)

    # Faults

    def kill(self, how: str = "is killed") -> None:
        """End the process; the machine goes on."""
        if self.is_up:
            self.note(how)
            self.network.process_ended(self.loop)
            # A torn write is one that the process died in, which the disk's `end_in_write` does.
            self.disk.last_write = None
            self.disk.kill()
            self._end()

    def lose_power(self) -> None:
        """End the process, and lose what the disk has not synced."""
        if self.is_up:
            self.note("loses its power")
            self.network.power_lost(self.loop, self.host)
            self.disk.crash()
            self._end()

    def _end(self) -> None:
        self.is_up = False
        self.loop.end()
        self._former_loops.append(self.loop)
        asked, self._asked = list(self._asked), {}
        for answer in asked:
            if not answer.done():
                answer.set_exception(NodeDied(f"{self.name} died"))
                answer.exception()  # A caller that awaits it still gets it; no caller has to.

    def pause(self) -> None:
        self.note("is paused")
        self.loop.pause()

    def go_on(self) -> None:
        self.note("goes on")
        self.loop.go_on()

    def set_clock(self, seconds: float) -> None:
        """Let the wall clock jump by so much, back if it is negative."""
        self.note(f"its clock jumps by {seconds:+g} s")
        self.clock_jumped_ms += int(seconds * 1000)

    def close_coroutines(self) -> None:
        """Close what its processes have left behind; the world has ended."""
        for loop in (*self._former_loops, self.loop):
            loop.close_coroutines()

    @property
    def errors(self) -> list[dict[str, Any]]:
        """The calls of the exception handler in any of its processes."""
        return [error for loop in (*self._former_loops, self.loop) for error in loop.errors]
