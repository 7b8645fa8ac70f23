"""Snapshots of the image, and when to write one.

    control batch   SnapshotHeader, KRaftVersion, Voters (the last two from kraft.version 1)
    batches         the image's records, at most a thousand and 8 MB each
    control batch   SnapshotFooter

Offsets begin at 0. The file is named after the offset behind its last record and that record's epoch:
`00000000000000000123-0000000004.checkpoint`. It is written aside and renamed, so a file of that name is whole. Without a
snapshot a reader replays the log from its start, which is only trimmed once a snapshot covers it.

Sources: KIP-630, KIP-853; Kafka's `RecordsSnapshotWriter`, `SnapshotGenerator`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from barnabas.metadata.image import MetadataImage
from barnabas.metadata.metadata_version import LATEST_PRODUCTION
from barnabas.metadata.record_codec import MetadataRecord, encode_record
from barnabas.protocol import messages
from barnabas.raft.voter_set_history import NOT_IN_LOG, VotersFrom
from barnabas.raft.voters import VoterSet
from barnabas.records.builder import build_batch
from barnabas.records.control import ControlRecordType, build_control_batch

if TYPE_CHECKING:
    from barnabas.records.control import QuorumMessage

RECORDS_PER_BATCH = 1_000
MAX_BATCH_BYTES = 8 * 1024 * 1024
# The bytes of a record around its value: length, attributes and two deltas, rounded up.
RECORD_OVERHEAD = 16


@dataclass(slots=True)
class SnapshotPolicy:
    """Counts what has been appended since the last snapshot.

    Attributes:
        max_bytes: metadata.log.max.record.bytes.between.snapshots.
        max_interval_ms: metadata.log.max.snapshot.interval.ms; 0 means by size alone.
    """

    max_bytes: int = 20 * 1024 * 1024
    max_interval_ms: int = 3_600_000
    bytes_since: int = 0
    last_ms: int | None = None

    def appended(self, size: int) -> None:
        self.bytes_since += size

    def is_due(self, now_ms: int) -> bool:
        if self.last_ms is None:
            self.last_ms = now_ms
        if self.bytes_since >= self.max_bytes:
            return True
        aged = self.max_interval_ms > 0 and now_ms - self.last_ms >= self.max_interval_ms
        return aged and self.bytes_since > 0

    def written(self, now_ms: int) -> None:
        self.bytes_since, self.last_ms = 0, now_ms


def snapshot_batches(image: MetadataImage, voters: VotersFrom) -> Iterator[bytes]:
    """Yield the batches of a snapshot file; each takes little enough work for one turn of the loop."""
    metadata_version = image.features.metadata_version or LATEST_PRODUCTION
    values = (encode_record(record, metadata_version) for record in image.records())
    time_ms = max(image.provenance.last_contained_log_time_ms, 0)
    return _frame(values, voters, time_ms, max(image.provenance.epoch, 0))


def build_bootstrap(records: Iterable[MetadataRecord], metadata_version: int, now_ms: int) -> bytes:
    """Return the bytes of `bootstrap.checkpoint`: a snapshot's frame around the first records, without voters."""
    return b"".join(_frame((encode_record(record, metadata_version) for record in records), None, now_ms, 0))


def build_voters_checkpoint(voters: VoterSet, now_ms: int) -> bytes:
    """Return the bytes of the checkpoint at offset 0 that a formatted directory holds: the voters, no records."""
    return b"".join(_frame((), VotersFrom(NOT_IN_LOG, voters), now_ms, 0))


def _frame(values: Iterable[bytes], voters: VotersFrom | None, time_ms: int, epoch: int) -> Iterator[bytes]:
    header: list[tuple[ControlRecordType, QuorumMessage]] = [
        (
            ControlRecordType.SNAPSHOT_HEADER,
            messages.SnapshotHeaderRecord(version=0, last_contained_log_timestamp=time_ms),
        )
    ]
    if voters is not None and voters.kraft_version > 0:
        version = messages.KRaftVersionRecord(version=0, k_raft_version=voters.kraft_version)
        header.append((ControlRecordType.KRAFT_VERSION, version))
        header.append((ControlRecordType.KRAFT_VOTERS, voters.voters.to_record()))
    yield bytes(build_control_batch(header, timestamp=time_ms, base_offset=0, leader_epoch=epoch))
    offset = len(header)
    for chunk in _chunks(values):
        records = [(time_ms, None, value, ()) for value in chunk]
        yield bytes(build_batch(records, base_offset=offset, leader_epoch=epoch))
        offset += len(chunk)
    footer = [(ControlRecordType.SNAPSHOT_FOOTER, messages.SnapshotFooterRecord(version=0))]
    yield bytes(build_control_batch(footer, timestamp=time_ms, base_offset=offset, leader_epoch=epoch))


def _chunks(values: Iterable[bytes]) -> Iterator[list[bytes]]:
    chunk: list[bytes] = []
    size = 0
    for value in values:
        is_full = size + len(value) + RECORD_OVERHEAD > MAX_BATCH_BYTES or len(chunk) == RECORDS_PER_BATCH
        if chunk and is_full:
            yield chunk
            chunk, size = [], 0
        chunk.append(value)
        size += len(value) + RECORD_OVERHEAD
    if chunk:
        yield chunk
