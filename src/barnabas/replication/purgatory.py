"""Purgatory: requests that wait for a change of some keys, or for their timeout.

A delayed operation is watched under one key for each thing, such as a partition, whose change may complete it. The code that changes a
thing calls `notify`. Without watchers that is one look into a dict, so it costs an append almost nothing.

    watch(operation, keys, timeout_ms) ──► notify(key, amount) ──► operation.notified(amount) ─┐
                                      └──► the timer ──────────► operation.expired() ─────────┴─► operation.finish()

Invariants:

- An operation finishes once. Finishing removes it from every key and cancels its timer: `watched` is the number of waiting operations,
  and `watchers` has no empty entries.
- A cancelled future (its connection is closed) finishes its operation in the same way.
- Operations under a key are notified in the order of their `watch` calls.

Kafka scans its watcher lists for completed operations now and then; here an operation has its keys and leaves when it completes.

Source: Kafka's `DelayedOperationPurgatory`, `DelayedOperation`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Hashable, Iterable
from typing import Any

__all__ = ["DelayedOperation", "Purgatory"]


class DelayedOperation:
    """One waiting request. Subclasses define the meaning of a notification and of the timeout.

    Attributes:
        future: of the result; the holder may cancel it.
    """

    __slots__ = ("_keys", "_purgatory", "_timer", "future", "is_finished")

    def __init__(self, future: asyncio.Future[Any]) -> None:
        self.future = future
        self.is_finished = False
        self._purgatory: Purgatory | None = None
        self._keys: list[Hashable] = []
        self._timer: asyncio.TimerHandle | None = None

    def notified(self, amount: int) -> None:
        """React to the change of a watched key; the subclass defines `amount`."""
        raise NotImplementedError

    def expired(self) -> None:
        """React to the timeout: finish with the current state."""
        raise NotImplementedError

    def finish(self, result: Any) -> None:
        """Leave the purgatory and resolve the future; only the first call counts."""
        if self.is_finished:
            return
        self._leave()
        if not self.future.done():
            self.future.set_result(result)

    def fail(self, error: Exception) -> None:
        """Leave the purgatory with an error, so that a bug here does not leave the request without a response."""
        if self.is_finished:
            return
        self._leave()
        if not self.future.done():
            self.future.set_exception(error)

    def _leave(self) -> None:
        self.is_finished = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._purgatory is not None:
            self._purgatory._unwatch(self, self._keys)
            self._purgatory = None

    def _timed_out(self) -> None:
        self._timer = None
        if self.is_finished:
            return
        try:
            self.expired()
        except Exception as error:
            self.fail(error)

    def _future_done(self, future: asyncio.Future[Any]) -> None:
        if not self.is_finished:
            self._leave()


class Purgatory:
    """The waiting operations of one kind.

    Attributes:
        loop: makes the futures and timers of its operations.
        watchers: operations by key, in the order of their `watch` calls; a caller may look into it to save a call of `notify`.
    """

    __slots__ = ("loop", "name", "watched", "watchers")

    def __init__(self, name: str, loop: asyncio.AbstractEventLoop) -> None:
        self.name = name
        self.watched = 0
        self.watchers: dict[Hashable, dict[DelayedOperation, None]] = {}
        self.loop = loop

    def __repr__(self) -> str:
        return f"<Purgatory name={self.name} watched={self.watched} keys={len(self.watchers)}>"

    def watch(self, operation: DelayedOperation, keys: Iterable[Hashable], timeout_ms: int | None) -> None:
        """Let an operation wait. The caller has checked in this turn of the event loop that the operation is not complete.

        Args:
            timeout_ms: None for a wait without a time limit.
        """
        assert not operation.is_finished
        assert operation._purgatory is None
        operation._purgatory = self
        self.watched += 1
        for key in keys:
            self.watch_also(operation, key)
        if timeout_ms is not None:
            operation._timer = self.loop.call_later(timeout_ms / 1000, operation._timed_out)
        operation.future.add_done_callback(operation._future_done)

    def watch_also(self, operation: DelayedOperation, key: Hashable) -> None:
        """Let an operation that waits be notified of one more key; nothing happens if it waits no longer."""
        if operation._purgatory is None:
            return
        operation._keys.append(key)
        waiting = self.watchers.get(key)
        if waiting is None:
            self.watchers[key] = {operation: None}
        else:
            waiting[operation] = None

    def notify(self, key: Hashable, amount: int = 0) -> None:
        """Notify the operations that wait on `key`."""
        waiting = self.watchers.get(key)
        if waiting is not None:
            for operation in tuple(waiting):
                if not operation.is_finished:
                    try:
                        operation.notified(amount)
                    except Exception as error:
                        operation.fail(error)  # The error must not fail the append that notifies.

    def _unwatch(self, operation: DelayedOperation, keys: list[Hashable]) -> None:
        self.watched -= 1
        watchers = self.watchers
        for key in keys:
            waiting = watchers.get(key)
            if waiting is None:
                continue
            waiting.pop(operation, None)
            if not waiting:
                del watchers[key]
