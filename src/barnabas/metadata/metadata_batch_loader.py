"""From committed batches to records.

Control batches describe the quorum and change no image. The records of a metadata transaction (KIP-868) take effect
together: the loader holds back what is between BeginTransactionRecord and EndTransactionRecord, and drops it on
AbortTransactionRecord or when a new leader's epoch begins.

Sources: Kafka's `MetadataBatchLoader`, `SnapshotFileReader`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from barnabas.metadata.record_codec import MetadataRecord, decode_record
from barnabas.records.record import iter_records
from barnabas.records.record_batch import iter_batches, read_header


class LoadedBatch(NamedTuple):
    """Records that take effect together, and the provenance they give: last offset, epoch, append time."""

    last_offset: int
    epoch: int
    append_time_ms: int
    records: list[MetadataRecord]


class MetadataBatchLoader:
    """Turns batches of the metadata log into lists of records that take effect together."""

    def __init__(self) -> None:
        self._held: list[MetadataRecord] | None = None

    @property
    def is_in_transaction(self) -> bool:
        """Whether records wait for the end of their metadata transaction."""
        return self._held is not None

    def load(self, batches: Iterable[memoryview | bytes]) -> Iterator[LoadedBatch]:
        """Yield one item per batch, in order; an item may hold no record."""
        for batch in batches:
            header = read_header(batch)
            records: list[MetadataRecord] = []
            if header.is_control:
                # Such a batch begins an epoch or changes the voters; an open transaction ended with its leader.
                self._held = None
            else:
                for record in iter_records(batch):
                    assert record.value is not None, "a metadata record without a value"
                    self._take(decode_record(record.value), records)
            yield LoadedBatch(header.last_offset, header.partition_leader_epoch, header.max_timestamp, records)

    def _take(self, record: MetadataRecord, out: list[MetadataRecord]) -> None:
        match record.NAME:
            case "BeginTransactionRecord":
                assert self._held is None, "a metadata transaction begins within another"
                self._held = []
            case "EndTransactionRecord":
                assert self._held is not None, "a metadata transaction ends that never began"
                out.extend(self._held)
                self._held = None
            case "AbortTransactionRecord":
                assert self._held is not None, "a metadata transaction is aborted that never began"
                self._held = None
            case _:
                (out if self._held is None else self._held).append(record)


def load_snapshot(data: bytes) -> Iterator[MetadataRecord]:
    """Yield the records of a snapshot or of `bootstrap.checkpoint`; header, footer and voters are skipped."""
    for position, header in iter_batches(data):
        if header.is_control:
            continue
        for record in iter_records(data[position : position + header.size]):
            assert record.value is not None, "a snapshot record without a value"
            yield decode_record(record.value)
