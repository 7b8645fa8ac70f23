"""Waiting for a condition: the one way in which a scenario lets time pass."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from barnabas.protocol.errors import KafkaError

R = TypeVar("R")

PATIENCE_SECONDS = 240.0
PAUSE_SECONDS = 0.05


class NeverCame(AssertionError):
    """A condition did not come true in time; the message has the condition and the last answer."""


def wait_for(what: str, ask: Callable[[], R | None], seconds: float = PATIENCE_SECONDS) -> R:
    """Ask until the answer is true, and return it.

    Args:
        what: the condition in words, for the message.
        ask: returns the answer. If it raises an OSError or a KafkaError, as it does when a node is down, it is called again.

    Raises:
        NeverCame: the time is over.
    """
    deadline = time.monotonic() + seconds
    while True:
        last: object
        try:
            answer = ask()
        except (OSError, KafkaError) as error:
            last = error
        else:
            if answer:
                return answer
            last = answer
        if time.monotonic() > deadline:
            raise NeverCame(f"{seconds:.0f} s have passed without this: {what}; last: {last!r}")
        time.sleep(PAUSE_SECONDS)
