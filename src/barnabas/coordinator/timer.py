"""Named timers of one shard (control plane).

A timer has a key; scheduling the same key again replaces it. When it fires, its operation runs as an ordinary write
operation of the shard: it returns records, it does not change durable state. All timers of a shard end with the shard.

Source: Kafka class `CoordinatorTimer`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from barnabas.coordinator.result import CoordinatorResult

TimerOperation = Callable[[], CoordinatorResult[Any]]


class Cancellable(Protocol):
    """What the loop gives for a delayed call."""

    def cancel(self) -> None: ...


class CallLater(Protocol):
    """The loop's `call_later`: seconds, a callable and its arguments."""

    def __call__(self, delay: float, callback: Callable[..., object], /, *args: Any) -> Cancellable: ...


class CoordinatorTimer:
    """The timers of one shard, by key."""

    __slots__ = ("_call_later", "_run", "_timers")

    def __init__(self, call_later: CallLater, run: Callable[[str, TimerOperation], None]) -> None:
        """Make an empty set of timers.

        Args:
            call_later: the loop's.
            run: runs a fired operation as a write operation of the shard.
        """
        self._call_later = call_later
        self._run = run
        self._timers: dict[str, Cancellable] = {}

    def __repr__(self) -> str:
        return f"CoordinatorTimer({sorted(self._timers)})"

    def __len__(self) -> int:
        return len(self._timers)

    def __contains__(self, key: str) -> bool:
        return key in self._timers

    def schedule(self, key: str, delay_ms: int, operation: TimerOperation) -> None:
        """Run an operation later, instead of the one that has the same key."""
        previous = self._timers.get(key)
        if previous is not None:
            previous.cancel()
        self._timers[key] = self._call_later(delay_ms / 1000, self._fire, key, operation)

    def cancel(self, key: str) -> None:
        """Forget a timer; nothing happens when there is none."""
        handle = self._timers.pop(key, None)
        if handle is not None:
            handle.cancel()

    def cancel_all(self) -> None:
        """Forget every timer."""
        for handle in self._timers.values():
            handle.cancel()
        self._timers.clear()

    def _fire(self, key: str, operation: TimerOperation) -> None:
        del self._timers[key]
        self._run(key, operation)
