"""The metadata log of a node on a simulated disk, as one of a `Quorum` of drivers."""

from __future__ import annotations

from barnabas.log.log_config import LogConfig
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.snapshots import snapshot_batches
from barnabas.quorum.metadata_log import MetadataLog
from barnabas.raft.seams import SnapshotId
from barnabas.raft.voter_set_history import VotersFrom
from barnabas.records.record import iter_records
from barnabas.simulation.disk import SimDisk
from tests.at_once import at_once
from tests.coordinator.virtual_loop import VirtualLoop

CONFIG = LogConfig(segment_bytes=2_000, segment_ms=1 << 40, retention_ms=-1, retention_bytes=-1, file_delete_delay_ms=0)


class DiskLog(MetadataLog):
    def __init__(self, loop: VirtualLoop) -> None:
        self.truncations = 0
        super().__init__(SimDisk(), "/data", CONFIG, now_ms=lambda: loop.now_ms)

    def truncate_to(self, offset: int) -> None:
        self.truncations += 1
        super().truncate_to(offset)

    def begin_at_new_snapshot(self, snapshot: SnapshotId, voters: VotersFrom) -> None:
        """Write a snapshot, of empty metadata, and drop what is before its end."""
        at_once(self.write_snapshot(snapshot, b"".join(snapshot_batches(MetadataImage(), voters))))
        self._log.delete_records_before(snapshot.end_offset)
        self._remove_snapshots_before(snapshot.end_offset)

    def contents(self) -> list[bytes]:
        return [bytes(batch) for batch in self.read(self.start_offset, self.end_offset)]

    def values(self, end_offset: int) -> list[bytes]:
        """The values of the log's records before an offset."""
        batches = self.read(self.start_offset, end_offset)
        return [bytes(record.value or b"") for batch in batches for record in iter_records(batch)]
