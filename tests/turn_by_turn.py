"""Runs a coroutine turn by turn, outside of any loop, and makes turns small."""

from __future__ import annotations

from collections.abc import Coroutine, Generator
from types import ModuleType
from typing import Any, TypeVar

import pytest

from barnabas import turns

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


def make_turns_small(monkeypatch: pytest.MonkeyPatch, cost: int, *importers: ModuleType) -> None:
    """Let a turn of the loop cost no more than this.

    Args:
        importers: modules that have imported `TURN`.
    """
    for module in (turns, *importers):
        monkeypatch.setattr(module, "TURN", cost)
    turns.new_budget()
