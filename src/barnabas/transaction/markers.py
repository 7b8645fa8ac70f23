"""Write the markers of decided transactions.

    Prepare is committed ─► a marker into each partition of the transaction ─► all written: Complete
                               │ retriable error (no leader, too few replicas …): retry after a moment
                               │ the topic is deleted: nothing to write
                               │ a newer epoch of the producer is there: overtaken, nothing to write
                               └ fenced by a newer coordinator: give up

Each try carries the coordinator's leader epoch of that moment, which rises while the same broker continues leading, and goes to the
leader that the partition has in the metadata at that moment.

The commit of the Prepare record decides the outcome. Writing markers never changes it, and ends only when every partition has its
marker. A coordinator that is elected later writes all of them again, because it cannot know which ones exist; a repeated marker has no
effect in the log.

A partition can have a newer epoch only where this coordinator has lost it, in a power cut of all machines, or was replaced. No client gets
an epoch before the markers of the one before are written: so the newer epoch stands behind this transaction's own marker, and the partition
needs no other. Apache Kafka's coordinator gives up there, and the transactional id is of no use any more. Here the transaction ends, and
the id continues with another producer id, because epochs of this one are used (decision 23). One that was replaced cannot commit that.

On one node the markers are written in the turn in which the Prepare record is committed, before the client has its response, so that
the client's next transaction need not wait for them. A transaction with very many partitions gives the loop turns in between.

Source: Kafka classes `TransactionMarkerChannelManager`, `TransactionMarkerRequestCompletionHandler`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.steps import Loop, gather, sleep
from barnabas.transaction.marker_writer import Marker, MarkerWriter
from barnabas.transaction.transaction_metadata import TopicPartition, TransactionMetadata
from barnabas.transaction.transaction_state import TransactionState
from barnabas.turns import WRITE

__all__ = ["RETRY_BACKOFF_MS", "Ending", "TransactionMarkers", "Written"]

logger = logging.getLogger(__name__)

RETRY_BACKOFF_MS = 100

_NOTHING_TO_END = frozenset({ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT, ErrorCode.UNSUPPORTED_VERSION})


class Written(Enum):
    """How the writing of a transaction's markers has ended."""

    EVERYWHERE = "every partition has its marker"
    OVERTAKEN = "every partition has its marker or a newer epoch of the producer"
    GIVEN_UP = "another coordinator, or another try, writes them"

    @property
    def is_given_up(self) -> bool:
        return self is Written.GIVEN_UP

    @property
    def is_overtaken(self) -> bool:
        return self is Written.OVERTAKEN


@dataclass(eq=False, slots=True)
class Ending:
    """A transaction whose markers are being written."""

    coordinator_partition: int
    coordinator_epoch: Callable[[], int | None]
    metadata: TransactionMetadata
    is_given_up: bool = False
    is_overtaken: bool = False

    def outcome(self) -> Written:
        if self.is_given_up:
            return Written.GIVEN_UP
        return Written.OVERTAKEN if self.is_overtaken else Written.EVERYWHERE

    def marker(self, coordinator_epoch: int) -> Marker:
        """Return the marker of the coordinator in a leader epoch."""
        metadata = self.metadata
        return Marker(
            metadata.producer_id,
            metadata.producer_epoch,
            coordinator_epoch,
            metadata.state is TransactionState.PREPARE_COMMIT,
            metadata.client_transaction_version,
        )


class TransactionMarkers:
    """The transactions of this coordinator whose markers are being written."""

    def __init__(self, writer: MarkerWriter, loop: Loop) -> None:
        self._writer = writer
        self._loop = loop
        self._endings: dict[str, Ending] = {}

    def __repr__(self) -> str:
        return f"<TransactionMarkers transactions={len(self._endings)}>"

    async def write(
        self, coordinator_partition: int, coordinator_epoch: Callable[[], int | None], metadata: TransactionMetadata
    ) -> Written:
        """Write the markers of a transaction whose Prepare record is committed.

        Args:
            coordinator_epoch: returns the leader epoch in which this broker coordinates the partition now, None if it does not.
        """
        ending = Ending(coordinator_partition, coordinator_epoch, metadata)
        replaced = self._endings.get(metadata.transactional_id)
        if replaced is not None:
            self._give_up(replaced)
        self._endings[metadata.transactional_id] = ending
        writes = (self._write(ending, partition) for partition in sorted(metadata.partitions))
        try:
            await gather(writes, self._loop, WRITE)
        finally:
            if self._endings.get(metadata.transactional_id) is ending:
                del self._endings[metadata.transactional_id]
        return ending.outcome()

    def forget(self, coordinator_partition: int) -> None:
        """Give up the transactions of a coordinator partition whose shard is dropped."""
        for transactional_id, ending in list(self._endings.items()):
            if ending.coordinator_partition == coordinator_partition:
                del self._endings[transactional_id]
                self._give_up(ending)

    def _give_up(self, ending: Ending) -> None:
        ending.is_given_up = True
        self._writer.drop(ending.metadata.producer_id)

    async def _write(self, ending: Ending, partition: TopicPartition) -> None:
        """Write one marker, with as many tries as it takes."""
        logged: KafkaError | None = None
        while not ending.is_given_up:
            if not self._writer.exists(partition):
                logger.info("%r: %s-%d is deleted and needs no marker", ending.metadata, *partition)
                return
            epoch = ending.coordinator_epoch()
            assert epoch is not None, f"{ending!r} outlived its shard"
            try:
                await self._writer.write(ending.marker(epoch), partition)
                return
            except KafkaError as error:
                if error.code in _NOTHING_TO_END or ending.is_given_up:
                    return
                if ending.coordinator_epoch() == epoch and self._is_last(ending, partition, error):
                    return
                if logged is None or logged.code is not error.code:
                    # A leader may be away for long: one line, and not one for each try.
                    logger.info("%r: the marker of %s-%d is retried: %s", ending.metadata, *partition, error)
                    logged = error
            await sleep(RETRY_BACKOFF_MS / 1000, self._loop)

    def _is_last(self, ending: Ending, partition: TopicPartition, error: KafkaError) -> bool:
        """Return whether no other try would change the answer of a partition to the coordinator's current epoch."""
        if error.code is ErrorCode.INVALID_PRODUCER_EPOCH:
            what = "%r: %s-%d has a newer epoch of this producer, which this coordinator has lost: %s"
            logger.warning(what, ending.metadata, *partition, error)
            ending.is_overtaken = True
            return True
        if error.code is ErrorCode.TRANSACTION_COORDINATOR_FENCED:
            logger.warning("%r: %s-%d rejects its marker for good: %s", ending.metadata, *partition, error)
            ending.is_given_up = True
            return True
        return False
