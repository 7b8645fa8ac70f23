"""What a node takes from outside: the loop, the disk, the clocks, randomness. The simulator passes its own."""

from __future__ import annotations

import asyncio
import random as random_module
from collections.abc import Callable
from typing import NamedTuple

from barnabas.clock import Clock
from barnabas.log.disk import Disk


class Runtime(NamedTuple):
    """What a node takes from outside.

    Attributes:
        now_ms: wall clock, epoch milliseconds.
        random: the source of topic ids, member ids, session ids and the incarnation id.
        monotonic_ns: the clock for durations of requests.
        run_blocking: runs a blocking call in the executor and returns its future.
    """

    loop: asyncio.AbstractEventLoop
    disk: Disk
    now_ms: Callable[[], int]
    random: random_module.Random
    monotonic_ns: Callable[[], int]
    run_blocking: Callable[[Callable[[], None]], asyncio.Future[None]]

    @property
    def clock(self) -> Clock:
        """Wall and monotonic time, in milliseconds."""
        return Clock(self.now_ms, lambda: int(self.loop.time() * 1000))
