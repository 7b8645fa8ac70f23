"""Runs a coroutine on the spot, as outside of any loop: a turn that it waits for is there at once."""

from __future__ import annotations

from asyncio import _get_running_loop, _set_running_loop
from collections.abc import Coroutine
from typing import Any, TypeVar

R = TypeVar("R")


def at_once(coroutine: Coroutine[Any, Any, R]) -> R:
    """Run a coroutine that waits for nothing but turns of the loop, and return its result; a loop that runs gets no turn meanwhile."""
    running = _get_running_loop()
    _set_running_loop(None)
    try:
        while True:
            try:
                awaited = coroutine.send(None)
            except StopIteration as finished:
                result: R = finished.value
                return result
            assert awaited is None, f"{coroutine!r} waits for {awaited!r}"
    finally:
        _set_running_loop(running)
