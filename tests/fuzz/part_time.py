"""How long one input keeps the processor: nothing before a login may hold the loop."""

from __future__ import annotations

import time
from typing import Protocol

SECONDS_MAX = 0.5
"""Far above the 50 ms that a turn of the loop may take, because a busy machine measures too much."""


class Part(Protocol):
    """A stream of inputs."""

    def one(self) -> object: ...


def timed(part: Part) -> tuple[str, float]:
    """Try one input; return what it was and the seconds of processor time. Raises AssertionError if they are too many."""
    began = time.thread_time()
    name = str(part.one())
    seconds = time.thread_time() - began
    assert seconds < SECONDS_MAX, (name, seconds)
    return name, seconds
