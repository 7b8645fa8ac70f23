"""The state of one producer of a log: its epoch, its last five batches, and where its open transaction begins.

Source: Kafka's `ProducerStateEntry`, `BatchMetadata`.
"""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

from barnabas.records.record_batch import NO_PRODUCER_EPOCH, NO_SEQUENCE, NO_TIMESTAMP, SEQUENCE_MASK

NO_OFFSET = -1
BATCHES_TO_RETAIN = 5


class BatchMetadata(NamedTuple):
    """One batch of a producer."""

    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp: int

    @property
    def first_sequence(self) -> int:
        return (self.last_sequence - self.offset_delta) & SEQUENCE_MASK

    @property
    def first_offset(self) -> int:
        return self.last_offset - self.offset_delta


class ProducerStateEntry:
    """One producer's state in one log. Timestamps in epoch milliseconds; -1 where Kafka has no value."""

    __slots__ = ("batches", "coordinator_epoch", "last_timestamp", "producer_epoch", "producer_id", "txn_first_offset")

    def __init__(self, producer_id: int, producer_epoch: int = NO_PRODUCER_EPOCH) -> None:
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.coordinator_epoch = -1
        self.last_timestamp = NO_TIMESTAMP
        self.txn_first_offset = NO_OFFSET
        self.batches: deque[BatchMetadata] = deque(maxlen=BATCHES_TO_RETAIN)

    def __repr__(self) -> str:
        return f"<ProducerStateEntry {self.producer_id}/{self.producer_epoch} last_sequence={self.last_sequence}>"

    @property
    def last_sequence(self) -> int:
        return self.batches[-1].last_sequence if self.batches else NO_SEQUENCE

    @property
    def last_offset(self) -> int:
        return self.batches[-1].last_offset if self.batches else NO_OFFSET

    def find_duplicate(self, producer_epoch: int, first_sequence: int, last_sequence: int) -> BatchMetadata | None:
        """Return the batch with exactly these sequences, None if none of the last five batches has them."""
        if producer_epoch != self.producer_epoch:
            return None
        for batch in self.batches:
            if batch.last_sequence == last_sequence and batch.first_sequence == first_sequence:
                return batch
        return None
