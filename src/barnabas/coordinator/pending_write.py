"""Batches that are not yet committed, and the operations that wait for them."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from barnabas.coordinator.result import CoordinatorResult
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.records.builder import RecordFields
from barnabas.records.record_batch import BATCH_OVERHEAD
from barnabas.steps import Loop

logger = logging.getLogger(__name__)

Waiter = tuple[CoordinatorResult[Any], asyncio.Future[Any] | None]
"""The result of an operation, and the future of its response (None for a timer's operation)."""


def settle(result: CoordinatorResult[Any], future: asyncio.Future[Any] | None, error: KafkaError | None) -> None:
    """Report the outcome of an operation, and give out its response or the error."""
    failure: Exception | None = error
    if result.on_append is not None:
        try:
            result.on_append(error)
        except Exception as bug:
            logger.exception("%r failed", result.on_append)
            failure = bug
    if future is None or future.done():
        return
    if failure is None:
        future.set_result(result.response)
    else:
        future.set_exception(failure)


class PendingWrite:
    """A batch that is not yet committed, and the operations that wait for it."""

    __slots__ = ("_limits", "committed", "waiters")

    def __init__(self) -> None:
        self.committed = False
        self.waiters: list[Waiter] = []
        self._limits: list[asyncio.TimerHandle] = []

    def __repr__(self) -> str:
        return f"<PendingWrite committed={self.committed} waiters={len(self.waiters)}>"

    def finish(self, error: KafkaError | None) -> None:
        """Settle every operation that waits."""
        for limit in self._limits:
            limit.cancel()
        waiters, self.waiters = self.waiters, []
        for result, future in waiters:
            settle(result, future, error)

    def limit(self, loop: Loop, timeout_ms: int, first: int = 0) -> None:
        """Limit the wait of the clients from the `first` on: after the time they get REQUEST_TIMED_OUT.

        Their operations continue waiting for the outcome.
        """
        self._limits.append(loop.call_later(timeout_ms / 1000, self._expire, first, len(self.waiters)))

    def _expire(self, first: int, end: int) -> None:
        for _, future in self.waiters[first:end]:
            if future is not None and not future.done():
                future.set_exception(KafkaError(ErrorCode.REQUEST_TIMED_OUT))


class OpenBatch(PendingWrite):
    """A batch that is not yet appended, with the records of several operations.

    Attributes:
        records: as `build_batch` takes them; the shard's state has moved by them.
        size: the bytes of the batch before compression, at most.
    """

    __slots__ = ("records", "size")

    def __init__(self) -> None:
        super().__init__()
        self.records: list[RecordFields] = []
        self.size = BATCH_OVERHEAD
