"""Named timers of one shard.

A timer has a key; scheduling the same key again replaces it. When a timer fires, its operation runs as an ordinary write
operation of the shard: it returns records and does not change durable state. All timers of a shard end with the shard.

What an operation needs and takes long to find out is computed first, in the executor: `compute`. It has a key, as a timer.

Sources: Kafka classes `CoordinatorTimer`, `CoordinatorExecutor`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

from barnabas.coordinator.result import CoordinatorResult
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.steps import Loop

logger = logging.getLogger(__name__)

T = TypeVar("T")

RETRY_MS = 500

TimerOperation = Callable[[], CoordinatorResult[Any]]


class CoordinatorTimer:
    """The timers of one shard, by key."""

    __slots__ = ("_loop", "_run", "_timers")

    def __init__(self, loop: Loop, run: Callable[[str, TimerOperation], None]) -> None:
        """Make an empty set of timers.

        Args:
            run: runs a fired operation as a write operation of the shard.
        """
        self._loop = loop
        self._run = run
        self._timers: dict[str, asyncio.TimerHandle | asyncio.Future[Any]] = {}

    def __repr__(self) -> str:
        return f"<CoordinatorTimer {sorted(self._timers)}>"

    def __len__(self) -> int:
        return len(self._timers)

    def __contains__(self, key: str) -> bool:
        return key in self._timers

    def schedule(self, key: str, delay_ms: int, operation: TimerOperation) -> None:
        """Run an operation later; it replaces an operation with the same key."""
        self.cancel(key)
        self._timers[key] = self._loop.call_later(delay_ms / 1000, self._fire, key, operation)

    def schedule_until_written(self, key: str, delay_ms: int, operation: TimerOperation, what: str) -> None:
        """As `schedule`; if the log refuses the records the operation runs again, after `RETRY_MS`.

        Args:
            what: it does, for the line of log about a refusal.
        """

        def fire() -> CoordinatorResult[Any]:
            result = operation()
            first = result.on_append

            def on_append(error: KafkaError | None) -> None:
                if first is not None:
                    first(error)
                if error is not None and error.code is not ErrorCode.NOT_COORDINATOR:  # Else the timers have ended.
                    logger.warning("%s is not written: %s", what, error)
                    self.schedule(key, RETRY_MS, fire)

            return result._replace(on_append=on_append)

        self.schedule(key, delay_ms, fire)

    def compute(self, key: str, work: Callable[[], T], operation: Callable[[T], CoordinatorResult[Any]]) -> None:
        """Run `work` in the executor, and then an operation with its result; it replaces an operation with the same key.

        Args:
            work: reads nothing that the loop changes, and does not raise.
        """
        self.cancel(key)
        computed: asyncio.Future[T] = self._loop.run_in_executor(None, work)
        self._timers[key] = computed
        computed.add_done_callback(partial(self._computed, key, operation))

    def _computed(
        self, key: str, operation: Callable[[T], CoordinatorResult[Any]], computed: asyncio.Future[T]
    ) -> None:
        if not computed.cancelled():
            self._fire(key, partial(operation, computed.result()))

    def cancel(self, key: str) -> None:
        """Cancel a timer, if there is one of this key."""
        handle = self._timers.pop(key, None)
        if handle is not None:
            handle.cancel()

    def cancel_all(self) -> None:
        """Cancel every timer."""
        for handle in self._timers.values():
            handle.cancel()
        self._timers.clear()

    def _fire(self, key: str, operation: TimerOperation) -> None:
        del self._timers[key]
        self._run(key, operation)
