"""Snapshots of the image, and when to write one.

    control batch   SnapshotHeader, KRaftVersion, Voters (the last two from kraft.version 1)
    batches         the image's records, at most 8 MB each
    control batch   SnapshotFooter

Offsets begin at 0. The file is named after the offset behind its last record and that record's epoch:
`00000000000000000123-0000000004.checkpoint`. It is written aside and renamed, so a file of that name is whole. Without a
snapshot a reader replays the log from its start, which is only trimmed once a snapshot covers it.

Sources: KIP-630, KIP-853; Kafka's `RecordsSnapshotWriter`, `SnapshotGenerator`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from barnabas.metadata.image import MetadataImage
from barnabas.metadata.metadata_version import LATEST_PRODUCTION
from barnabas.metadata.record_codec import MetadataRecord, encode_record
from barnabas.protocol import messages
from barnabas.raft.voters import VoterSet
from barnabas.records.builder import build_batch
from barnabas.records.control import ControlRecordType, QuorumMessage, build_control_batch

MAX_BATCH_BYTES = 8 * 1024 * 1024
# The bytes of a record besides its value: length, attributes and two deltas, rounded up.
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


def build_snapshot(image: MetadataImage, voters: VoterSet, *, kraft_version: int, append_time_ms: int) -> bytes:
    """Return the bytes of a snapshot file."""
    metadata_version = image.features.metadata_version or LATEST_PRODUCTION
    values = (encode_record(record, metadata_version) for record in image.records())
    epoch = max(image.provenance.epoch, 0)
    return _frame(values, voters, kraft_version, max(append_time_ms, 0), epoch)


def build_bootstrap(records: Iterable[MetadataRecord], metadata_version: int, now_ms: int) -> bytes:
    """Return the bytes of `bootstrap.checkpoint`: a snapshot's frame around the first records, without voters."""
    return _frame((encode_record(record, metadata_version) for record in records), None, 0, now_ms, 0)


def build_voters_checkpoint(voters: VoterSet, now_ms: int) -> bytes:
    """Return the bytes of the checkpoint at offset 0 that a formatted directory holds: the voters, no records."""
    return _frame((), voters, 1, now_ms, 0)


def _frame(values: Iterable[bytes], voters: VoterSet | None, kraft_version: int, time_ms: int, epoch: int) -> bytes:
    header: list[tuple[ControlRecordType, QuorumMessage]] = [
        (
            ControlRecordType.SNAPSHOT_HEADER,
            messages.SnapshotHeaderRecord(version=0, last_contained_log_timestamp=time_ms),
        )
    ]
    if voters is not None and kraft_version > 0:
        version = messages.KRaftVersionRecord(version=0, k_raft_version=kraft_version)
        header.append((ControlRecordType.KRAFT_VERSION, version))
        header.append((ControlRecordType.KRAFT_VOTERS, voters.to_record()))
    out = build_control_batch(header, timestamp=time_ms, base_offset=0, leader_epoch=epoch)
    offset = len(header)
    chunk: list[bytes] = []
    size = 0

    def flush() -> None:
        nonlocal offset, size
        if chunk:
            out.extend(build_batch([(time_ms, None, v, ()) for v in chunk], base_offset=offset, leader_epoch=epoch))
            offset += len(chunk)
            chunk.clear()
            size = 0

    for value in values:
        if size + len(value) + RECORD_OVERHEAD > MAX_BATCH_BYTES:
            flush()
        chunk.append(value)
        size += len(value) + RECORD_OVERHEAD
    flush()
    footer = [(ControlRecordType.SNAPSHOT_FOOTER, messages.SnapshotFooterRecord(version=0))]
    out += build_control_batch(footer, timestamp=time_ms, base_offset=offset, leader_epoch=epoch)
    return bytes(out)
