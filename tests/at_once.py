"""Runs a coroutine that waits for nothing but turns of the loop, outside of any loop: all its turns on the spot, or one by one."""

from __future__ import annotations

from asyncio import _get_running_loop, _set_running_loop
from collections.abc import Coroutine, Generator
from typing import Any, TypeVar

R = TypeVar("R")


def at_once(coroutine: Coroutine[Any, Any, R]) -> R:
    """Run a coroutine to its end, and return its result; a loop that runs gets no turn meanwhile."""
    running = _get_running_loop()
    _set_running_loop(None)
    turns = turn_by_turn(coroutine)
    try:
        while True:
            next(turns)
    except StopIteration as finished:
        result: R = finished.value
        return result
    finally:
        _set_running_loop(running)


def turn_by_turn(coroutine: Coroutine[Any, Any, R]) -> Generator[None, None, R]:
    """Run a coroutine: yield at each wait, and return its result."""
    while True:
        try:
            awaited = coroutine.send(None)
        except StopIteration as finished:
            result: R = finished.value
            return result
        assert awaited is None, f"{coroutine!r} waits for {awaited!r}"
        yield
