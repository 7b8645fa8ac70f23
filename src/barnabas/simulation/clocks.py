"""The `time` module in virtual time, for clients that read it instead of their loop's clock.

aiokafka measures its timeouts with `time.monotonic` and stamps records with `time.time`. While `virtual_clocks` lasts, the functions of
`time` return virtual time to the thread of the simulation, and real time to every other thread:

| function | what it returns to a client |
|---|---|
| `time`, `time_ns` | the wall clock of its machine |
| `monotonic`, `perf_counter` and their `_ns` | the world's clock, the same on all machines |
| `sleep` | blocks the client's process for so much virtual time, and no other |

Outside a node's callback they return real time too. A module that has taken a function before (`from time import time`) keeps the
real one, and so does compiled code: `datetime.now`, and a part of aiokafka that `aiokafka_state` mends.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from threading import get_ident
from typing import Any

from barnabas.simulation.node_loop import NodeLoop
from barnabas.simulation.world import World

__all__ = ["replaced", "virtual_clocks"]

LOOK_SECONDS = 1e-6
"""How long a look at the clock takes. A client may wait until a moment has passed, and look again until it has: if the clock stood still
while the client runs, that would never be."""

_Read = Callable[[NodeLoop], Any]

_CLOCKS: dict[str, _Read] = {
    "time": NodeLoop.wall_seconds,
    "time_ns": lambda loop: int(loop.wall_seconds() * 1e9),
    "monotonic": NodeLoop.time,
    "monotonic_ns": lambda loop: int(loop.time() * 1e9),
    "perf_counter": NodeLoop.time,
    "perf_counter_ns": lambda loop: int(loop.time() * 1e9),
}


@contextmanager
def virtual_clocks(world: World) -> Iterator[None]:
    """Let the `time` module follow the clocks of a world, for its thread."""
    thread = get_ident()

    def running() -> NodeLoop | None:
        loop = world.loop.running if get_ident() == thread else None
        return loop if isinstance(loop, NodeLoop) else None

    with ExitStack() as stack:
        for name, read in _CLOCKS.items():
            replaced(stack, time, name, _clock(read, getattr(time, name), running))
        replaced(stack, time, "sleep", _sleep(time.sleep, running))
        yield


def replaced(stack: ExitStack, owner: object, name: str, replacement: object) -> None:
    """Replace an attribute until the stack ends."""
    stack.callback(setattr, owner, name, getattr(owner, name))
    setattr(owner, name, replacement)


def _clock(read: _Read, real: Callable[[], Any], running: Callable[[], NodeLoop | None]) -> Callable[[], Any]:
    def now() -> Any:
        loop = running()
        if loop is None:
            return real()
        loop.block(LOOK_SECONDS)
        return read(loop)

    return now


def _sleep(real: Callable[[float], None], running: Callable[[], NodeLoop | None]) -> Callable[[float], None]:
    def sleep(seconds: float) -> None:
        loop = running()
        if loop is None:
            real(seconds)
        else:
            loop.block(seconds)

    return sleep
