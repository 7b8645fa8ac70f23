"""Writing the markers of decided transactions, and telling the coordinator when all are written (control plane).

    Prepare is committed ─► a marker into each partition of the transaction ─► all written: Complete
                               │ not now (no leader, too few replicas …): again in a moment
                               │ the topic is gone: nothing to write
                               └ fenced (a newer epoch, or a newer coordinator): given up

The outcome is decided when the Prepare record is committed, so this never changes it, and never ends while there is a partition without its
marker: a coordinator that is elected later begins again with every partition, since it cannot know which were done. Markers may
therefore be written twice; the log takes a repeated one without effect.

On one node the markers are written when the Prepare record is, before the client is answered, so that its next transaction finds nothing
in its way. A transaction with very many partitions takes turns with the rest of the node.

Source: Kafka classes `TransactionMarkerChannelManager`, `TransactionMarkerRequestCompletionHandler`.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from barnabas.coordinator.future_steps import when_done
from barnabas.coordinator.timer import CallLater
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.transaction.marker_writer import Marker, MarkerWriter
from barnabas.transaction.transaction_metadata import TopicPartition, TransactionMetadata
from barnabas.transaction.transaction_state import TransactionState

logger = logging.getLogger(__name__)

RETRY_BACKOFF_MS = 100
MARKERS_PER_TURN = 500

_FENCED = frozenset({ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.TRANSACTION_COORDINATOR_FENCED})
_NOTHING_TO_END = frozenset({ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT, ErrorCode.UNSUPPORTED_VERSION})


class Loop(Protocol):
    """The part of the event loop that is used here."""

    @property
    def call_later(self) -> CallLater: ...

    def call_soon(self, callback: Callable[..., object], /, *args: Any) -> object: ...


@dataclass(eq=False, slots=True)
class _Ending:
    """A transaction whose markers are being written."""

    coordinator_partition: int
    coordinator_epoch: int
    metadata: TransactionMetadata
    marker: Marker
    unwritten: set[TopicPartition]
    is_over: bool = False


class TransactionMarkers:
    """The transactions of this coordinator whose markers are being written.

    Args:
        on_written: called with coordinator partition, its epoch and the transaction when every marker is written.
    """

    def __init__(
        self, writer: MarkerWriter, loop: Loop, on_written: Callable[[int, int, TransactionMetadata], None]
    ) -> None:
        self._writer = writer
        self._loop = loop
        self._on_written = on_written
        self._endings: dict[str, _Ending] = {}
        self._later: deque[tuple[_Ending, TopicPartition]] = deque()
        self._is_scheduled = False

    def __repr__(self) -> str:
        return f"TransactionMarkers({len(self._endings)} transactions)"

    def end(self, coordinator_partition: int, coordinator_epoch: int, metadata: TransactionMetadata) -> None:
        """Write the markers of a transaction whose Prepare record is committed."""
        marker = Marker(
            metadata.producer_id,
            metadata.producer_epoch,
            coordinator_epoch,
            metadata.state is TransactionState.PREPARE_COMMIT,
            metadata.client_transaction_version,
        )
        ending = _Ending(coordinator_partition, coordinator_epoch, metadata, marker, set(metadata.partitions))
        replaced = self._endings.get(metadata.transactional_id)
        if replaced is not None:
            replaced.is_over = True
        self._endings[metadata.transactional_id] = ending
        if not ending.unwritten:
            self._written(ending)
            return
        partitions = sorted(ending.unwritten)
        self._later.extend((ending, partition) for partition in partitions[MARKERS_PER_TURN:])
        for partition in partitions[:MARKERS_PER_TURN]:
            self._write(ending, partition)
        self._schedule()

    def forget(self, coordinator_partition: int) -> None:
        """This broker coordinates a partition no more: its next coordinator writes the markers again."""
        for transactional_id, ending in list(self._endings.items()):
            if ending.coordinator_partition == coordinator_partition:
                ending.is_over = True
                del self._endings[transactional_id]

    def close(self) -> None:
        """Write nothing any more."""
        for ending in self._endings.values():
            ending.is_over = True
        self._endings.clear()
        self._later.clear()

    def _schedule(self) -> None:
        if self._later and not self._is_scheduled:
            self._is_scheduled = True
            self._loop.call_soon(self._write_some)

    def _write_some(self) -> None:
        self._is_scheduled = False
        for _ in range(min(MARKERS_PER_TURN, len(self._later))):
            self._write(*self._later.popleft())
        self._schedule()

    def _write(self, ending: _Ending, partition: TopicPartition) -> None:
        if ending.is_over:
            return
        if not self._writer.exists(partition):
            logger.info("%r: %s-%d is gone and needs no marker", ending.metadata, *partition)
            self._settle(ending, partition)
            return
        when_done(self._writer.write(ending.marker, partition), lambda done: self._on_answer(ending, partition, done))

    def _on_answer(self, ending: _Ending, partition: TopicPartition, done: asyncio.Future[Any]) -> None:
        if done.cancelled():
            return
        error = done.exception()
        if ending.is_over:
            return
        if error is None:
            self._settle(ending, partition)
        elif not isinstance(error, KafkaError):
            raise error
        elif error.code in _FENCED:
            logger.warning("%r: a marker for %s-%d is refused for good: %s", ending.metadata, *partition, error)
            ending.is_over = True
            del self._endings[ending.metadata.transactional_id]
        elif error.code in _NOTHING_TO_END:
            self._settle(ending, partition)
        else:
            logger.info("%r: a marker for %s-%d must wait: %s", ending.metadata, *partition, error)
            self._loop.call_later(RETRY_BACKOFF_MS / 1000, self._write, ending, partition)

    def _settle(self, ending: _Ending, partition: TopicPartition) -> None:
        ending.unwritten.discard(partition)
        if not ending.unwritten:
            self._written(ending)

    def _written(self, ending: _Ending) -> None:
        ending.is_over = True
        del self._endings[ending.metadata.transactional_id]
        self._on_written(ending.coordinator_partition, ending.coordinator_epoch, ending.metadata)
