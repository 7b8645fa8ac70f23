"""What a node takes from outside, for a part of one."""

from __future__ import annotations

import asyncio
import random

from barnabas.config.runtime import Runtime
from barnabas.simulation.disk import SimDisk


def runtime_of(loop: asyncio.AbstractEventLoop) -> Runtime:
    """Return a loop's runtime, with a disk in memory and a wall clock that stands."""
    return Runtime(
        loop, SimDisk(), lambda: 7_000, random.Random(1), lambda: 0, lambda work: loop.run_in_executor(None, work)
    )
