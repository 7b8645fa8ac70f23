"""Runs a coroutine turn by turn, outside of any loop."""

from __future__ import annotations

from collections.abc import Coroutine, Generator
from typing import Any, TypeVar

R = TypeVar("R")


def turn_by_turn(coroutine: Coroutine[Any, Any, R]) -> Generator[None, None, R]:
    """Run a coroutine that waits for nothing but turns of the loop: yield at each wait, and return its result."""
    while True:
        try:
            awaited = coroutine.send(None)
        except StopIteration as finished:
            result: R = finished.value
            return result
        assert awaited is None, f"{coroutine!r} waits for {awaited!r}"
        yield
