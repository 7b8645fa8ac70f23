"""The `time` module in virtual time, for clients that read it instead of their loop's clock.

aiokafka measures its timeouts with `time.monotonic` and stamps records with `time.time`. While `virtual_clocks` lasts, the functions of
`time` return virtual time to the thread of the simulation, and real time to every other thread:

| function | what it returns to a client |
|---|---|
| `time`, `time_ns` | the wall clock of its machine |
| `monotonic`, `perf_counter` and their `_ns` | the world's clock, the same on all machines |
| `sleep` | blocks the client's process for so much virtual time, and no other |

Outside a node's callback they return real time too. A module that has taken a function before (`from time import time`) keeps the
real one, and so does compiled code. One such case is known, and mended here: aiokafka's compiled record builder, which stamps records
that come without a timestamp.

Left out: `datetime.now`, whose type cannot be changed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from importlib import import_module
from threading import get_ident
from typing import Any

from barnabas.simulation.node_loop import NodeLoop
from barnabas.simulation.world import World

__all__ = ["virtual_clocks"]

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
        return world.loop.running if get_ident() == thread else None

    with ExitStack() as stack:
        for name, read in _CLOCKS.items():
            _replace(stack, time, name, _clock(read, getattr(time, name), running))
        _replace(stack, time, "sleep", _sleep(time.sleep, running))
        _stamp_by_the_clock(stack)
        yield


def _replace(stack: ExitStack, owner: object, name: str, replacement: object) -> None:
    stack.callback(setattr, owner, name, getattr(owner, name))
    setattr(owner, name, replacement)


def _clock(read: _Read, real: Callable[[], Any], running: Callable[[], NodeLoop | None]) -> Callable[[], Any]:
    def now() -> Any:
        loop = running()
        return real() if loop is None else read(loop)

    return now


def _sleep(real: Callable[[float], None], running: Callable[[], NodeLoop | None]) -> Callable[[float], None]:
    def sleep(seconds: float) -> None:
        loop = running()
        if loop is None:
            real(seconds)
        else:
            loop.block(seconds)

    return sleep


def _stamp_by_the_clock(stack: ExitStack) -> None:
    """Give each record of aiokafka's producer its timestamp before the compiled builder does, if aiokafka is installed."""
    try:
        builder = import_module("aiokafka.producer.message_accumulator").BatchBuilder
    except ImportError:
        return
    append = builder.append

    def stamped(self: Any, *, timestamp: int | None, **parts: Any) -> Any:
        return append(self, timestamp=int(time.time() * 1000) if timestamp is None else timestamp, **parts)

    _replace(stack, builder, "append", stamped)
